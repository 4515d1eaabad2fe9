#pragma once
/// Getting memory out of all caches.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mtmc::inline MTMC_ABI::detail {

#if defined(__x86_64__)
__attribute__((target("clflushopt"))) inline void
flush_lines_optimized(const std::byte* first, const std::byte* last, std::size_t line) noexcept {
  for (; first < last; first += line) __builtin_ia32_clflushopt(first);
}

inline void flush_lines(const std::byte* first, const std::byte* last) noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  std::size_t line = 64;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0 && ((b >> 8) & 0xff) != 0) line = std::size_t{(b >> 8) & 0xff} * 8;
  first -= reinterpret_cast<std::uintptr_t>(first) % line;
  constexpr unsigned clflushopt_bit = 1u << 23;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & clflushopt_bit) != 0) {
    flush_lines_optimized(first, last, line);
  } else {
    for (; first < last; first += line) __builtin_ia32_clflush(first);
  }
  // Unlike clflush, clflushopt is ordered only by a fence.
  __builtin_ia32_mfence();
}
inline constexpr bool flushes_lines = true;
#elif defined(__aarch64__)
inline void flush_lines(const std::byte* first, const std::byte* last) noexcept {
  std::uint64_t cache_type = 0;
  __asm__ volatile("mrs %0, ctr_el0" : "=r"(cache_type));
  const std::size_t line = std::size_t{4} << ((cache_type >> 16) & 0xf);
  first -= reinterpret_cast<std::uintptr_t>(first) % line;
  for (; first < last; first += line) __asm__ volatile("dc civac, %0" : : "r"(first) : "memory");
  __asm__ volatile("dsb sy" : : : "memory");
}
inline constexpr bool flushes_lines = true;
#else
inline void flush_lines(const std::byte*, const std::byte*) noexcept {}
inline constexpr bool flushes_lines = false;
#endif

/// Evicts memory from the caches of all cores and writes dirty lines back, so that neither warm data nor a
/// write-back falls into the next timed call. The flush instructions go by physical address and so reach what
/// other processes have cached of shared memory; a processor without them gets its caches filled with
/// something else.
class CacheEvictor {
public:
  /// `last_level_bytes` is the capacity of the last-level cache, for processors without flush instructions.
  explicit CacheEvictor(std::int64_t last_level_bytes) {
    if constexpr (!flushes_lines)
      sweep_.resize(static_cast<std::size_t>(std::max<std::int64_t>(2 * last_level_bytes, 32 << 20)));
  }

  void evict(std::span<const std::span<std::byte>> ranges) noexcept {
    if constexpr (flushes_lines) {
      for (const auto range : ranges) flush_lines(range.data(), range.data() + range.size());
    } else {
      for (std::size_t i = 0; i < sweep_.size(); i += 32) sweep_[i] = static_cast<std::byte>(i);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }

private:
  std::vector<std::byte> sweep_;
};

} // namespace mtmc::detail
