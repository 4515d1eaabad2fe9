#pragma once
/// KernelBench's problems in a user's own checkout, and what becomes of candidates for them.

#include <mtmc/bench/benchmark_result.hpp>
#include <mtmc/evaluator/python/pytorch_evaluator.hpp>

#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A problem of a benchmark in the contract of KernelBench.
struct BenchmarkProblem {
  std::string suite = "KernelBench"; ///< whose it is
  std::string level{};               ///< "1"
  int number = 0;                    ///< within its level
  std::string name;                  ///< "23_Softmax"
  std::string path;                  ///< of its file

  friend bool operator==(const BenchmarkProblem&, const BenchmarkProblem&) = default; ///< member by member
};

/// The problems of a checkout, by level and number: files `<number>_<name>.py` in folders `level<n>`, either
/// in the folder itself or in `KernelBench` below it. Throws `Error` (`mtmc.bench.001`) that says what was
/// looked for where there are none.
[[nodiscard]] std::vector<BenchmarkProblem> find_kernelbench(const std::string& folder);

/// Which part of some problems is done: shard `index` of `count`, counted from 0. Neighbours go to different
/// shards, so that levels are spread evenly.
[[nodiscard]] std::vector<BenchmarkProblem> shard_of(std::span<const BenchmarkProblem> problems, int index,
                                                     int count);

/// Why the rule of a problem tells nothing, by "<level>/<number>", at commit 423217d: results that are zero
/// or the same for all inputs, candidates that cannot be right, and problems that algebra makes empty. From
/// measurements on a processor, batch 2.
[[nodiscard]] std::map<std::string, std::string> known_kernelbench_flaws();

/// What is asked of a problem.
struct BenchmarkQuestion {
  std::optional<std::string> candidate{}; ///< text that defines `ModelNew`; without one only baselines
  /// Whether `torch.compile` is a baseline, too; without a candidate its time stands in the candidate's
  /// place.
  bool compiled = false;
  bool compatible = true; ///< whether it is also judged by the benchmark's own rules
};

/// Judges a problem's candidate, or times its baselines. What a problem itself cannot do is in
/// `BenchmarkResult::skipped`. Throws `Error` where the surroundings are broken.
[[nodiscard]] BenchmarkResult run_benchmark_problem(PyTorchEvaluator& evaluator,
                                                    const BenchmarkProblem& problem,
                                                    const BenchmarkQuestion& question,
                                                    std::stop_token stop = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/bench/kernelbench_inl.hpp>
#endif
