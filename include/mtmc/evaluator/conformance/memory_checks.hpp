#pragma once
/// Device and buffers.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/conformance/trial.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::test {

namespace detail {

/// Bytes that differ from buffer to buffer.
[[nodiscard]] inline std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> content(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    content[i] = static_cast<std::byte>((i * 7 + i / 251 + seed * 31) & 0xff);
  return content;
}

/// What is wrong with a buffer's content; nothing if nothing is.
template <class B>
[[nodiscard]] std::optional<Finding> wrong_content(B& backend, typename B::Buffer& buffer, std::size_t offset,
                                                   std::span<const std::byte> wanted,
                                                   std::string_view remedy) {
  std::vector<std::byte> got(wanted.size(), std::byte{0xee});
  backend.download(buffer, offset, std::span(got));
  if (std::equal(got.begin(), got.end(), wanted.begin())) return std::nullopt;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (got[i] != wanted[i])
      return unexpected(std::to_string(std::to_integer<int>(wanted[i])) + " in byte " +
                            std::to_string(offset + i) + " of a buffer",
                        std::to_string(std::to_integer<int>(got[i])), remedy);
  return std::nullopt;
}

[[nodiscard]] inline Finding check_device(AnyBackend& backend) {
  const Device& device = backend.device();
  constexpr std::string_view remedy = "Fill it in where the backend is made";
  if (device.name.empty()) return unexpected("a device with a name", "an empty `name`", remedy);
  if (device.kind.empty()) return unexpected("a kind, \"gpu\" say", "an empty `kind`", remedy);
  if (device.compute_units < 1)
    return unexpected("at least one compute unit", std::to_string(device.compute_units), remedy);
  return {};
}

[[nodiscard]] inline Finding check_handles(AnyBackend& backend) {
  std::vector<AnyBackend::Buffer> buffers;
  std::set<std::uint64_t> handles;
  for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 0, 1, 7, 4096, 4097, 1 << 20}) {
    buffers.push_back(backend.allocate(bytes));
    const auto handle = static_cast<std::uint64_t>(buffers.back().handle());
    if (handle == 0)
      return unexpected("a handle other than 0 for a buffer of " + std::to_string(bytes) + " bytes", "0",
                        "0 stands for \"not bound\": allocate at least one byte, or number buffers from 1");
    if (!handles.insert(handle).second)
      return unexpected("a handle of its own for every buffer", "one of another buffer that is alive",
                        "Allocate at least one byte, or number the buffers");
  }
  return {};
}

[[nodiscard]] inline Finding check_round_trip(AnyBackend& backend, std::size_t largest) {
  const std::array<std::size_t, 8> sizes{0, 1, 3, 4095, 4096, 4097, 65536, largest};
  constexpr std::string_view remedy =
      "Copy `content.size()` bytes to `offset`, and no byte beside them; wait until the copy is done";
  std::vector<AnyBackend::Buffer> buffers;
  std::vector<std::vector<std::byte>> contents;
  for (const auto bytes : sizes) {
    buffers.push_back(backend.allocate(bytes));
    contents.push_back(pattern(bytes, contents.size()));
    backend.upload(buffers.back(), 0, std::span<const std::byte>(contents.back()));
  }
  // A second round, when all have been written: no two share memory.
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (auto wrong = wrong_content(backend, buffers[i], 0, contents[i], remedy)) return *wrong;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto offset = sizes[i] / 3;
    const auto piece = pattern(sizes[i] / 2, 100 + i);
    backend.upload(buffers[i], offset, std::span<const std::byte>(piece));
    std::copy(piece.begin(), piece.end(), contents[i].begin() + static_cast<std::ptrdiff_t>(offset));
    const auto from = sizes[i] / 5;
    const auto part = std::span<const std::byte>(contents[i]).subspan(from);
    if (auto wrong = wrong_content(backend, buffers[i], from, part, remedy)) return *wrong;
    if (auto wrong = wrong_content(backend, buffers[i], 0, contents[i], remedy)) return *wrong;
  }
  return {};
}

template <class B> [[nodiscard]] Finding check_move(B& backend) {
  constexpr std::string_view remedy = "Keep the memory behind a pointer, and move the pointer alone";
  const auto content = pattern(1000, 5);
  auto first = backend.allocate(content.size());
  backend.upload(first, 0, std::span<const std::byte>(content));
  const auto handle = static_cast<std::uint64_t>(first.handle());
  std::vector<typename B::Buffer> buffers;
  buffers.push_back(std::move(first));
  for (int i = 0; i < 10; ++i) buffers.push_back(backend.allocate(16)); // they move when the vector grows
  if (static_cast<std::uint64_t>(buffers.front().handle()) != handle)
    return unexpected("the same handle after a move", "another one", remedy);
  if (auto wrong = wrong_content(backend, buffers.front(), 0, content, remedy)) return *wrong;
  auto assigned = backend.allocate(5);
  assigned = std::move(buffers.front());
  buffers.clear();
  if (static_cast<std::uint64_t>(assigned.handle()) != handle)
    return unexpected("the same handle after a move assignment", "another one", remedy);
  if (auto wrong = wrong_content(backend, assigned, 0, content, remedy)) return *wrong;
  return {};
}

