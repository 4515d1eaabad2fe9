#pragma once
/// Definitions of loop/loop.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/loop/engine.hpp>
#include <mtmc/loop/loop.hpp>

#include <set>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE Result run_search(LoopParts& parts, const LoopOptions& options, const Task& task,
                              std::stop_token stop) {
  return LoopEngine(parts, options, task, std::move(stop)).run();
}

MTMC_INLINE void check_folders(const LoopOptions& options, std::span<const Task> tasks) {
  if (options.output.empty()) return;
  std::set<std::string> folders;
  for (const auto& task : tasks)
    if (!folders.insert(run_folder(options.output, task.name)).second)
      throw Error(error_id::loop_options, "two tasks have the name \"" + task.name + '"',
                  "Rename one of them, so that each has a folder of its own", options.output);
}

MTMC_INLINE Result run_or_report(LoopParts& parts, const LoopOptions& options, const Task& task,
                                 const std::stop_token& stop) {
  try {
    return LoopEngine(parts, options, task, stop).run();
  } catch (const Error& error) {
    Result result;
    result.task = task;
    result.best = task.kernel;
    result.error = error;
    return result;
  }
}

} // namespace mtmc::detail
