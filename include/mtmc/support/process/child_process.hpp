#pragma once

#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/process_exit.hpp>
#include <mtmc/support/process/process_family.hpp>
#include <mtmc/support/process/spawn.hpp>

#include <climits>

#include <chrono>
#include <optional>
#include <sys/types.h>
#include <utility>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Processor time, user and system, that all threads of a process have used so far, to the microsecond.
/// Nothing if there is no such process, or where the system does not tell.
[[nodiscard]] std::optional<double> cpu_seconds_of(pid_t pid) noexcept;

} // namespace detail

/// A running program in a process group of its own, which ends with this object at the latest.
///
/// The group is killed as a whole (SIGKILL), also when its leader has ended by itself, so that nothing it
/// started is left behind; only a descendant that moves to another group or session on its own escapes. A
/// child with a session of its own (`ChildOptions::new_session`) is killed with its whole family
/// (`kill_family`). Should this process die without running destructors, the child lives on: a program that
/// must not can call prctl(PR_SET_PDEATHSIG, SIGKILL) itself (posix_spawn cannot set that), or end when its
/// socket closes. No core file is written. One object may be used by one thread at a time; different objects
/// are independent.
class ChildProcess {
public:
  /// Starts the program. Throws ProcessStartError if that fails.
  explicit ChildProcess(const ChildOptions& options);
  /// Takes over what the other holds; the other is empty.
  ChildProcess(ChildProcess&& other) noexcept;
  /// Takes over what the other holds.
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  /// Kills the group and reaps the child.
  ~ChildProcess() { end(); }

  /// The process id, which is also the id of the group; -1 once it has been reaped.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// A descriptor that poll() reports readable once the process has ended, to wait for it along with others;
  /// -1 if the kernel offers none (before Linux 5.3, or in a sandbox). Owned by this object.
  [[nodiscard]] int exit_descriptor() const noexcept { return exit_descriptor_.get(); }

  /// Whether the process itself has not ended yet.
  [[nodiscard]] bool alive() const noexcept;

  /// Processor time, user and system, that all threads of the process have used so far, to the microsecond;
  /// without its descendants. Nothing once it has been reaped, or where the system does not tell.
  [[nodiscard]] std::optional<double> cpu_seconds() const noexcept { return detail::cpu_seconds_of(pid_); }

  /// Kills every process of the group at once. Does nothing if the child has been reaped.
  void kill_group() noexcept;

  /// Kills it and everything it started: see mtmc::kill_family. Does nothing if the child has been reaped.
  void kill_family() noexcept;

  /// Waits up to `deadline` for the process to end, then kills what is left of its group or session and reaps
  /// it. Nothing: it is still running. Once ended, every further call gives the same answer at once.
  [[nodiscard]] std::optional<ProcessExit> wait(std::chrono::milliseconds deadline) noexcept;

  /// How often a process without exit descriptor is looked at, in milliseconds.
  static constexpr int blind_interval = 2;

  /// Most milliseconds to wait for the exit descriptor along with others before looking whether it is alive.
  [[nodiscard]] int longest_poll() const noexcept { return exit_descriptor_ ? INT_MAX : blind_interval; }

private:
  // Not even SIGKILL ends a process that waits for a driver or a dead network disk.
  static constexpr std::chrono::milliseconds patience_with_unkillable{5000};

  /// Kills what a child must not leave behind.
  void kill_all() noexcept;
  void end() noexcept;
  void reap() noexcept;

  pid_t pid_ = -1;
  bool leads_session_ = false;
  FileDescriptor exit_descriptor_;
  std::optional<ProcessExit> exit_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/process/child_process_inl.hpp>
#endif
