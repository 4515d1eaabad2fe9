#include <mtmc/net/broken_pipe.hpp>

#include <doctest/doctest.h>

#include <pthread.h>
#include <signal.h>

namespace {

bool is_blocked() {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return ::sigismember(&mask, SIGPIPE) == 1;
}
bool is_pending() {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, SIGPIPE) == 1;
}

} // namespace

TEST_CASE("a broken pipe does not end the process, and leaves nothing behind") {
  REQUIRE_FALSE(is_blocked());
  {
    const mtmc::detail::BrokenPipeGuard guard;
    ::pthread_kill(::pthread_self(), SIGPIPE);
    CHECK(is_pending());
  }
  CHECK_FALSE(is_pending());
  CHECK_FALSE(is_blocked());
}

TEST_CASE("a signal that was held back before is left to who held it") {
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  ::pthread_kill(::pthread_self(), SIGPIPE);
  {
    const mtmc::detail::BrokenPipeGuard guard;
    ::pthread_kill(::pthread_self(), SIGPIPE);
  }
  CHECK(is_pending());
  CHECK(is_blocked());
  const timespec at_once{};
  CHECK(::sigtimedwait(&pipe, nullptr, &at_once) == SIGPIPE);
  ::pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}
