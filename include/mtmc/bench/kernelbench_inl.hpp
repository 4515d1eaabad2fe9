#pragma once
/// Definitions of bench/kernelbench.hpp.

#include <mtmc/bench/benchmark_outcome.hpp>
#include <mtmc/bench/kernelbench.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The number that a text begins with.
[[nodiscard]] inline std::optional<int> leading_integer(std::string_view text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

inline void add_level(const std::filesystem::path& folder, const std::string& level,
                      std::vector<BenchmarkProblem>& problems) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const auto& path = entry.path();
    const auto name = path.stem().string();
    const auto number = leading_integer(name);
    if (path.extension() != ".py" || !number) continue;
    problems.push_back({.level = level, .number = *number, .name = name, .path = path.string()});
  }
}

} // namespace detail

MTMC_INLINE std::vector<BenchmarkProblem> find_kernelbench(const std::string& folder) {
  std::vector<BenchmarkProblem> problems;
  for (const auto& base : {std::filesystem::path(folder), std::filesystem::path(folder) / "KernelBench"})
    for (const auto* level : {"1", "2", "3"})
      detail::add_level(base / (std::string("level") + level), level, problems);
  if (problems.empty())
    throw Error(error_id::bench_files, "there are no problems of KernelBench",
                "Name the folder of a checkout: it has KernelBench/level1/<number>_<name>.py", folder);
  std::sort(problems.begin(), problems.end(), [](const BenchmarkProblem& a, const BenchmarkProblem& b) {
    return std::tie(a.level, a.number, a.name) < std::tie(b.level, b.number, b.name);
  });
  return problems;
}

MTMC_INLINE std::vector<BenchmarkProblem> shard_of(std::span<const BenchmarkProblem> problems, int index,
                                                   int count) {
  std::vector<BenchmarkProblem> mine;
  for (std::size_t i = 0; i < problems.size(); ++i)
    if (static_cast<int>(i % static_cast<std::size_t>(std::max(count, 1))) == index)
      mine.push_back(problems[i]);
  return mine;
}

MTMC_INLINE std::map<std::string, std::string> known_kernelbench_flaws() {
  std::map<std::string, std::string> flaws;
  const auto note = [&flaws](const char* level, std::initializer_list<int> numbers, const char* flaw) {
    for (const int number : numbers) flaws.emplace(std::string(level) + '/' + std::to_string(number), flaw);
  };
  note("1", {23, 37}, "a tensor of zeros passes");
  note("1", {90}, "only a corner of the result is above the tolerance");
  note("1", {95}, "the reference itself raises where inputs are cast");
  note("2", {9, 23, 38, 80, 83}, "a tensor of zeros passes");
  note("2", {93}, "a tensor of zeros passes but for one element in a million");
  note("2", {36, 42, 65}, "one and the same tensor passes for all inputs");
  note("2", {66}, "the generator of its dropout is not seeded anew for the candidate");
  note("2", {7, 44, 81, 95}, "it has operations without effect");
  note("3", {7, 11, 12, 18, 28}, "one and the same tensor passes for all inputs");
  note("3", {35}, "one and the same tensor passes but for one element, and it draws its initial state");
  note("3", {36, 37, 49}, "it has operations without effect");
  return flaws;
}

namespace detail {

/// Times the problem after `torch.compile`, or keeps why that cannot be done.
inline void take_compiled(PyTorchEvaluator& evaluator, const Task& task, const BenchmarkQuestion& question,
                          const std::stop_token& stop, BenchmarkResult& result) {
  auto& outcome = result.rules["strict"];
  try {
    const auto compiled = evaluator.evaluate_baseline(task, true, stop);
    if (compiled.correct())
      (question.candidate ? outcome.baselines["compile"] : outcome.seconds) = compiled.seconds;
    else
      result.environment["compile"] = outcome_of(compiled).reason;
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::input) throw;
    result.environment["compile"] = error.message();
  }
}

} // namespace detail

MTMC_INLINE BenchmarkResult run_benchmark_problem(PyTorchEvaluator& evaluator,
                                                  const BenchmarkProblem& problem,
                                                  const BenchmarkQuestion& question, std::stop_token stop) {
  BenchmarkResult result;
  result.suite = problem.suite;
  result.level = problem.level;
  result.problem = problem.name;
  const auto skip = [&](const Error& error) {
    if (error.category() != ErrorCategory::input) throw error;
    result.skipped = error.message();
    return result;
  };
  Task task;
  try {
    task = evaluator.task(problem.name, read_file(problem.path), {}, stop);
  } catch (const Error& error) {
    return skip(error);
  }
  EvaluationRequest request{.task = task, .candidate = task.kernel, .incumbent = task.kernel};
  // A loop that found nothing faster ends with the problem itself.
  if (question.candidate && *question.candidate != task.kernel.source)
    request.candidate = {languages::triton, *question.candidate, {}};
  if (!question.candidate) request.incumbent.reset();
  try {
    const auto strict = question.candidate ? evaluator.evaluate_by(JudgingRules::strict, request, stop)
                                           : evaluator.evaluate_baseline(task, false, stop);
    result.environment = strict.environment;
    auto& outcome = result.rules["strict"] = detail::outcome_of(strict);
    if (!question.candidate && strict.correct()) {
      outcome.baselines["eager"] = std::exchange(outcome.seconds, 0);
      outcome.library_share = 0;
    }
    detail::take_error_of_problem(strict, result);
    if (const auto flaw = strict.environment.find(environment_key::flaw); flaw != strict.environment.end())
      result.flaw = flaw->second;
    if (question.compiled) detail::take_compiled(evaluator, task, question, stop, result);
    if (question.candidate && question.compatible) {
      auto& theirs = result.rules["compatible"] =
          detail::outcome_of(evaluator.evaluate_by(JudgingRules::compatible, request, stop));
      theirs.library_share = outcome.library_share;
    }
  } catch (const Error& error) {
    return skip(error);
  }
  return result;
}

} // namespace mtmc
