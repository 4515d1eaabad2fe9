// Waiting until a point in time, in a process whose host has signals of its own.
#include <mtmc/support/deadline.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

using namespace mtmc::detail;
using namespace std::chrono_literals;

namespace {

/// A signal with a handler each millisecond, as a profiler sends it.
class Interruptions {
public:
  Interruptions() {
    struct sigaction action{};
    action.sa_handler = [](int) { count = count + 1; };
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 1000}, {0, 1000}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Interruptions() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

  [[nodiscard]] static int so_far() { return count; }

private:
  static inline volatile sig_atomic_t count = 0;
  struct sigaction before_{};
};

struct Pipe {
  std::array<int, 2> ends{};
  Pipe() { REQUIRE(::pipe(ends.data()) == 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
};

} // namespace

TEST_SUITE("deadlines") {
  TEST_CASE("signals neither end a wait for descriptors nor make it longer") {
    const Pipe pipe;
    const Interruptions interruptions;
    pollfd watched{pipe.ends[0], POLLIN, 0};
    const auto begin = std::chrono::steady_clock::now();
    CHECK_FALSE(poll_until({&watched, 1}, begin + 50ms));
    CHECK(std::chrono::steady_clock::now() - begin >= 50ms);
    CHECK(Interruptions::so_far() > 0);
  }

  TEST_CASE("what becomes ready between signals is seen") {
    const Pipe pipe;
    const Interruptions interruptions;
    const std::jthread writer([&] {
      std::this_thread::sleep_for(20ms);
      CHECK(::write(pipe.ends[1], "x", 1) == 1);
    });
    pollfd watched{pipe.ends[0], POLLIN, 0};
    CHECK(poll_until({&watched, 1}, std::chrono::steady_clock::now() + 60s));
    CHECK((watched.revents & POLLIN) != 0);
  }

  TEST_CASE("a deadline that has passed still sees what is ready") {
    const Pipe pipe;
    REQUIRE(::write(pipe.ends[1], "x", 1) == 1);
    pollfd watched{pipe.ends[0], POLLIN, 0};
    CHECK(poll_until({&watched, 1}, std::chrono::steady_clock::now() - 1s));
  }
}
