#pragma once

#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/spawn.hpp>

#include <climits>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// How a process ended.
struct ProcessExit {
  /// `lost`: it ended, but its status went elsewhere, because the host ignores SIGCHLD or reaps all children.
  enum class Kind { exited, signalled, lost };
  /// How it ended.
  Kind kind = Kind::lost;
  /// The exit code (`exited`) or the number of the signal (`signalled`).
  int code = 0;
  /// Most resident memory in bytes of the process or of the largest descendant that it waited for. Linux
  /// counts the memory of the starting process in, so it is at least the host's own peak; if it is no more
  /// than that, it says nothing about the child and is 0.
  std::uint64_t peak_memory = 0;
  /// Processor time, user and system, of the process and of all descendants that it waited for.
  double cpu_seconds = 0;

  /// As in "exited with code 1" or "was killed by signal 11 (Segmentation fault)".
  [[nodiscard]] std::string text() const;
};

namespace detail {

/// Sets one limit of another process, as far as its hard limit allows. 0, or the errno value of the failure.
int limit_process(pid_t pid, __rlimit_resource resource, std::uint64_t value) noexcept;

/// The same for a process and all that it has started by now; what any of them starts later inherits it. 0,
/// or the errno value for the first.
int limit_family(pid_t pid, __rlimit_resource resource, std::uint64_t value);

[[nodiscard]] double seconds_of(const timeval& time) noexcept;

/// Processor time, user and system, that all threads of a process have used so far, to the microsecond.
/// Nothing if there is no such process, or where the system does not tell.
[[nodiscard]] std::optional<double> cpu_seconds_of(pid_t pid) noexcept;

/// `duration` from now, or the end of time if that is beyond it.
[[nodiscard]] std::chrono::steady_clock::time_point time_after(std::chrono::milliseconds duration) noexcept;

/// The timeout for poll() that ends at `deadline`, rounded up so that nobody spins in the last millisecond.
[[nodiscard]] int poll_timeout(std::chrono::steady_clock::time_point deadline) noexcept;

} // namespace detail

/// A running program in a process group of its own, which ends with this object at the latest.
///
/// The group is killed as a whole (SIGKILL), also when its leader has ended by itself, so that nothing it
/// started is left behind; only a descendant that moves to another group or session on its own escapes.
/// Should this process die without running destructors, the child lives on: a program that must not can call
/// prctl(PR_SET_PDEATHSIG, SIGKILL) itself (posix_spawn cannot set that), or end when its socket closes. No
/// core file is written. One object may be used by one thread at a time; different objects are independent.
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

  /// Waits up to `deadline` for the process to end, then kills what is left of its group and reaps it.
  /// Nothing: it is still running. Once ended, every further call gives the same answer at once.
  [[nodiscard]] std::optional<ProcessExit> wait(std::chrono::milliseconds deadline) noexcept;

  /// How often a process without exit descriptor is looked at, in milliseconds.
  static constexpr int blind_interval = 2;

private:
  // Not even SIGKILL ends a process that waits for a driver or a dead network disk.
  static constexpr std::chrono::milliseconds patience_with_unkillable{5000};

  void end() noexcept;

  void reap() noexcept;

  pid_t pid_ = -1;
  FileDescriptor exit_descriptor_;
  std::optional<ProcessExit> exit_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/child_process_inl.hpp>
#endif
