#pragma once
/// Definitions of bench/tritonbench.hpp.

#include <mtmc/bench/benchmark_outcome.hpp>
#include <mtmc/bench/tritonbench.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Where the line of `#` between code and tests begins; `npos` where there is none.
[[nodiscard]] inline std::size_t test_line_of(std::string_view text) {
  constexpr std::size_t shortest = 100; // it has 146
  const std::string line(shortest, '#');
  const auto at = text.find('\n' + line);
  return at == std::string_view::npos ? at : at + 1;
}

} // namespace detail

MTMC_INLINE std::vector<BenchmarkProblem> find_tritonbench(const std::string& folder, std::string_view part) {
  const auto name = "TritonBench_" + std::string(part) + "_v1";
  std::vector<BenchmarkProblem> problems;
  std::error_code none;
  for (const auto& base :
       {std::filesystem::path(folder) / "data" / name, std::filesystem::path(folder) / name})
    for (const auto& entry : std::filesystem::directory_iterator(base, none))
      if (entry.path().extension() == ".py")
        problems.push_back({.suite = "TritonBench-" + std::string(part),
                            .name = entry.path().stem().string(),
                            .path = entry.path().string()});
  if (problems.empty())
    throw Error(error_id::bench_files, "there are no problems of TritonBench-" + std::string(part),
                "Name the folder of a checkout: it has data/" + name, folder);
  std::sort(problems.begin(), problems.end(),
            [](const BenchmarkProblem& a, const BenchmarkProblem& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < problems.size(); ++i) problems[i].number = static_cast<int>(i) + 1;
  return problems;
}

MTMC_INLINE std::string with_tests_of(std::string_view problem, std::string_view candidate,
                                      const std::string& place) {
  const auto at = detail::test_line_of(problem);
  if (at == std::string_view::npos)
    throw Error(error_id::bench_files, "the problem has no line of # with tests behind it",
                "Take the file as the benchmark has it", place);
  std::string text(candidate);
  if (!text.ends_with('\n')) text += '\n';
  return text += problem.substr(at);
}

MTMC_INLINE BenchmarkResult run_tritonbench_problem(PyTorchEvaluator& evaluator,
                                                    const BenchmarkProblem& problem,
                                                    const std::optional<std::string>& candidate,
                                                    std::stop_token stop) {
  const std::string variable = problem.suite.ends_with('T') ? "test_results" : "result_gold"; // of its tests
  BenchmarkResult result;
  result.suite = problem.suite;
  result.problem = problem.name;
  try {
    const auto golden = read_file(problem.path);
    const auto evaluation = candidate
                                ? evaluator.evaluate_script(with_tests_of(golden, *candidate, problem.path),
                                                            variable, &golden, std::move(stop))
                                : evaluator.evaluate_script(golden, variable, nullptr, std::move(stop));
    result.environment = evaluation.environment;
    result.rules["strict"] = detail::outcome_of(evaluation);
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::input) throw;
    result.skipped = error.message();
  }
  return result;
}

} // namespace mtmc
