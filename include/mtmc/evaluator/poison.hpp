#pragma once
/// What buffers hold before a call writes them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace mtmc {

/// Two contents that a kernel cannot both produce by accident. Whatever a kernel leaves unwritten, or
/// computes from memory that nobody wrote, differs between a run on one and a run on the other.
enum class Poison {
  /// All bits set: NaN in every floating-point format, -1 or the largest number as an integer.
  all_ones,
  /// 0xA5 in every byte: a tiny negative number (-2.9e-16 as f32).
  alternating
};

/// The byte that a poison repeats.
[[nodiscard]] constexpr std::byte byte_of(Poison poison) noexcept {
  return poison == Poison::all_ones ? std::byte{0xff} : std::byte{0xa5};
}

/// Elements of `width` bytes that still hold the poison.
[[nodiscard]] inline std::int64_t count_poisoned(std::span<const std::byte> content, std::size_t width,
                                                 Poison poison) noexcept {
  std::int64_t count = 0;
  for (std::size_t i = 0; i + width <= content.size(); i += width) {
    bool whole = true;
    for (std::size_t j = 0; j < width; ++j) whole = whole && content[i + j] == byte_of(poison);
    count += whole ? 1 : 0;
  }
  return count;
}

/// Writes one byte to a part of a backend's buffer: by the backend's own `fill` if it has one, else by
/// uploads.
template <class B>
void fill_buffer(B& backend, typename B::Buffer& buffer, std::size_t offset, std::size_t bytes,
                 std::byte value) {
  if constexpr (requires { backend.fill(buffer, offset, bytes, value); }) {
    backend.fill(buffer, offset, bytes, value);
  } else {
    // Small enough for the nearer caches, large enough that the calls do not count.
    constexpr std::size_t chunk = std::size_t{1} << 18;
    const std::vector<std::byte> block(std::min(bytes, chunk), value);
    for (std::size_t done = 0; done < bytes; done += chunk)
      backend.upload(buffer, offset + done, std::span(block).first(std::min(chunk, bytes - done)));
  }
}

} // namespace mtmc
