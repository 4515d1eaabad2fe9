#pragma once
/// What a worker offers to its hosts.

#include <mtmc/core/any.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/support/program_roles.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc {

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
  /// What else the program must be able to be for this backend.
  std::vector<ProgramRole> roles{};
};

/// What a worker can do.
struct WorkerBackends {
  std::vector<WorkerBackend> entries{};
  /// Gives a task that was sent without its hooks (`Task::generate`, `Task::compare`) the hooks of its name.
  /// May be empty: then tasks with hooks are refused.
  std::function<void(Task& task)> attach_hooks{};

  /// The same with the backends of another, whose hooks are taken where there are none yet.
  [[nodiscard]] WorkerBackends with(WorkerBackends more) const {
    WorkerBackends all = *this;
    for (auto& entry : more.entries) all.entries.push_back(std::move(entry));
    if (!all.attach_hooks) all.attach_hooks = std::move(more.attach_hooks);
    return all;
  }
};

} // namespace mtmc
