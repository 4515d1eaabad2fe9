#include <mtmc/backend/quiet_gate.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace {

/// How often somebody who timed was not alone, when `threads` threads, shared out among gates that exclude
/// each other, time (one in `period`) or work `rounds` times.
int disturbances(const std::vector<mtmc::detail::QuietGate*>& gates, std::size_t threads, std::size_t period,
                 int rounds) {
  std::atomic<int> working = 0;
  std::atomic<int> timing = 0;
  std::atomic<int> disturbed = 0;
  std::vector<std::thread> crowd;
  for (std::size_t t = 0; t < threads; ++t)
    crowd.emplace_back([&, t] {
      auto& gate = *gates[t * gates.size() / threads];
      for (int i = 0; i < rounds; ++i) {
        if (t % period == 0) {
          const auto hold = gate.time();
          if (++timing != 1 || working != 0) ++disturbed;
          --timing;
        } else {
          const auto hold = gate.work();
          ++working;
          if (timing != 0) ++disturbed;
          --working;
        }
      }
    });
  for (auto& thread : crowd) thread.join();
  return disturbed;
}

} // namespace

TEST_SUITE("QuietGate") {
  TEST_CASE("whoever times is alone, and workers are not") {
    mtmc::detail::QuietGate gate;
    CHECK(disturbances({&gate}, 4, 2, 500) == 0);

    // Two workers at once: neither could go on if the other kept it out.
    std::atomic<int> inside = 0;
    const auto meet = [&] {
      const auto hold = gate.work();
      ++inside;
      while (inside < 2) std::this_thread::yield();
    };
    std::thread first(meet);
    std::thread second(meet);
    first.join();
    second.join();
    CHECK(inside == 2);
  }

  TEST_CASE("first come, first served: a stream of workers does not keep out who wants to time") {
    mtmc::detail::QuietGate gate;
    std::atomic<bool> timed = false;
    std::vector<std::thread> workers;
    for (int t = 0; t < 3; ++t)
      workers.emplace_back([&] {
        while (!timed) {
          const auto hold = gate.work();
          std::this_thread::yield();
        }
      });
    {
      const auto hold = gate.time();
      timed = true;
    }
    for (auto& worker : workers) worker.join();
    CHECK(timed);
  }

  // Two gates know of each other only through the lock's file, as those of two processes do.
  TEST_CASE("with a device lock whoever times is alone among all processes") {
    const mtmc::TemporaryFolder folder;
    const mtmc::DeviceLock lock{folder.path(), "cpu"};
    mtmc::detail::QuietGate here{lock};
    mtmc::detail::QuietGate there{lock};
    CHECK(disturbances({&here, &there}, 6, 3, 200) == 0);
  }
}