/// The abilities that save copies, where there are any: the same contents as without them.
[[nodiscard]] inline Finding check_shortcuts([[maybe_unused]] AnyBackend& backend) {
  constexpr std::size_t bytes = 70'001;
  constexpr std::size_t offset = 1003;
  auto content = pattern(bytes, 7);
  auto buffer = backend.allocate(bytes);
  backend.upload(buffer, 0, std::span<const std::byte>(content));
  if (has_ability(backend, BackendAbility::shared_upload)) {
    const auto piece = std::make_shared<const std::vector<std::byte>>(pattern(bytes / 2, 8));
    backend.upload(buffer, offset, std::span<const std::byte>(*piece), piece);
    std::copy(piece->begin(), piece->end(), content.begin() + offset);
    if (auto wrong = wrong_content(backend, buffer, 0, content,
                                   "An upload with an owner is an upload: it counts in a download, too"))
      return *wrong;
    // Later ones lie above earlier ones, of whatever kind.
    const std::vector<std::byte> line(64, std::byte{9});
    backend.upload(buffer, offset, std::span<const std::byte>(*piece), piece);
    backend.upload(buffer, offset + 5, std::span<const std::byte>(line));
    std::copy(line.begin(), line.end(), content.begin() + offset + 5);
    if (auto wrong = wrong_content(backend, buffer, 0, content, "Keep uploads in their order")) return *wrong;
  }
  if (has_ability(backend, BackendAbility::fill)) {
    fill_buffer(backend, buffer, offset + 9, 5000, std::byte{0xff});
    std::fill_n(content.begin() + offset + 9, 5000, std::byte{0xff});
    if (auto wrong = wrong_content(backend, buffer, 0, content, "Fill the bytes asked for, no others"))
      return *wrong;
  }
  if (has_ability(backend, BackendAbility::view)) {
    const auto shown = backend.view(buffer, offset, bytes - offset);
    const auto wanted = std::span<const std::byte>(content).subspan(offset);
    if (!shown.empty() && !std::equal(shown.begin(), shown.end(), wanted.begin(), wanted.end()))
      return unexpected(
          "a view of the bytes that a download gives", "other bytes",
          "Give a view of `bytes` bytes from `offset` on with all uploads in it, or an empty one");
  }
  return {};
}

[[nodiscard]] inline Finding check_out_of_range(AnyBackend& backend) {
  constexpr std::size_t bytes = 4096;
  const auto content = pattern(bytes, 6);
  auto buffer = backend.allocate(bytes);
  backend.upload(buffer, 0, std::span<const std::byte>(content));
  const std::vector<std::byte> zeros(64);
  std::vector<std::byte> target(64);
  // Each begins or ends outside; the last offset overflows when the length is added.
  struct Place {
    std::size_t offset;
    std::size_t length;
  };
  for (const auto& place : {Place{bytes - 63, 64}, Place{bytes, 1}, Place{bytes + 1, 0},
                            Place{std::numeric_limits<std::size_t>::max() - 10, 64}})
    for (const bool up : {true, false}) {
      std::string came = "no exception";
      try {
        if (up)
          backend.upload(buffer, place.offset, std::span<const std::byte>(zeros).first(place.length));
        else
          backend.download(buffer, place.offset, std::span(target).first(place.length));
      } catch (const std::out_of_range&) {
        continue;
      } catch (const std::exception& error) {
        came = std::string("another exception: ") + error.what();
      }
      return unexpected("std::out_of_range from " + std::string(up ? "upload" : "download") + " of " +
                            std::to_string(place.length) + " bytes at " + std::to_string(place.offset) +
                            " of a buffer of " + std::to_string(bytes),
                        came, "Test `offset > size || length > size - offset` before the copy");
    }
  if (has_ability(backend, BackendAbility::view)) {
    try {
      (void)backend.view(buffer, bytes - 63, 64);
      return unexpected("std::out_of_range from view of 64 bytes at " + std::to_string(bytes - 63) +
                            " of a buffer of " + std::to_string(bytes),
                        "no exception", "Test the range as in `download`");
    } catch (const std::out_of_range&) { // as it should be
    }
  }
  if (auto wrong = wrong_content(backend, buffer, 0, content, "Test the range before the copy begins"))
    return *wrong;
  return {};
}

} // namespace detail

/// Device and buffers, which need no kernel.
inline void check_memory(Trial& trial) {
  trial.check("device.filled", "the device has a name, a kind and compute units", {},
              [&] { return detail::check_device(trial.backend()); });
  trial.check("memory.handles", "every buffer that is alive has a handle of its own, which is not 0", {},
              [&] { return detail::check_handles(trial.backend()); });
  trial.check("memory.round_trip", "buffers of many sizes give back what was uploaded, at any offset", {},
              [&] { return detail::check_round_trip(trial.backend(), trial.probe().largest_buffer); });
  trial.check("memory.move", "a buffer keeps content and handle when it is moved", {"memory.round_trip"},
              [&] { return trial.type().check_move(); });
  trial.check("memory.shortcuts", "views, fills and uploads with an owner give what copies give",
              {"memory.round_trip"}, [&] { return detail::check_shortcuts(trial.backend()); });
  trial.check("memory.out_of_range", "upload, download and view outside a buffer throw std::out_of_range",
              {"memory.round_trip"}, [&] { return detail::check_out_of_range(trial.backend()); });
}

} // namespace mtmc::test
