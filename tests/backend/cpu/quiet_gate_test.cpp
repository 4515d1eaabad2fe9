#include <mtmc/backend/cpu/quiet_gate.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

TEST_SUITE("QuietGate") {
  TEST_CASE("whoever times is alone, and workers are not") {
    mtmc::detail::QuietGate gate;
    std::atomic<int> working = 0;
    std::atomic<int> timing = 0;
    std::atomic<int> disturbed = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 500; ++i) {
          if (t % 2 == 0) {
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
    for (auto& thread : threads) thread.join();
    CHECK(disturbed == 0);

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
    std::atomic<int> working = 0;
    std::atomic<int> timing = 0;
    std::atomic<int> disturbed = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        auto& gate = t < 3 ? here : there;
        for (int i = 0; i < 200; ++i) {
          if (t % 3 == 0) {
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
    for (auto& thread : threads) thread.join();
    CHECK(disturbed == 0);
  }
}
