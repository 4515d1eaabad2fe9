#pragma once
/// Definitions of support/child_process.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/child_process.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/spawn.hpp>

#include <climits>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
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
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string ProcessExit::text() const {
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

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE int limit_process(pid_t pid, __rlimit_resource resource, std::uint64_t value) noexcept {
  rlimit limit{};
  if (::prlimit(pid, resource, nullptr, &limit) != 0) return errno;
  if (value < limit.rlim_max) limit.rlim_max = value;
  limit.rlim_cur = limit.rlim_max;
  return ::prlimit(pid, resource, &limit, nullptr) == 0 ? 0 : errno;
}

/// The processes that one has started and that have not ended.
[[nodiscard]] inline std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const auto threads = std::filesystem::path("/proc") / std::to_string(pid) / "task";
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator(threads, gone)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

MTMC_INLINE int limit_family(pid_t pid, __rlimit_resource resource, std::uint64_t value) {
  // From above: a process that is limited starts none that is not.
  const int error = limit_process(pid, resource, value);
  if (error == 0)
    for (const pid_t child : children_of(pid)) (void)limit_family(child, resource, value);
  return error;
}

MTMC_INLINE double seconds_of(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

MTMC_INLINE std::optional<double> cpu_seconds_of(pid_t pid) noexcept {
  clockid_t clock{};
  timespec time{};
  if (pid < 0 || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

MTMC_INLINE std::chrono::steady_clock::time_point time_after(std::chrono::milliseconds duration) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  if (duration.count() <= 0) return now;
  if (duration >= std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - now))
    return Clock::time_point::max();
  return now + duration;
}

MTMC_INLINE int poll_timeout(std::chrono::steady_clock::time_point deadline) noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (deadline <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return left > INT_MAX ? INT_MAX : static_cast<int>(left);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE ChildProcess::ChildProcess(const ChildOptions& options) : pid_{detail::spawn(options)} {
  // From here on the destructor's work is due, but it does not run for a constructor that throws.
  exit_descriptor_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  (void)detail::limit_process(pid_, RLIMIT_CORE, 0);
  if (options.memory_limit == 0) return;
  const int error = detail::limit_family(pid_, RLIMIT_AS, options.memory_limit);
  if (error == 0 || error == ESRCH) return;
  end();
  throw ProcessStartError{"cannot limit the memory of " + options.arguments.front() + ": " +
                              std::generic_category().message(error) +
                              "; start it without a memory limit or allow prlimit",
                          error};
}

MTMC_INLINE ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_{std::exchange(other.pid_, -1)},
      exit_descriptor_{std::move(other.exit_descriptor_)}, exit_{other.exit_} {}

MTMC_INLINE ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    exit_descriptor_ = std::move(other.exit_descriptor_);
    exit_ = other.exit_;
  }
  return *this;
}

MTMC_INLINE bool ChildProcess::alive() const noexcept {
  if (pid_ < 0) return false;
  siginfo_t info{};
  // WNOWAIT keeps the ended process as a zombie, and so its id from being given to another group.
  const int result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return result == 0 && info.si_pid == 0;
}

MTMC_INLINE void ChildProcess::kill_group() noexcept {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

MTMC_INLINE std::optional<ProcessExit> ChildProcess::wait(std::chrono::milliseconds deadline) noexcept {
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

MTMC_INLINE void ChildProcess::end() noexcept {
  if (pid_ < 0) return;
  kill_group();
  (void)wait(patience_with_unkillable);
  pid_ = -1;
  exit_descriptor_.reset();
}

MTMC_INLINE void ChildProcess::reap() noexcept {
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

} // namespace mtmc
