#pragma once
/// The same work for many items, or for all parts of one long sequence, by several threads.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Calls `work(i)` for every i below `count`, at most `limit` at once, this thread among those that do so;
/// with a limit of 1 all in this thread and in order. Fewer at once where the system has no more threads.
/// After an exception nothing more is begun, and when all have ended the one of the lowest i is thrown.
inline void for_each_parallel(std::size_t count, int limit, const std::function<void(std::size_t)>& work) {
  if (limit <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::exception_ptr> errors(count);
  const auto take_turns = [&] {
    for (;;) {
      const auto i = next.fetch_add(1);
      if (i >= count || failed) return;
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    const auto others = std::min(count, static_cast<std::size_t>(limit)) - 1;
    threads.reserve(others);
    try {
      while (threads.size() < others) threads.emplace_back(take_turns);
    } catch (const std::system_error&) {
      // The system has no more threads: those there are do it all.
    }
    take_turns();
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

/// Threads among which work that is bound by memory and arithmetic is divided: as many as this process has
/// processors, but not more than four, which is where one socket's memory is busy.
[[nodiscard]] inline std::size_t threads_for_memory() noexcept {
  return std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
}

/// Calls `work(first, size)` for adjacent parts that together make up `count` elements, each part but the
/// last a multiple of `multiple` and at least `smallest`, all parts at once. Sequences too short for two such
/// parts stay in this thread, as do parts for which the system gives no thread. `work` must not throw.
template <class Work>
void for_each_part(std::size_t count, std::size_t smallest, std::size_t multiple, const Work& work) {
  const std::size_t parts = std::clamp<std::size_t>(count / std::max<std::size_t>(smallest, 1), 1,
                                                    count == 0 ? 1 : threads_for_memory());
  const std::size_t each = (count / parts + multiple - 1) / multiple * multiple;
  std::vector<std::jthread> threads;
  std::size_t first = 0;
  for (; first + each < count; first += each) {
    try {
      threads.emplace_back([&work, first, each] { work(first, each); });
    } catch (const std::system_error&) {
      work(first, each);
    }
  }
  work(first, count - first);
}

} // namespace mtmc::detail
