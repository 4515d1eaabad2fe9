#pragma once
/// A worker that judges on an NVIDIA GPU of the machine it runs on.

#include <mtmc/requirements.hpp>

#include <mtmc/evaluator/worker_entry.hpp>

#include <functional>

namespace mtmc::inline MTMC_ABI {

/// What `play_role` needs to offer the backend "cuda", with its compiler process and with what Nsight Compute
/// watches. Neither driver nor GPU is needed before it is asked for. `attach_hooks` gives a task that was
/// sent without its hooks the hooks of its name; without it tasks with hooks are refused.
[[nodiscard]] WorkerBackends cuda_worker(std::function<void(Task&)> attach_hooks = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/cuda_worker_inl.hpp>
#endif
