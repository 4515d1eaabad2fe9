#pragma once
/// What an evaluation says of a problem of a benchmark.

#include <mtmc/bench/benchmark_result.hpp>
#include <mtmc/core/evaluation.hpp>

#include <algorithm>
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
  if (const auto share = evaluation.resources.find("library_share"); share != evaluation.resources.end())
    outcome.library_share = share->second;
  if (!evaluation.correct()) {
    outcome.reason = std::string(to_string(evaluation.verdict));
    if (!evaluation.diagnostics.empty()) outcome.reason += ": " + evaluation.diagnostics[0].message;
    std::replace(outcome.reason.begin(), outcome.reason.end(), '\n', ' ');
  }
  return outcome;
}

} // namespace mtmc::detail
