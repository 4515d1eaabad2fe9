#pragma once
/// The evaluator for the processor this runs on.

#include <mtmc/requirements.hpp>

#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>

#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Judges C++ kernels on the processor this runs on, with the whole trust protocol: a
/// `KernelEvaluator<CpuBackend>` whose code need not be compiled with yours. Movable. Throws as
/// `KernelEvaluator` and `CpuBackend` do.
class CpuEvaluator {
public:
  /// Finds the processor and the compiler; nothing is compiled yet.
  explicit CpuEvaluator(CpuBackendOptions backend = {}, KernelEvaluatorOptions options = {});

  /// What kernels run on.
  [[nodiscard]] const Device& device() { return evaluator_.device(); }
  /// Gets a task ready: compiles, tries and measures its own kernel, and makes sure that the task can tell
  /// right from wrong.
  void prepare(const Task& task, std::stop_token stop) { evaluator_.prepare(task, std::move(stop)); }
  /// Judges one candidate. May be called concurrently.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop) {
    return evaluator_.evaluate(request, std::move(stop));
  }
  /// Protocol version, compiler and flags, for cache keys.
  [[nodiscard]] std::string identity() const { return evaluator_.identity(); }
  /// Most calls that may run at once.
  [[nodiscard]] int concurrency_limit() const { return evaluator_.concurrency_limit(); }

  /// Seconds that one call of a task's own kernel may take while the task is prepared.
  [[nodiscard]] double start_seconds() const { return evaluator_.start_seconds(); }

private:
  AnyEvaluator evaluator_;
};

static_assert(check_evaluator<CpuEvaluator>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/cpu_evaluator_inl.hpp>
#endif
