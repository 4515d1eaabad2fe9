#pragma once

#include <mtmc/requirements.hpp>

#include <csignal>
#include <ctime>
#include <pthread.h>
#include <signal.h>

namespace mtmc::inline MTMC_ABI::detail {

/// As long as it lives, a write of this thread to a connection that the other side has closed fails without
/// ending the process: SIGPIPE, which some libraries of TLS cause, is held back and then forgotten. Changes
/// nothing for other threads, and nothing that a host has set up for the signal.
class BrokenPipeGuard {
public:
  BrokenPipeGuard() noexcept {
    ::sigemptyset(&broken_pipe_);
    ::sigaddset(&broken_pipe_, SIGPIPE);
    pending_before_ = is_pending();
    if (!pending_before_) ::pthread_sigmask(SIG_BLOCK, &broken_pipe_, &mask_before_);
  }
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;
  ~BrokenPipeGuard() {
    // One that had come before is blocked already, and another's.
    if (pending_before_) return;
    if (is_pending()) {
      const timespec at_once{};
      (void)::sigtimedwait(&broken_pipe_, nullptr, &at_once);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

private:
  [[nodiscard]] static bool is_pending() noexcept {
    sigset_t pending;
    ::sigemptyset(&pending);
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGPIPE) == 1;
  }

  sigset_t broken_pipe_{};
  sigset_t mask_before_{};
  bool pending_before_ = false;
};

} // namespace mtmc::detail
