#include <mtmc/support/parallel.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace mtmc::detail;

TEST_SUITE("work for many items") {
  TEST_CASE("every item is worked on once, by no more threads than allowed") {
    std::array<std::atomic<int>, 100> calls{};
    std::atomic<int> now{0};
    std::atomic<int> most{0};
    for_each_parallel(calls.size(), 3, [&](std::size_t i) {
      const int here = ++now;
      int seen = most;
      while (here > seen && !most.compare_exchange_weak(seen, here)) {
      }
      ++calls[i];
      --now;
    });
    for (const auto& count : calls) CHECK(count == 1);
    CHECK(most <= 3);
  }

  TEST_CASE("with a limit of one all happens here and in order") {
    std::vector<std::size_t> order;
    const auto here = std::this_thread::get_id();
    for_each_parallel(4, 1, [&](std::size_t i) {
      CHECK(std::this_thread::get_id() == here);
      order.push_back(i);
    });
    CHECK(order == std::vector<std::size_t>{0, 1, 2, 3});
  }

  TEST_CASE("of several exceptions the one of the first item is thrown") {
    const auto fail = [](std::size_t i) {
      if (i == 0 || i > 5) throw std::runtime_error("item " + std::to_string(i));
    };
    CHECK_THROWS_WITH(for_each_parallel(50, 4, fail), "item 0");
  }
}

TEST_SUITE("parts of one sequence") {
  TEST_CASE("the parts are adjacent, make up the whole and begin at multiples") {
    for (const std::size_t count : {0ul, 1ul, 767ul, 768ul, 10'000ul, 100'001ul}) {
      std::mutex lock;
      std::vector<std::pair<std::size_t, std::size_t>> parts;
      for_each_part(count, 1000, 768, [&](std::size_t first, std::size_t size) {
        const std::scoped_lock hold(lock);
        parts.emplace_back(first, size);
      });
      std::sort(parts.begin(), parts.end());
      std::size_t end = 0;
      for (const auto& [first, size] : parts) {
        CHECK(first == end);
        CHECK(first % 768 == 0);
        end = first + size;
      }
      CHECK(end == count);
      CHECK(parts.size() <= threads_for_memory());
    }
  }

  TEST_CASE("what is too short for two parts stays in this thread") {
    const auto here = std::this_thread::get_id();
    int calls = 0;
    for_each_part(1999, 1000, 1, [&](std::size_t, std::size_t) {
      CHECK(std::this_thread::get_id() == here);
      ++calls;
    });
    CHECK(calls == 1);
  }
}
