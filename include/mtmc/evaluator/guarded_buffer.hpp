#pragma once
/// Buffers between two red zones that nobody may write.

#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace mtmc {

/// Where things lie in one allocation: red zone, content, red zone. The content starts at a multiple of 64
/// bytes from the start of the allocation, and the second red zone starts with the very next byte after it.
struct GuardLayout {
  std::size_t front = 0;
  std::size_t bytes = 0;
  std::size_t back = 0;

  [[nodiscard]] std::size_t total() const noexcept { return front + bytes + back; }
};

/// Red zones of at least `smallest` bytes on both sides, larger (a sixteenth of the content, at most 64 KiB)
/// for larger buffers, since a wrong index then misses by more.
[[nodiscard]] inline GuardLayout guard_layout(std::size_t bytes, std::size_t smallest = 4096) noexcept {
  constexpr std::size_t page = 4096;
  constexpr std::size_t largest = 65536;
  const std::size_t wanted = std::clamp(bytes / 16, std::min(smallest, largest), std::max(smallest, largest));
  const std::size_t zone = (wanted + page - 1) / page * page;
  return {zone, bytes, zone};
}

/// Random bytes that red zones are filled with, the same for all buffers of one judge.
class RedZonePattern {
public:
  RedZonePattern(std::uint64_t key, std::size_t bytes) : words_((bytes + 3) / 4) {
    philox_fill(words_, key, 0, 0x9ed);
  }

  /// The first `bytes` of the pattern, at most its length.
  [[nodiscard]] std::span<const std::byte> first(std::size_t bytes) const noexcept {
    return std::as_bytes(std::span(words_)).first(std::min(bytes, 4 * words_.size()));
  }

private:
  std::vector<std::uint32_t> words_;
};

/// A buffer of a backend with its red zones.
template <class B> struct GuardedBuffer {
  typename B::Buffer memory;
  GuardLayout layout;
};

/// What happened to a red zone.
struct RedZoneDamage {
  /// Whether the zone before the content was written; else the one after it.
  bool before = false;
  /// Bytes between the content and the nearest byte that was written: 0 = the very next one.
  std::size_t distance = 0;
};

/// Allocates a buffer and writes its red zones.
template <class B>
[[nodiscard]] GuardedBuffer<B> allocate_guarded(B& backend, const GuardLayout& layout,
                                                const RedZonePattern& pattern) {
  GuardedBuffer<B> buffer{backend.allocate(layout.total()), layout};
  const auto write = [&](std::size_t start, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const auto piece = pattern.first(bytes - done);
      backend.upload(buffer.memory, start + done, piece);
      done += piece.size();
    }
  };
  write(0, layout.front);
  write(layout.front + layout.bytes, layout.back);
  return buffer;
}

/// Looks at every byte of both red zones. Nothing if they are whole.
template <class B>
[[nodiscard]] std::optional<RedZoneDamage> find_red_zone_damage(B& backend, GuardedBuffer<B>& buffer,
                                                                const RedZonePattern& pattern) {
  const auto& layout = buffer.layout;
  std::vector<std::byte> zone(std::max(layout.front, layout.back));
  const auto differs = [&](std::size_t i) {
    const auto whole = pattern.first(zone.size());
    return zone[i] != whole[i % whole.size()];
  };
  const auto equal = [&](std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const auto piece = pattern.first(bytes - done);
      if (std::memcmp(zone.data() + done, piece.data(), piece.size()) != 0) return false;
      done += piece.size();
    }
    return true;
  };
  backend.download(buffer.memory, 0, std::span(zone).first(layout.front));
  if (!equal(layout.front))
    for (std::size_t i = layout.front; i-- > 0;)
      if (differs(i)) return RedZoneDamage{true, layout.front - 1 - i};
  backend.download(buffer.memory, layout.front + layout.bytes, std::span(zone).first(layout.back));
  if (!equal(layout.back))
    for (std::size_t i = 0; i < layout.back; ++i)
      if (differs(i)) return RedZoneDamage{false, i};
  return std::nullopt;
}

} // namespace mtmc
