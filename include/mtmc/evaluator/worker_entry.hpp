#pragma once
/// How a program becomes a worker: one line at the start of `main`. Light; `worker_backends<...>()` for
/// backends of your own is in evaluator/worker/worker_server.hpp, the one for the CPU in cpu_worker.hpp.

#include <mtmc/evaluator/worker/worker_backends.hpp>

#include <atomic>
#include <optional>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// What makes a program a worker: its first argument.
inline constexpr std::string_view worker_argument = "--mtmc-worker";

/// To be called at the start of `main`, before anything else that matters:
///
///     if (auto code = mtmc::run_as_worker(argc, argv, mtmc::cpu_worker())) return *code;
///
/// If `argv[1]` is "--mtmc-worker" this process is a worker: it serves until its host has had enough, and the
/// answer is the exit code. Otherwise nothing happens but that `WorkerEvaluator` may from now on start this
/// very program as its worker, and there is no answer. The same goes for what a backend starts the program as
/// for itself (`ProgramRole`): the CUDA backend compiles in such a process. Never throws.
[[nodiscard]] std::optional<int> run_as_worker(int argc, const char* const* argv,
                                               const WorkerBackends& backends);

namespace detail {
/// Whether this program has said that it can be started as a worker.
[[nodiscard]] inline std::atomic<bool>& opted_in_as_worker() noexcept {
  static std::atomic<bool> flag{false};
  return flag;
}
} // namespace detail

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/worker_entry_inl.hpp>
#endif
