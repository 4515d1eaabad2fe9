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

namespace mtmc {

/// How a process ended.
struct ProcessExit {
  /// `lost`: it ended, but its status went elsewhere, because the host ignores SIGCHLD or reaps all children.
  enum class Kind { exited, signalled, lost };
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
  [[nodiscard]] std::string text() const {
    switch (kind) {
    case Kind::exited:
      return "exited with code " + std::to_string(code);
    case Kind::signalled: {
      const char* description = ::sigdescr_np(code);
      return "was killed by signal " + std::to_string(code) +
             (description != nullptr ? " (" + std::string{description} + ")" : std::string{});
    }
    case Kind::lost:
      break;
    }
    return "ended, but its exit status was lost: this program must neither ignore SIGCHLD nor reap all "
           "children";
  }
};

namespace detail {

/// Sets one limit of another process, as far as its hard limit allows. 0, or the errno value of the failure.
inline int limit_process(pid_t pid, __rlimit_resource resource, std::uint64_t value) noexcept {
  rlimit limit{};
  if (::prlimit(pid, resource, nullptr, &limit) != 0) return errno;
  if (value < limit.rlim_max) limit.rlim_max = value;
  limit.rlim_cur = limit.rlim_max;
  return ::prlimit(pid, resource, &limit, nullptr) == 0 ? 0 : errno;
}

[[nodiscard]] inline double seconds_of(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// Processor time, user and system, that all threads of a process have used so far, to the microsecond.
/// Nothing if there is no such process, or where the system does not tell.
[[nodiscard]] inline std::optional<double> cpu_seconds_of(pid_t pid) noexcept {
  clockid_t clock{};
  timespec time{};
  if (pid < 0 || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// `duration` from now, or the end of time if that is beyond it.
[[nodiscard]] inline std::chrono::steady_clock::time_point
time_after(std::chrono::milliseconds duration) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  if (duration.count() <= 0) return now;
  if (duration >= std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - now))
    return Clock::time_point::max();
  return now + duration;
}

/// The timeout for poll() that ends at `deadline`, rounded up so that nobody spins in the last millisecond.
[[nodiscard]] inline int poll_timeout(std::chrono::steady_clock::time_point deadline) noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (deadline <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return left > INT_MAX ? INT_MAX : static_cast<int>(left);
}

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
  explicit ChildProcess(const ChildOptions& options) : pid_{detail::spawn(options)} {
    // From here on the destructor's work is due, but it does not run for a constructor that throws.
    exit_descriptor_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    (void)detail::limit_process(pid_, RLIMIT_CORE, 0);
    if (options.memory_limit == 0) return;
    const int error = detail::limit_process(pid_, RLIMIT_AS, options.memory_limit);
    if (error == 0 || error == ESRCH) return;
    end();
    throw ProcessStartError{"cannot limit the memory of " + options.arguments.front() + ": " +
                                std::generic_category().message(error) +
                                "; start it without a memory limit or allow prlimit",
                            error};
  }
  ChildProcess(ChildProcess&& other) noexcept
      : pid_{std::exchange(other.pid_, -1)},
        exit_descriptor_{std::move(other.exit_descriptor_)}, exit_{other.exit_} {}
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    if (this != &other) {
      end();
      pid_ = std::exchange(other.pid_, -1);
      exit_descriptor_ = std::move(other.exit_descriptor_);
      exit_ = other.exit_;
    }
    return *this;
  }
  /// Kills the group and reaps the child.
  ~ChildProcess() { end(); }

  /// The process id, which is also the id of the group; -1 once it has been reaped.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// A descriptor that poll() reports readable once the process has ended, to wait for it along with others;
  /// -1 if the kernel offers none (before Linux 5.3, or in a sandbox). Owned by this object.
  [[nodiscard]] int exit_descriptor() const noexcept { return exit_descriptor_.get(); }

  /// Whether the process itself has not ended yet.
  [[nodiscard]] bool alive() const noexcept {
    if (pid_ < 0) return false;
    siginfo_t info{};
    // WNOWAIT keeps the ended process as a zombie, and so its id from being given to another group.
    const int result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return result == 0 && info.si_pid == 0;
  }

  /// Processor time, user and system, that all threads of the process have used so far, to the microsecond;
  /// without its descendants. Nothing once it has been reaped, or where the system does not tell.
  [[nodiscard]] std::optional<double> cpu_seconds() const noexcept { return detail::cpu_seconds_of(pid_); }

  /// Kills every process of the group at once. Does nothing if the child has been reaped.
  void kill_group() noexcept {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
  }

  /// Waits up to `deadline` for the process to end, then kills what is left of its group and reaps it.
  /// Nothing: it is still running. Once ended, every further call gives the same answer at once.
  [[nodiscard]] std::optional<ProcessExit> wait(std::chrono::milliseconds deadline) noexcept {
    const auto end_of_wait = detail::time_after(deadline);
    while (alive()) {
      int timeout = detail::poll_timeout(end_of_wait);
      if (timeout == 0) return std::nullopt;
      if (!exit_descriptor_ && timeout > blind_interval) timeout = blind_interval;
      pollfd ended{exit_descriptor_.get(), POLLIN, 0};
      ::poll(&ended, 1, timeout);
    }
    if (pid_ > 0) reap();
    return exit_;
  }

  /// How often a process without exit descriptor is looked at, in milliseconds.
  static constexpr int blind_interval = 2;

private:
  // Not even SIGKILL ends a process that waits for a driver or a dead network disk.
  static constexpr std::chrono::milliseconds patience_with_unkillable{5000};

  void end() noexcept {
    if (pid_ < 0) return;
    kill_group();
    (void)wait(patience_with_unkillable);
    pid_ = -1;
    exit_descriptor_.reset();
  }

  void reap() noexcept {
    ::kill(-pid_, SIGKILL);
    rusage own{};
    rusage usage{};
    int status = 0;
    ::getrusage(RUSAGE_SELF, &own);
    pid_t reaped = -1;
    do reaped = ::wait4(pid_, &status, 0, &usage);
    while (reaped < 0 && errno == EINTR);
    exit_.emplace();
    if (reaped == pid_) {
      exit_->kind = WIFEXITED(status) ? ProcessExit::Kind::exited : ProcessExit::Kind::signalled;
      exit_->code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
      if (usage.ru_maxrss > own.ru_maxrss)
        exit_->peak_memory = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
      exit_->cpu_seconds = detail::seconds_of(usage.ru_utime) + detail::seconds_of(usage.ru_stime);
    }
    pid_ = -1;
    exit_descriptor_.reset();
  }

  pid_t pid_ = -1;
  FileDescriptor exit_descriptor_;
  std::optional<ProcessExit> exit_;
};

} // namespace mtmc
