#pragma once
/// How a child process ended, and how one learns of it.

#include <mtmc/support/file_descriptor.hpp>

#include <cstdint>
#include <string>
#include <sys/types.h>

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

  /// Whether it ended by itself with code 0.
  [[nodiscard]] bool succeeded() const noexcept { return kind == Kind::exited && code == 0; }
  /// As in "exited with code 1" or "was killed by signal 11 (Segmentation fault)".
  [[nodiscard]] std::string text() const;
};

namespace detail {

/// A descriptor that poll() reports readable once a child has ended; empty if the kernel offers none (before
/// Linux 5.3, or in a sandbox): then it has to be looked at now and then.
[[nodiscard]] FileDescriptor exit_descriptor_of(pid_t child) noexcept;

/// Whether a child has ended, or is none. It stays to be reaped, and so its id is given to no other.
[[nodiscard]] bool has_ended(pid_t child) noexcept;

/// Bytes of resident memory that this process has had at most.
[[nodiscard]] std::uint64_t own_peak_memory() noexcept;

/// Waits for the end of a child and reaps it. `least_peak`: a peak of memory that is no larger says nothing
/// about the child.
[[nodiscard]] ProcessExit reap_child(pid_t child, std::uint64_t least_peak = own_peak_memory()) noexcept;

} // namespace detail

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/process/process_exit_inl.hpp>
#endif
