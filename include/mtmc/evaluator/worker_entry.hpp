#pragma once
/// How a program becomes a worker: one line at the start of `main`. Light; `worker_backends<...>()` for
/// backends of your own is in evaluator/worker/worker_server.hpp, the one for the CPU in cpu_worker.hpp.

#include <mtmc/evaluator/worker/worker_backends.hpp>
#include <mtmc/support/process/program_roles.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What makes a program a worker: its first argument.
inline constexpr std::string_view worker_argument = "--mtmc-worker";

/// All that a program plays which is a worker with these backends: the worker (`worker_argument`), and what
/// the backends start it as for themselves (`WorkerBackend::roles`).
[[nodiscard]] std::vector<ProgramRole> worker_roles(const WorkerBackends& backends);

/// To be called at the start of `main`, before anything else that matters:
///
///     if (const auto code = mtmc::play_role(argc, argv, mtmc::cpu_worker())) return *code;
///
/// If `argv[1]` is "--mtmc-worker" this process is a worker: it serves until its host has had enough, and the
/// answer is the exit code. Otherwise nothing happens but that `WorkerEvaluator` may from now on start this
/// very program as its worker, and there is no answer. The same goes for what a backend starts the program as
/// for itself: the CUDA backend compiles in such a process, and Nsight Compute watches another. This one line
/// is all that a program needs, whatever it uses: `cpu_worker().with(cuda_worker())` has both.
[[nodiscard]] inline std::optional<int> play_role(int argc, const char* const* argv,
                                                  const WorkerBackends& backends) {
  return play_role(argc, argv, worker_roles(backends));
}

/// What `play_role` was called before 0.2.
[[deprecated(
    "run_as_worker is play_role now; the old name works until 0.3")]] [[nodiscard]] inline std::optional<int>
run_as_worker(int argc, const char* const* argv, const WorkerBackends& backends) {
  return play_role(argc, argv, backends);
}

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/worker_entry_inl.hpp>
#endif
