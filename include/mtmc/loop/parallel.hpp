#pragma once
/// The same work for many items, several at a time.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace mtmc::detail {

/// Calls `work(i)` for every i below `count`, at most `limit` at once; with a limit of 1 all in this thread
/// and in order. After an exception nothing more is begun, and when all have ended the one of the lowest i
/// is thrown.
inline void for_each_parallel(std::size_t count, int limit, const std::function<void(std::size_t)>& work) {
  if (limit <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::exception_ptr> errors(count);
  {
    std::vector<std::jthread> threads;
    const auto workers = std::min(count, static_cast<std::size_t>(limit));
    threads.reserve(workers);
    for (std::size_t worker = 0; worker < workers; ++worker)
      threads.emplace_back([&] {
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
      });
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

} // namespace mtmc::detail
