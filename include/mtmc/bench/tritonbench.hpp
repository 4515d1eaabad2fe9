#pragma once
/// TritonBench's problems in a user's own checkout, and what becomes of candidates for them.

#include <mtmc/bench/kernelbench.hpp>
#include <mtmc/evaluator/python/pytorch_evaluator.hpp>

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The problems of a checkout by name: files of `data/TritonBench_<part>_v1`, `part` being "G" (kernels) or
/// "T" (functions of PyTorch); each is code, a line of `#`, and tests. Throws `Error` (`mtmc.bench.001`)
/// where there are none.
[[nodiscard]] std::vector<BenchmarkProblem> find_tritonbench(const std::string& folder,
                                                             std::string_view part);

/// A candidate's code with the tests of a problem's text, as it is judged. Throws `Error` (`mtmc.bench.001`)
/// where the problem has no line of `#` with tests behind it.
[[nodiscard]] std::string with_tests_of(std::string_view problem, std::string_view candidate,
                                        const std::string& place = {});

/// Judges a candidate for a problem by what the problem's own code gives in the same tests; without one the
/// problem's code itself, by what it gives in another process. Under the rules "strict"; seconds are those of
/// all that the tests compute. Throws `Error` where the surroundings are broken.
[[nodiscard]] BenchmarkResult run_tritonbench_problem(PyTorchEvaluator& evaluator,
                                                      const BenchmarkProblem& problem,
                                                      const std::optional<std::string>& candidate,
                                                      std::stop_token stop = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/bench/tritonbench_inl.hpp>
#endif
