#pragma once
// Problems in PyTorch on the command line, and what judges them.

#include <mtmc/mtmc.hpp>
#include <mtmc/python.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "command_line.hpp"

namespace command_line {

inline void add_python_options(CLI::App& app, mtmc::PyTorchEvaluatorOptions& options) {
  options.device_lock_folder = mtmc::WorkerOptions{}.device_lock_folder; // as kernels in CUDA C++ are judged
  app.add_option(
         "--python", options.python.interpreter,
         "of problems in PyTorch: the interpreter with torch and triton, of a virtual environment the "
         "one in it")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--library-calls",
         [&options](const std::string& name) {
           options.library_calls = name == "refuse" ? mtmc::LibraryCalls::refuse : mtmc::LibraryCalls::allow;
         },
         "of problems in PyTorch: whether operators of PyTorch may remain in a candidate")
      ->check(CLI::IsMember({"allow", "refuse"}))
      ->default_str("allow");
  app.add_option("--judge-on", options.device,
                 "of problems in PyTorch: cuda, or cpu, where kernels in Triton cannot be judged")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
}

/// Whether a path on the command line is a problem in PyTorch.
inline bool is_problem(const std::string& path) { return path.ends_with(".py"); }

/// Problems in PyTorch that an iterator over a folder finds, in a fixed order.
template <class Iterator> std::vector<std::string> problems_in(const std::string& path) {
  std::vector<std::string> problems;
  std::error_code none;
  for (const auto& entry : Iterator(path, none))
    if (is_problem(entry.path().string())) problems.push_back(entry.path().string());
  std::sort(problems.begin(), problems.end());
  return problems;
}

/// Files of tasks and problems that a path stands for: itself, what lies in the folder, or, where nothing
/// does, problems in folders below, as in a benchmark's levels.
inline std::vector<std::string> task_files(const std::string& path) {
  auto problems = problems_in<std::filesystem::directory_iterator>(path);
  if (!problems.empty()) return problems;
  try {
    return mtmc::find_task_files(path);
  } catch (const mtmc::Error&) {
    problems = problems_in<std::filesystem::recursive_directory_iterator>(path);
    if (problems.empty()) throw;
    return problems;
  }
}

/// The names that a problem's forward gives its inputs.
inline std::vector<std::string> input_names(const std::string& text) {
  for (const auto& graph : mtmc::forward_graphs(mtmc::parse_python(text)))
    if (graph.module == "Model") return graph.inputs;
  return {};
}

/// The task of a problem in PyTorch, which its judge records.
inline mtmc::Task problem(mtmc::PyTorchEvaluator& evaluator, const std::string& file) {
  auto text = mtmc::read_file(file);
  const auto names = input_names(text);
  return evaluator.task(std::filesystem::path(file).stem().string(), std::move(text), names);
}

/// A candidate for such a task.
inline mtmc::Kernel module_from(const std::string& file) {
  return {mtmc::languages::triton, mtmc::read_file(file), {}};
}

/// The finder for kernels of that language.
inline mtmc::AnyRegionFinder finder_for(const mtmc::Language& language) {
  if (language == mtmc::languages::pytorch) return mtmc::PythonRegionFinder{};
  return mtmc::AstRegionFinder{};
}

} // namespace command_line
