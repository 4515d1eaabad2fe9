#pragma once
/// How a program becomes a worker: one line at the start of `main`. Light; `worker_backends<...>()` for
/// backends of your own is in evaluator/worker_server.hpp, the one for the CPU in cpu_worker.hpp.

#include <mtmc/core/any.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

/// What makes a program a worker: its first argument.
inline constexpr std::string_view worker_argument = "--mtmc-worker";

/// Folders that a worker hands to its backend; empty = the backend's own choice.
struct WorkerFolders {
  std::string temporary{};
  std::string device_lock{};
};

/// A judge in a worker.
struct WorkerJudge {
  AnyEvaluator evaluator;
  /// Whether the process cannot be used any more (a lost device context, say): the worker then ends after its
  /// answer and is replaced. May be empty.
  std::function<bool()> spent{};
};

/// A backend that a worker offers.
struct WorkerBackend {
  /// As in `WorkerOptions::backend`.
  std::string name;
  /// Makes the judge; `backend_options` is the text of a JSON object. Throws `Error`.
  std::function<WorkerJudge(const std::string& backend_options, const KernelEvaluatorOptions& options,
                            const WorkerFolders& folders)>
      make;
};

/// What a worker can do.
struct WorkerBackends {
  std::vector<WorkerBackend> entries{};
  /// Gives a task that was sent without its hooks (`Task::generate`, `Task::compare`) the hooks of its name.
  /// May be empty: then tasks with hooks are refused.
  std::function<void(Task& task)> attach_hooks{};
};

/// To be called at the start of `main`, before anything else that matters:
///
///     if (auto code = mtmc::run_as_worker(argc, argv, mtmc::cpu_worker())) return *code;
///
/// If `argv[1]` is "--mtmc-worker" this process is a worker: it serves until its host has had enough, and the
/// answer is the exit code. Otherwise nothing happens but that `WorkerEvaluator` may from now on start this
/// very program as its worker, and there is no answer. Never throws.
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

#ifndef MTMC_COMPILED
#include <mtmc/evaluator/worker_entry_inl.hpp>
#endif
