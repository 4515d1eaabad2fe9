#pragma once
/// Bytes as text (RFC 4648, section 4).

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {
inline constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

/// The bytes in base64, padded with '='.
[[nodiscard]] inline std::string to_base64(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const std::size_t count = bytes.size() - at < 3 ? bytes.size() - at : 3;
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? bytes[at + i] : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= count ? detail::base64_digits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

/// The bytes of such a text; nothing where it is none.
[[nodiscard]] inline std::optional<std::vector<std::uint8_t>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const bool padded = at + i >= text.size() - padding;
      const std::size_t digit = padded ? 0 : detail::base64_digits.find(text[at + i]);
      if (digit == std::string_view::npos) return std::nullopt;
      group = group << 6 | static_cast<std::uint32_t>(digit);
    }
    for (int shift = 16; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(group >> shift));
  }
  for (; padding > 0 && !bytes.empty(); --padding) bytes.pop_back();
  return bytes;
}

} // namespace mtmc
