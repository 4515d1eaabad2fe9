#pragma once
// The runs of a collection: which there are, which are finished, and how one is run.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/loop/run_folder.hpp>
#include <mtmc/policy/http.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/train/remembering_evaluator.hpp>
#include <mtmc/train/remembering_parts.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "collect_arguments.hpp"
#include "collect_coder.hpp"
#include "collect_policies.hpp"
#include "files_below.hpp"

namespace command_line {

/// One search.
struct CollectedRun {
  std::string policy;
  std::uint64_t seed = 0;
  /// Holds the folder that the loop makes for the task.
  std::string folder;
};

/// The runs of a task with the seeds from `first` to before `last`.
inline std::vector<CollectedRun> runs_of(const std::string& task_folder,
                                         const std::vector<std::string>& policies, std::uint64_t first,
                                         std::uint64_t last) {
  std::vector<CollectedRun> runs;
  for (auto seed = first; seed < last; ++seed)
    for (const auto& policy : policies)
      runs.push_back({policy, seed, task_folder + '/' + policy + '-' + std::to_string(seed)});
  return runs;
}

/// The last bytes of a file; nothing where there is none.
inline std::string end_of_file(const std::string& path, std::size_t bytes) {
  const mtmc::FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return {};
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(bytes));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

/// A field that is a text; empty where it is not there, or anything else.
inline std::string text_field(const nlohmann::json& record, const char* name) {
  if (!record.is_object()) return {};
  const auto field = record.find(name);
  return field != record.end() && field->is_string() ? field->get<std::string>() : std::string();
}

/// Whether a run came to its own end: its last line says so. What was cut off, or broke, did not.
inline bool is_finished(const CollectedRun& run, const std::string& task) {
  constexpr std::size_t longest_finish = 4096;
  const auto text = end_of_file(mtmc::journal_path(mtmc::run_folder(run.folder, task)), longest_finish);
  if (text.empty() || text.back() != '\n') return false;
  const auto line = std::string_view(text).substr(text.rfind('\n', text.size() - 2) + 1);
  const auto record = nlohmann::json::parse(line, nullptr, false);
  if (text_field(record, "record") != "finish") return false;
  const std::string reason = text_field(record, "stop_reason");
  return reason == "step_limit" || reason == "stop_action" || reason == "no_legal_action";
}

/// What all runs of a task share while it is visited: each kernel is looked at, rewritten and judged once.
class TaskParts {
public:
  /// `tried_so_far` outlives the parts. Throws `mtmc::Error` (`mtmc.journal.001`) where another process is at
  /// the task.
  TaskParts(mtmc::AnyEvaluator& evaluator, const std::string& task_folder, std::size_t largest_kernel,
            TriedActions& tried_so_far)
      : tried(tried_so_far), finder(mtmc::AstRegionFinder{}), coder(ShortKernels{largest_kernel}),
        memory(mtmc::AnyEvaluator(std::ref(evaluator)), {.path = task_folder + "/memory.jsonl"}) {}

  TriedActions& tried;
  mtmc::RememberingRegionFinder finder;
  mtmc::RememberingCoder coder;
  mtmc::RememberingEvaluator memory;
};

/// What the runs below a task's folder tried; lines of journals that cannot be read add nothing.
inline TriedActions tried_before(const std::string& task_folder) {
  TriedActions tried;
  for (const auto& path : files_below(task_folder, "journal.jsonl")) {
    const std::string content = mtmc::detail::read_run_file(path);
    for (const std::string_view line : mtmc::detail::complete_lines(content)) {
      if (!mtmc::detail::is_record(line, "step")) continue;
      const auto step = nlohmann::json::parse(line, nullptr, false);
      const auto parent = text_field(step, "parent"), action = text_field(step, "action");
      if (!parent.empty() && !action.empty()) tried[parent].insert(action);
    }
  }
  return tried;
}

/// Gives a run's folder a name that no run has, and tells it.
inline std::string moved_aside(const std::string& folder) {
  for (int number = 1;; ++number) {
    const std::string aside = folder + ".damaged-" + std::to_string(number);
    if (std::filesystem::exists(aside)) continue;
    std::filesystem::rename(folder, aside);
    return aside;
  }
}

/// Runs one search, or goes on with it; `served` is there for a run of a served policy. Throws `mtmc::Error`
/// as `mtmc::Loop::optimize` does.
inline mtmc::Result collect(const CollectedRun& run, const mtmc::Task& task, TaskParts& parts,
                            mtmc::HttpPolicy* served, const CollectArguments& arguments,
                            const std::stop_token& stop) {
  mtmc::LoopOptions options;
  options.max_steps = arguments.steps;
  options.samples = arguments.samples;
  options.repairs = 0; // the transform coder cannot mend
  options.selection = explores(run.policy) ? mtmc::Selection::sample : mtmc::Selection::argmax;
  options.temperature = collecting_temperature(run.policy, run.seed);
  options.seed = run.seed;
  options.minimum_gain = collecting_minimum_gain(run.policy, run.seed, arguments.minimum_gain);
  options.threads = 1;
  options.action_space = arguments.action_space();
  options.output = run.folder;
  options.resume = true;
  const auto search = [&] {
    mtmc::Loop loop{collecting_policy(run.policy, arguments.weights, served, parts.tried, run.seed),
                    parts.coder, parts.finder, parts.memory, options};
    return loop.optimize(task, stop);
  };
  try {
    return search();
  } catch (const mtmc::Error& error) {
    const bool damaged =
        error.id() == mtmc::error_id::journal_read || error.id() == mtmc::error_id::json_malformed;
    if (!damaged) throw;
  }
  // What it had judged is remembered, so nothing is lost but the walk.
  const auto aside = moved_aside(run.folder);
  std::fprintf(stderr, "%s: its journal is damaged; it is kept as %s, and the run is made anew\n",
               run.folder.c_str(), aside.c_str());
  return search();
}

} // namespace command_line
