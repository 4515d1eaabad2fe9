#pragma once

#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_fence.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <signal.h>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A descriptor of this process and the number under which the child finds it.
struct PassedDescriptor {
  /// In this process.
  int descriptor = -1;
  /// In the child.
  int number = -1;
};

/// What to start, and with what.
struct ChildOptions {
  /// The program and its arguments, handed over as they are: no shell is involved. A program name without '/'
  /// is looked up in the PATH of this process; a relative path with '/' is relative to `working_folder`.
  std::vector<std::string> arguments{};
  /// Where it runs; empty: where this process runs.
  std::string working_folder{};
  /// Its whole environment as "NAME=value"; nothing: that of this process.
  std::optional<std::vector<std::string>> environment{};
  /// Entries "NAME=value" added to the environment, in place of entries of the same name.
  std::vector<std::string> extra_environment{};
  /// What it finds open. Of 0, 1 and 2 those not named are /dev/null; everything else is closed, whatever
  /// this process has open, close-on-exec or not.
  std::vector<PassedDescriptor> descriptors{};
  /// Most bytes of address space (RLIMIT_AS) for it and, each for itself, its descendants; 0: no limit. Set
  /// from outside just after the start, because posix_spawn cannot: until this thread has a core again, they
  /// run without it.
  std::uint64_t memory_limit = 0;
  /// What it and its descendants may open, for as long as it is being started; null: whatever this process
  /// may. It must leave them /dev/null, for writing, if one of 0, 1 and 2 is not named.
  const FileFence* fence = nullptr;
  /// Whether it leads a session of its own, so that `kill_family` finds what it started even if that moved
  /// to process groups of its own. It then has no controlling terminal.
  bool new_session = false;
};

/// Why a process could not be started. `what()` names the command, the reason and the remedy.
class ProcessStartError : public std::runtime_error {
public:
  /// `error_number`: the `errno` behind it.
  ProcessStartError(const std::string& message, int error_number)
      : std::runtime_error{message}, error_number_{error_number} {}
  /// The errno value behind it; 0 if the options themselves are wrong.
  [[nodiscard]] int error_number() const noexcept { return error_number_; }

private:
  int error_number_;
};

namespace detail {

[[noreturn]] void throw_start_failure(const ChildOptions& options, int error);

struct SpawnActions {
  posix_spawn_file_actions_t value;
  SpawnActions() { ::posix_spawn_file_actions_init(&value); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&value); }
};

struct SpawnAttributes {
  posix_spawnattr_t value;
  SpawnAttributes() { ::posix_spawnattr_init(&value); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&value); }
};

/// A child has the rights of the thread that starts it.
template <class Start> [[nodiscard]] int start_behind(const FileFence& fence, Start start) {
  try {
    return fence.run_behind(start).value_or(EPERM);
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

/// Starts the program as the leader of a process group of its own, with default signal dispositions and an
/// empty signal mask. Returns its process id, or throws ProcessStartError.
[[nodiscard]] pid_t spawn(const ChildOptions& options);

} // namespace detail

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/process/spawn_inl.hpp>
#endif
