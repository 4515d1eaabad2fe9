#pragma once
/// The figures that papers report of a benchmark, and those that a sceptical reader asks for beside them.

#include <mtmc/bench/benchmark_result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How results are counted.
struct BenchmarkMetricsOptions {
  std::string rules = "strict";             ///< which rules
  std::string baseline = "eager";           ///< what speed-ups are over
  bool with_flawed = true;                  ///< whether problems count whose rule tells nothing
  std::vector<double> thresholds{1.0, 2.0}; ///< p of fast_p
  int draws = 2000;                         ///< of the bootstrap over problems; 0: no intervals
  double confidence = 0.95;                 ///< of the intervals, (0, 1)
  std::uint64_t seed = 0;                   ///< of the draws
};

/// A figure and the interval in which it lies for most other choices of such problems.
struct BenchmarkFigure {
  double value = 0; ///< of the problems as they are
  double low = 0;   ///< lower end
  double high = 0;  ///< upper end
};

/// Figures of a set of problems. Speed-ups are the baseline's time over the candidate's; a problem without a
/// right candidate, or without a time, has none.
struct BenchmarkMetrics {
  std::size_t problems = 0;           ///< that count: not skipped, with an outcome under the rules
  std::size_t skipped = 0;            ///< that could not be used
  std::size_t flawed = 0;             ///< of those that count, whose rule tells nothing
  std::size_t timed = 0;              ///< with a speed-up
  BenchmarkFigure call_accuracy{};    ///< part that could be executed
  BenchmarkFigure execute_accuracy{}; ///< part that is right
  /// For each threshold p the part that is right and more than p times as fast as the baseline (KernelBench's
  /// fast_p: strictly more, of all problems).
  std::vector<std::pair<double, BenchmarkFigure>> fast{};
  BenchmarkFigure mean{}; ///< arithmetic mean of speed-ups over all problems, a failure counting as 0
  BenchmarkFigure geometric_mean{}; ///< of the speed-ups that there are; 0 without any
  BenchmarkFigure median{};         ///< of the speed-ups that there are; 0 without any
  double library_share =
      0; ///< mean part of the candidates' time that a library takes, where there is a speed-up
};

/// The figures of results. Those that are skipped, have no outcome under the rules, or are flawed where
/// flawed ones do not count, are left out.
[[nodiscard]] BenchmarkMetrics benchmark_metrics(std::span<const BenchmarkResult> results,
                                                 const BenchmarkMetricsOptions& options = {});

/// The paper's table in Markdown: a row for each level and one for all, under each of the rules that occur,
/// with and without flawed problems, over each baseline that occurs; below it what was skipped and what is
/// flawed, with the reasons.
[[nodiscard]] std::string benchmark_table(std::span<const BenchmarkResult> results,
                                          const BenchmarkMetricsOptions& options = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/bench/benchmark_metrics_inl.hpp>
#endif
