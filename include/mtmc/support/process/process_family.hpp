#pragma once
/// A process and everything it started: how that is found, limited and killed.

#include <mtmc/requirements.hpp>

#include <cstdint>
#include <functional>
#include <sys/resource.h>
#include <sys/types.h>

namespace mtmc::inline MTMC_ABI {

/// Kills (SIGKILL) a process and everything it started: its descendants and, where it leads a session, all of
/// that session, whatever process group they are in and whoever their parent has become, with their own
/// descendants. The leader must not have been reaped yet, or its number may be another's. What made a session
/// of its own escapes once its parent has ended. Where the leader is this process, it is killed last. Does
/// nothing where /proc cannot be read, and for `leader` <= 1.
void kill_family(pid_t leader) noexcept;

/// What `kill_family` was called before 0.2.
[[deprecated("kill_session is kill_family now; the old name works until 0.3")]] inline void
kill_session(pid_t session) noexcept {
  kill_family(session);
}

namespace detail {

/// Calls `visit` for each process of the family that `kill_family` speaks of, the leader first. What a
/// process has started is looked for after the call for it, so that nothing is missed that it started before.
/// Processes that have ended and not been reaped are visited, too.
void visit_family(pid_t leader, const std::function<void(pid_t)>& visit);

/// Sets one limit of another process, as far as its hard limit allows. 0, or the errno value of the failure.
int limit_process(pid_t pid, __rlimit_resource resource, std::uint64_t value) noexcept;

/// The same for a process and its family by now; what any of them starts later inherits it. 0, or the errno
/// value for the first.
int limit_family(pid_t pid, __rlimit_resource resource, std::uint64_t value);

} // namespace detail

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/process/process_family_inl.hpp>
#endif
