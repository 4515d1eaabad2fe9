#pragma once
/// Definitions of cuda_worker.hpp.

#include <mtmc/backend/cuda.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/cuda_profiled.hpp>
#include <mtmc/cuda_worker.hpp>
#include <mtmc/evaluator/worker/worker_server.hpp>

#include <utility>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE WorkerBackends cuda_worker(std::function<void(Task&)> attach_hooks) {
  auto backends = worker_backends<CudaBackend>(std::move(attach_hooks));
  backends.entries.front().roles.push_back(cuda_profiled_role());
  return backends;
}

} // namespace mtmc
