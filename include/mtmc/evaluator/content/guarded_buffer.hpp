#pragma once
/// Buffers with something around them that a kernel must not touch.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What lies next to the content of a buffer.
enum class BufferGuard {
  /// Red zones on both sides: writes are seen afterwards.
  red_zones,
  /// No memory before the first byte, a red zone behind the last: reads before the buffer crash, too.
  page_before,
  /// No memory behind the last byte but for less than an alignment (64 bytes, 256 in mapped memory), a red
  /// zone
  /// before the first.
  page_behind
};

/// Where things lie in one allocation: red zone, content, red zone. The content starts at a multiple of 64
/// bytes from the start of the allocation, the second red zone with the very next byte after it.
struct GuardLayout {
  std::size_t front = 0; ///< bytes of the first red zone
  std::size_t bytes = 0; ///< bytes of the content
  std::size_t back = 0;  ///< bytes of the second red zone

  /// Bytes of the whole allocation.
  [[nodiscard]] std::size_t total() const noexcept { return front + bytes + back; }
};

/// Red zones of at least `smallest` bytes on both sides, larger (a sixteenth of the content, at most 64 KiB)
/// for larger buffers, since a wrong index then misses by more. The allocation is whole pages of `page`
/// bytes, so that no byte of its last page goes unwatched.
[[nodiscard]] inline GuardLayout guard_layout(std::size_t bytes, std::size_t smallest = 4096,
                                              BufferGuard guard = BufferGuard::red_zones,
                                              std::size_t page = 4096) noexcept {
  constexpr std::size_t largest = 65536;
  constexpr std::size_t alignment = 64;
  const auto whole_pages = [&](std::size_t size) { return (size + page - 1) / page * page; };
  const std::size_t wanted = std::clamp(bytes / 16, std::min(smallest, largest), std::max(smallest, largest));
  const std::size_t zone = whole_pages(wanted);
  if (guard == BufferGuard::page_behind) {
    const std::size_t total = whole_pages(bytes + zone);
    const std::size_t front = (total - bytes) / alignment * alignment;
    return {front, bytes, total - front - bytes};
  }
  const std::size_t front = guard == BufferGuard::page_before ? 0 : zone;
  return {front, bytes, whole_pages(front + bytes + zone) - front - bytes};
}

/// The same layout, but the content begins `shift` bytes later; the allocation is a page larger.
[[nodiscard]] inline GuardLayout shifted(const GuardLayout& layout, std::size_t shift,
                                         std::size_t page = 4096) noexcept {
  return {layout.front + shift, layout.bytes, layout.back + page - shift};
}

/// The same in memory of whole `granules` with nothing beside it: the content ends where the memory does, or
/// begins there, and all other bytes of it are one red zone. An end is met to 255 bytes, which are a red zone
/// as well, since the content starts at a multiple of 256 bytes like all memory of a GPU.
[[nodiscard]] inline GuardLayout mapped_layout(std::size_t bytes, std::size_t smallest, BufferGuard guard,
                                               std::size_t granule) noexcept {
  constexpr std::size_t alignment = 256;
  const std::size_t total = (bytes + smallest + granule) / granule * granule;
  const std::size_t front = guard == BufferGuard::page_before ? 0 : (total - bytes) / alignment * alignment;
  return {front, bytes, total - front - bytes};
}

/// A buffer of a backend with its red zones, whose random bytes are others in each call.
struct GuardedBuffer {
  /// The allocation.
  AnyBackend::Buffer memory;
  /// What lies where in it.
  GuardLayout layout;
  /// Key of the bytes in the red zones, and which of its streams: 2 * `place` before, 2 * `place` + 1 behind.
  std::uint64_t key = 0;
  std::uint64_t place = 0; ///< which streams of the key
};

/// What happened to a red zone.
struct RedZoneDamage {
  /// Whether the zone before the content was written; else the one after it.
  bool before = false;
  /// Bytes between the content and the nearest byte that was written: 0 = the very next one.
  std::size_t distance = 0;
};

} // namespace mtmc
