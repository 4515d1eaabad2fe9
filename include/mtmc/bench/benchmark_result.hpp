#pragma once
/// What came of the problems of a benchmark, one line of JSON each.

#include <mtmc/core/unknown_fields.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What came of a problem under one set of rules.
struct BenchmarkOutcome {
  bool called = false;  ///< it could be executed: it compiled, and no call failed
  bool correct = false; ///< its results are right by these rules
  double seconds = 0;   ///< a call of the candidate, by the clock of these rules; 0: not timed
  /// A call of each baseline by the same clock: "eager", "compile".
  std::map<std::string, double> baselines{};
  double library_share = 0;      ///< part of the candidate's time that operators of a library take, 0 to 1
  std::int64_t memory_bytes = 0; ///< of the device, that a call needs with its inputs; 0: not known
  double judging_seconds = 0;    ///< that the evaluation took
  std::string reason{};          ///< why it was not called or not correct

  friend bool operator==(const BenchmarkOutcome&, const BenchmarkOutcome&) = default; ///< member by member
};

/// A problem of a benchmark, and what came of it.
struct BenchmarkResult {
  std::string suite;   ///< "KernelBench", "TritonBench-G"
  std::string level{}; ///< "1", "2"; empty where the suite has none
  std::string problem; ///< as the suite calls it
  /// Why it cannot be used at all; it then counts nowhere.
  std::string skipped{};
  /// Why its rule tells nothing: what is wrong with the problem, for tables with and without such.
  std::string flaw{};
  /// The largest error of what PyTorch computes in the problem's own precision against the truth in double
  /// precision, relative to the value or the mean magnitude of the result, whichever is larger.
  double problem_error = 0;
  std::int64_t problem_far = 0; ///< its elements that err by more than a candidate may
  /// By the name of the rules: "compatible" (the benchmark's own) and "strict" (ours).
  std::map<std::string, BenchmarkOutcome> rules{};
  /// Device, versions, model, commit and date: what tables state beside their figures.
  std::map<std::string, std::string> environment{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const BenchmarkResult&, const BenchmarkResult&) = default; ///< member by member
};

/// One line of JSON, without its end.
[[nodiscard]] std::string benchmark_line(const BenchmarkResult& result);

/// Results of a file of such lines, the last one of a problem where it occurs more than once. A last line
/// that was cut off is left out, as a run that was killed leaves it. Throws `Error` (`mtmc.bench.001`) that
/// names the line where the text is something else.
[[nodiscard]] std::vector<BenchmarkResult> read_benchmark_results(std::string_view text,
                                                                  const std::string& place = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/bench/benchmark_result_inl.hpp>
#endif
