#pragma once

#include <mtmc/core/error.hpp>
#include <mtmc/support/device_lock.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Keeps a machine quiet while something is timed: any number may work, or one may time. First come, first
/// served, so that neither starves the other. With a device lock this holds across processes, too.
class QuietGate {
public:
  QuietGate() = default;
  explicit QuietGate(DeviceLock across) : across_(std::move(across)) {}

  /// Holds the gate while it lives.
  class Hold {
  public:
    Hold(QuietGate& gate, bool timing) : turn_(gate, timing) {
      across_ = timing ? gate.across_.alone() : gate.across_.share();
    }

  private:
    struct Turn {
      Turn(QuietGate& gate, bool timing) : gate_(gate), timing_(timing) { gate_.enter(timing_); }
      Turn(const Turn&) = delete;
      Turn& operator=(const Turn&) = delete;
      ~Turn() { gate_.leave(timing_); }
      QuietGate& gate_;
      bool timing_;
    };
    Turn turn_;
    DeviceLock::Hold across_;
  };

  /// Waits until no timing is under way. Throws as `DeviceLock` does.
  [[nodiscard]] Hold work() { return Hold{*this, false}; }
  /// Waits until neither work nor timing is under way. Throws as `DeviceLock` does.
  [[nodiscard]] Hold time() { return Hold{*this, true}; }

private:
  void enter(bool timing) {
    std::unique_lock lock(mutex_);
    const auto ticket = last_ticket_++;
    changed_.wait(lock, [&] { return ticket == served_ && !timing_ && (!timing || working_ == 0); });
    ++served_;
    if (timing)
      timing_ = true;
    else
      ++working_;
    changed_.notify_all();
  }
  void leave(bool timing) {
    const std::scoped_lock lock(mutex_);
    if (timing)
      timing_ = false;
    else
      --working_;
    changed_.notify_all();
  }

  DeviceLock across_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t served_ = 0;
  int working_ = 0;
  bool timing_ = false;
};

/// What `take` gives, a hold on a gate. Throws `Error` (`mtmc.backend.005`) about that option, which names
/// the folder of the lock across processes, if that lock cannot be had.
template <class Take> [[nodiscard]] QuietGate::Hold hold_gate(const char* option, const Take& take) {
  try {
    return take();
  } catch (const std::system_error& error) {
    throw Error(error_id::backend_lock, error.what(), "Name a folder in which files can be locked")
        .about(option);
  }
}

/// A deadline put off by the time since `begin`, which was spent waiting.
[[nodiscard]] inline std::chrono::steady_clock::time_point
put_off(std::chrono::steady_clock::time_point deadline, std::chrono::steady_clock::time_point begin) {
  using Time = std::chrono::steady_clock::time_point;
  const auto waited = std::chrono::steady_clock::now() - begin;
  return deadline > Time::max() - waited ? Time::max() : deadline + waited;
}

} // namespace mtmc::detail
