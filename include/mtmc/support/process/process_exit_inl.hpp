#pragma once
/// Definitions of support/process/process_exit.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/process_exit.hpp>

#include <cerrno>
#include <cstdint>
#include <signal.h>
#include <string.h>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

MTMC_INLINE FileDescriptor exit_descriptor_of(pid_t child) noexcept {
  return FileDescriptor{static_cast<int>(::syscall(SYS_pidfd_open, child, 0))};
}

MTMC_INLINE bool has_ended(pid_t child) noexcept {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

/// Linux counts in KiB.
[[nodiscard]] inline std::uint64_t peak_memory_of(const rusage& usage) noexcept {
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

MTMC_INLINE std::uint64_t own_peak_memory() noexcept {
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  return peak_memory_of(own);
}

[[nodiscard]] inline double seconds_of(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

MTMC_INLINE ProcessExit reap_child(pid_t child, std::uint64_t least_peak) noexcept {
  rusage usage{};
  int status = 0;
  pid_t reaped = -1;
  do reaped = ::wait4(child, &status, 0, &usage);
  while (reaped < 0 && errno == EINTR);
  ProcessExit exit;
  if (reaped != child) return exit;
  exit.kind = WIFEXITED(status) ? ProcessExit::Kind::exited : ProcessExit::Kind::signalled;
  exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  if (const auto peak = peak_memory_of(usage); peak > least_peak) exit.peak_memory = peak;
  exit.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  return exit;
}

} // namespace mtmc::detail
