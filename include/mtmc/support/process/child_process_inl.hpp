#pragma once
/// Definitions of support/process/child_process.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/process_exit.hpp>
#include <mtmc/support/process/process_family.hpp>
#include <mtmc/support/process/spawn.hpp>

#include <cerrno>
#include <chrono>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <system_error>
#include <time.h>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::optional<double> cpu_seconds_of(pid_t pid) noexcept {
  clockid_t clock{};
  timespec time{};
  if (pid < 0 || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE ChildProcess::ChildProcess(const ChildOptions& options)
    : pid_{detail::spawn(options)}, leads_session_{options.new_session},
      exit_descriptor_{detail::exit_descriptor_of(pid_)} {
  // From here on the destructor's work is due, but it does not run for a constructor that throws.
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
    : pid_{std::exchange(other.pid_, -1)}, leads_session_{other.leads_session_},
      exit_descriptor_{std::move(other.exit_descriptor_)}, exit_{other.exit_} {}

MTMC_INLINE ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    leads_session_ = other.leads_session_;
    exit_descriptor_ = std::move(other.exit_descriptor_);
    exit_ = other.exit_;
  }
  return *this;
}

MTMC_INLINE bool ChildProcess::alive() const noexcept { return pid_ >= 0 && !detail::has_ended(pid_); }

MTMC_INLINE void ChildProcess::kill_group() noexcept {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

MTMC_INLINE void ChildProcess::kill_family() noexcept {
  if (pid_ > 0) mtmc::kill_family(pid_);
  kill_group(); // where /proc cannot be read
}

MTMC_INLINE std::optional<ProcessExit> ChildProcess::wait(std::chrono::milliseconds deadline) noexcept {
  const auto end_of_wait = detail::time_after(deadline);
  while (alive()) {
    const int timeout = detail::poll_timeout(end_of_wait, longest_poll());
    if (timeout == 0) return std::nullopt;
    pollfd ended{exit_descriptor_.get(), POLLIN, 0};
    ::poll(&ended, 1, timeout);
  }
  if (pid_ > 0) reap();
  return exit_;
}

MTMC_INLINE void ChildProcess::kill_all() noexcept {
  if (leads_session_)
    kill_family();
  else
    kill_group();
}

MTMC_INLINE void ChildProcess::end() noexcept {
  if (pid_ < 0) return;
  kill_all();
  (void)wait(patience_with_unkillable);
  pid_ = -1;
  exit_descriptor_.reset();
}

MTMC_INLINE void ChildProcess::reap() noexcept {
  kill_all();
  exit_ = detail::reap_child(pid_);
  pid_ = -1;
  exit_descriptor_.reset();
}

} // namespace mtmc
