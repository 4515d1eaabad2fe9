#pragma once
/// What buffers hold before a call writes them.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Content of outputs and scratch buffers before a call. Whatever a kernel leaves unwritten, or computes from
/// memory that nobody wrote, differs between a run on one poison and a run on another.
struct Poison {
  /// Key of random bytes, as memory holds them outside of a judge; nothing = `byte` throughout.
  std::optional<std::uint64_t> noise{};
  /// All bits set are NaN in every floating-point format, and -1 or the largest number as an integer.
  std::byte byte{0xff};

  /// All zero, as fresh memory is.
  [[nodiscard]] static constexpr Poison zeros() noexcept { return {std::nullopt, std::byte{0}}; }
};

/// Elements of `width` bytes that still hold the poison. 0 for random bytes and zeros, which cannot be told
/// from a result.
[[nodiscard]] inline std::int64_t count_poisoned(std::span<const std::byte> content, std::size_t width,
                                                 const Poison& poison) noexcept {
  if (poison.noise || poison.byte == std::byte{0}) return 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i + width <= content.size(); i += width) {
    bool whole = true;
    for (std::size_t j = 0; j < width; ++j) whole = whole && content[i + j] == poison.byte;
    count += whole ? 1 : 0;
  }
  return count;
}

/// Writes random bytes to a part of a backend's buffer. Equal `key` and `stream` give equal bytes.
inline void fill_with_noise(AnyBackend& backend, AnyBackend::Buffer& buffer, std::size_t offset,
                            std::size_t bytes, std::uint64_t key, std::uint64_t stream) {
  std::vector<std::uint32_t> words((std::min(bytes, detail::fill_chunk) + 3) / 4);
  for (std::size_t done = 0; done < bytes; done += detail::fill_chunk) {
    philox_fill(words, key, done / 16, stream);
    backend.upload(buffer, offset + done,
                   std::as_bytes(std::span(words)).first(std::min(detail::fill_chunk, bytes - done)));
  }
}

/// Writes random bytes to a part of a backend's buffer, the same ones every 256 KiB: as good as others to a
/// kernel that must not read them, and several times as fast to come by.
inline void fill_with_repeated_noise(AnyBackend& backend, AnyBackend::Buffer& buffer, std::size_t offset,
                                     std::size_t bytes, std::uint64_t key, std::uint64_t stream) {
  const auto words =
      std::make_shared<std::vector<std::uint32_t>>((std::min(bytes, detail::fill_chunk) + 3) / 4);
  philox_fill(*words, key, 0, stream);
  detail::upload_repeatedly(backend, buffer, offset, bytes,
                            std::as_bytes(std::span<const std::uint32_t>(*words)), words);
}

/// A part of a backend's buffer, looked at where it lies if the backend shows it; else copied to `room`,
/// which then holds it.
[[nodiscard]] inline std::span<const std::byte> look_at(AnyBackend& backend, AnyBackend::Buffer& buffer,
                                                        std::size_t offset, std::size_t bytes,
                                                        std::vector<std::byte>& room) {
  if (const auto shown = view_of(backend, buffer, offset, bytes); shown.size() == bytes) return shown;
  room.resize(bytes);
  backend.download(buffer, offset, std::span(room));
  return room;
}

} // namespace mtmc
