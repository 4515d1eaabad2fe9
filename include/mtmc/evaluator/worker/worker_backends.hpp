#pragma once
/// What a worker offers to its hosts.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/process/program_roles.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Folders that a worker hands to its backend; empty = the backend's own choice.
struct WorkerFolders {
  std::string temporary{};   ///< for files
  std::string device_lock{}; ///< for the lock of the device
};

/// A backend that a worker offers.
struct WorkerBackend {
  /// As in `WorkerOptions::backend`.
  std::string name;
  /// Makes it; `options` is the text of a JSON object. Throws `Error`.
  std::function<AnyBackend(const std::string& options, const WorkerFolders& folders)> make;
  /// What else the program must be able to be for this backend.
  std::vector<ProgramRole> roles{};
};

/// What a worker can do.
struct WorkerBackends {
  /// What it can judge with.
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
