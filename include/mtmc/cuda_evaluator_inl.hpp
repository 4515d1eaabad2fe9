#pragma once
/// Definitions of cuda_evaluator.hpp.

#include <mtmc/backend/cuda/options_json.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/cuda_evaluator.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>

#include <utility>

namespace mtmc::inline MTMC_ABI {

namespace detail {
[[nodiscard]] inline WorkerOptions cuda_worker_options(const CudaBackendOptions& backend,
                                                       KernelEvaluatorOptions options, WorkerOptions worker) {
  nlohmann::json object = nlohmann::json::object();
  write_value(object, backend);
  worker.backend = "cuda";
  worker.backend_options = object.dump();
  worker.evaluator_options = options;
  return worker;
}
} // namespace detail

MTMC_INLINE CudaEvaluator::CudaEvaluator(const CudaBackendOptions& backend, KernelEvaluatorOptions options,
                                         WorkerOptions worker)
    : evaluator_(WorkerEvaluator{detail::cuda_worker_options(backend, options, std::move(worker))}) {}

} // namespace mtmc
