#pragma once
/// Points in time from which on something is too late.

#include <mtmc/requirements.hpp>

#include <climits>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <poll.h>
#include <span>
#include <stop_token>

namespace mtmc::inline MTMC_ABI::detail {

/// So many seconds from now; at most ten years, which the clock can hold.
[[nodiscard]] inline std::chrono::steady_clock::time_point deadline_in(double seconds) {
  constexpr double ten_years = 3.2e8;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(std::clamp(seconds, 0.0, ten_years)));
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

/// `duration` after `deadline`, or the end of time if that is beyond it.
[[nodiscard]] inline std::chrono::steady_clock::time_point
later_by(std::chrono::milliseconds duration, std::chrono::steady_clock::time_point deadline) noexcept {
  constexpr auto end = std::chrono::steady_clock::time_point::max();
  return deadline > end - duration ? end : deadline + duration;
}

/// The timeout for poll() that ends at `deadline`, rounded up so that nobody spins in the last millisecond,
/// or after `longest` milliseconds. 0 only once the deadline is there.
[[nodiscard]] inline int poll_timeout(std::chrono::steady_clock::time_point deadline,
                                      int longest = INT_MAX) noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (deadline <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return left > longest ? longest : static_cast<int>(left);
}

/// Waits until one of the descriptors is ready, until `deadline` at most; whether one is. Signals, which a
/// host's profiler or timers send, do not end the wait.
[[nodiscard]] inline bool poll_until(std::span<pollfd> watched,
                                     std::chrono::steady_clock::time_point deadline) noexcept {
  for (;;) {
    const int ready = ::poll(watched.data(), watched.size(), poll_timeout(deadline));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

/// Waits so many seconds; false if it was asked to stop before.
[[nodiscard]] inline bool wait_unless_stopped(double seconds, const std::stop_token& stop) {
  std::mutex unused;
  std::condition_variable_any never;
  std::unique_lock lock(unused);
  (void)never.wait_until(lock, stop, deadline_in(seconds), [] { return false; });
  return !stop.stop_requested();
}

} // namespace mtmc::detail
