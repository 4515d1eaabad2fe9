#pragma once
/// Bytes as text, for what Python's JSON cannot hold.

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Bytes from hexadecimal digits; empty where they are none.
[[nodiscard]] inline std::string from_hexadecimal(std::string_view digits) {
  const auto value = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    if (value(digits[i]) < 0 || value(digits[i + 1]) < 0) return {};
    bytes.push_back(static_cast<char>(16 * value(digits[i]) + value(digits[i + 1])));
  }
  return bytes;
}

} // namespace mtmc::detail
