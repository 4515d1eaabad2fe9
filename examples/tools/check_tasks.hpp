#pragma once
// mtmc-optimize --check: what can be said of tasks without any device or compiler.

#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cpu/launch_limits.hpp>
#include <mtmc/backend/cuda/launch_limits.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/content/captured_inputs.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace command_line {

/// The launch lines of a task's kernel or reference, on what it runs on.
inline void check_launches(const mtmc::Task& task, const mtmc::Kernel& kernel, const mtmc::Device* device) {
  if (kernel.language == mtmc::languages::cuda) return mtmc::require_cuda_launches(task, kernel, device);
  if (kernel.language == mtmc::languages::cpp) return mtmc::require_cpu_launches(task, kernel);
}

/// Throws `mtmc::Error` for what can be known to be wrong with a task before anything is compiled.
inline mtmc::Task checked_task(const std::string& file, const mtmc::Device* device) {
  auto task = mtmc::load_task(file);
  try {
    check_launches(task, task.kernel, device);
    if (task.reference) check_launches(task, *task.reference, device);
    mtmc::require_judgeable(task);
    std::vector<mtmc::ProblemLayout> layouts;
    for (const auto& size : task.sizes) layouts.push_back(mtmc::layout_of(task, size));
    if (device != nullptr && task.kernel.language == mtmc::languages::cuda)
      mtmc::require_room(task, layouts, *device);
    (void)mtmc::read_captured_inputs(task, layouts);
  } catch (const mtmc::Error& error) {
    throw error.within(file);
  }
  return task;
}

/// A line for each task, as text or JSON: "gemm.json: ok, 4 sizes, 1 launch", or what is wrong. `device`: the
/// GPU that launch lines of CUDA kernels have to suit; null = any.
inline int check_tasks(const std::vector<std::string>& paths, const mtmc::Device* device, bool json) {
  int code = done;
  const auto print = [json](const std::string& file, const std::string& text, const mtmc::Error* error) {
    auto line = error == nullptr ? text : readable(*error);
    std::replace(line.begin(), line.end(), '\n', ' ');
    if (json)
      line = nlohmann::json{{"file", file},
                            {"ok", error == nullptr},
                            {"error", error == nullptr ? nlohmann::json() : nlohmann::json(line)}}
                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    else
      line.insert(0, file + ": ");
    std::printf("%s\n", line.c_str());
  };
  for (const auto& path : paths) {
    std::vector<std::string> files{path};
    try {
      files = mtmc::find_task_files(path);
    } catch (const mtmc::Error& error) {
      print(path, {}, &error);
      code = bad_usage_or_task;
      continue;
    }
    for (const auto& file : files) {
      try {
        if (file.ends_with(".py"))
          throw mtmc::Error(mtmc::error_id::evaluator_unsupported,
                            "a problem in PyTorch is checked by recording it",
                            "mtmc-record PROBLEM.py does that, without a GPU");
        const auto task = checked_task(file, device);
        const std::size_t launches = mtmc::parse_launch_lines(task.kernel).launches.size();
        print(file,
              "ok, " + mtmc::detail::counted(task.sizes.size(), "size") + ", " + std::to_string(launches) +
                  (launches == 1 ? " launch" : " launches"),
              nullptr);
      } catch (const mtmc::Error& error) {
        print(file, {}, &error);
        code = bad_usage_or_task;
      }
    }
  }
  return code;
}

} // namespace command_line
