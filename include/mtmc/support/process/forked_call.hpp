#pragma once
/// A function that is called in a process of its own, whose death costs nothing but its answer.

#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/process_exit.hpp>
#include <mtmc/support/process/process_family.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// What became of a forked call.
struct ForkedCall {
  /// What the function returned, as far as it came; empty if its process ended before.
  std::string answer{};
  /// How its process ended.
  ProcessExit exit{};
  /// Whether it was given up and killed at the end of its time.
  bool late = false;

  /// Whether the function returned and its process ended as it should.
  [[nodiscard]] bool finished() const noexcept { return !late && exit.succeeded(); }
};

namespace detail {

/// The whole life of the forked process. Signals do what they do by default, whatever the host has made of
/// them, and leave no core file.
template <class Function>
[[noreturn]] void live_as_forked(Function&& function, int answer_pipe, pid_t parent) noexcept {
  (void)::setsid();
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGPIPE})
    (void)::signal(number, SIG_DFL);
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  try {
    const std::string answer = std::forward<Function>(function)();
    for (std::string_view rest = answer; !rest.empty();) {
      const auto written = ::write(answer_pipe, rest.data(), rest.size());
      if (written < 0 && errno != EINTR) ::_exit(1);
      if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    }
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

} // namespace detail

/// Calls `function`, which returns text, in a fork of this process, and waits for it at most so long. All
/// that it started is killed when it is over. Call it while no other thread of this process holds what
/// `function` needs: a fork has the calling thread alone, and neither contexts nor handles of device drivers
/// survive in it. Throws std::system_error where this process cannot fork.
template <class Function>
[[nodiscard]] ForkedCall call_in_fork(Function&& function, std::chrono::duration<double> limit) {
  using Clock = std::chrono::steady_clock;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "no pipe to a forked process");
  FileDescriptor source{ends[0]};
  FileDescriptor sink{ends[1]};
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "this process cannot fork");
  if (child == 0) {
    source.reset();
    detail::live_as_forked(std::forward<Function>(function), sink.get(), parent);
  }
  sink.reset();
  ForkedCall call;
  const auto until = Clock::now() + limit;
  // Its own children may keep the pipe open, so that its end says nothing.
  for (bool open = true, ended = false; open && !call.late;) {
    pollfd watched{source.get(), POLLIN, 0};
    constexpr int glance = 20; // milliseconds
    const int ready = ::poll(&watched, 1, ended ? 0 : glance);
    std::array<char, 4096> piece;
    if (ready > 0) {
      const auto size = ::read(source.get(), piece.data(), piece.size());
      if (size > 0) call.answer.append(piece.data(), static_cast<std::size_t>(size));
      open = size > 0 || (size < 0 && errno == EINTR);
    } else if (ended) {
      open = false;
    }
    ended = detail::has_ended(child);
    call.late = !ended && Clock::now() >= until;
  }
  // Its answer may be there before its end.
  while (!call.late && !detail::has_ended(child)) {
    call.late = Clock::now() >= until;
    ::usleep(1000);
  }
  kill_family(child);
  call.exit = detail::reap_child(child);
  return call;
}

} // namespace mtmc
