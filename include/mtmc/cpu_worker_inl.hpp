#pragma once
/// Definitions of cpu_worker.hpp.

#include <mtmc/backend/cpu.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/cpu_worker.hpp>
#include <mtmc/evaluator/worker/worker_server.hpp>

#include <utility>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE WorkerBackends cpu_worker(std::function<void(Task&)> attach_hooks) {
  return worker_backends<CpuBackend>(std::move(attach_hooks));
}

} // namespace mtmc
