#pragma once
/// Points in time from which on something is too late.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace mtmc::inline MTMC_ABI::detail {

/// So many seconds from now; at most ten years, which the clock can hold.
[[nodiscard]] inline std::chrono::steady_clock::time_point deadline_in(double seconds) {
  constexpr double ten_years = 3.2e8;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(std::clamp(seconds, 0.0, ten_years)));
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
