#pragma once
/// The evaluator for an NVIDIA GPU of this machine.

#include <mtmc/requirements.hpp>

#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/worker_options.hpp>

#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Judges CUDA C++ kernels on a GPU, with the whole trust protocol, in a worker process: a kernel that
/// crashes the GPU context or never ends costs its own verdict, and neither this process nor its GPU context
/// notices. A `WorkerEvaluator` with the backend "cuda"; needs neither a CUDA toolkit to build nor a GPU to
/// start. Movable. Throws as `WorkerEvaluator` does, and `Error` (`mtmc.backend.004`, `.001`) at the first
/// question where the machine has no GPU, no driver or no NVRTC.
class CudaEvaluator {
public:
  /// `worker` says where the worker program is, how many there are and how long they may take; its backend
  /// and the judge's options are set from the other two.
  explicit CudaEvaluator(const CudaBackendOptions& backend = {}, KernelEvaluatorOptions options = {},
                         WorkerOptions worker = {});

  /// What kernels run on. Waits until the first worker has its device.
  [[nodiscard]] const Device& device() { return evaluator_.device(); }
  /// Gets a task ready: compiles, tries and measures its own kernel, and makes sure that the task can tell
  /// right from wrong.
  void prepare(const Task& task, std::stop_token stop) { evaluator_.prepare(task, std::move(stop)); }
  /// Judges one candidate. May be called concurrently.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop) {
    return evaluator_.evaluate(request, std::move(stop));
  }
  /// Protocol version, device, driver, compiler and flags, for cache keys.
  [[nodiscard]] std::string identity() const { return evaluator_.identity(); }
  /// Most calls that may run at once.
  [[nodiscard]] int concurrency_limit() const { return evaluator_.concurrency_limit(); }
  /// Seconds that one call of a task's own kernel may take while the task is prepared.
  [[nodiscard]] double start_seconds() const { return evaluator_.start_seconds(); }

private:
  AnyEvaluator evaluator_;
};

static_assert(check_evaluator<CudaEvaluator>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/cuda_evaluator_inl.hpp>
#endif
