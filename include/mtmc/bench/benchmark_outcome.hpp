#pragma once
/// What an evaluation says of a problem of a benchmark.

#include <mtmc/bench/benchmark_result.hpp>
#include <mtmc/core/evaluation.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// Verdicts of candidates that were not called at all.
[[nodiscard]] inline bool was_called(Verdict verdict) {
  constexpr Verdict not_called[] = {Verdict::not_given, Verdict::compile_error, Verdict::compile_timeout,
                                    Verdict::refused,   Verdict::launch_error,  Verdict::crashed,
                                    Verdict::timeout};
  return std::find(std::begin(not_called), std::end(not_called), verdict) == std::end(not_called);
}

[[nodiscard]] inline BenchmarkOutcome outcome_of(const Evaluation& evaluation) {
  BenchmarkOutcome outcome;
  outcome.called = was_called(evaluation.verdict);
  outcome.correct = evaluation.correct();
  outcome.seconds = evaluation.seconds;
  if (!evaluation.sizes.empty() && evaluation.sizes[0].incumbent_seconds > 0)
    outcome.baselines["eager"] = evaluation.sizes[0].incumbent_seconds;
  outcome.library_share = resource_of(evaluation, "library_share");
  outcome.memory_bytes = static_cast<std::int64_t>(resource_of(evaluation, "memory_bytes"));
  outcome.judging_seconds = evaluation.cost.total;
  if (!evaluation.correct()) {
    outcome.reason = std::string(to_string(evaluation.verdict));
    if (!evaluation.diagnostics.empty()) outcome.reason += ": " + evaluation.diagnostics[0].message;
    std::replace(outcome.reason.begin(), outcome.reason.end(), '\n', ' ');
  }
  return outcome;
}

/// How far the problem's own arithmetic is from the truth.
inline void take_error_of_problem(const Evaluation& evaluation, BenchmarkResult& result) {
  result.problem_error = resource_of(evaluation, "problem_error");
  result.problem_far = static_cast<std::int64_t>(resource_of(evaluation, "problem_far"));
}

} // namespace mtmc::detail
