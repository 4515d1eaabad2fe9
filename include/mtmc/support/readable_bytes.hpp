#pragma once
/// Sizes of memory as a reader of a message takes them in.

#include <mtmc/requirements.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// "49152 bytes" below 1 MiB, where every byte may matter; from there on three digits: "26.4 GiB". A size
/// that is no finite number of 0 or more is "? bytes".
[[nodiscard]] inline std::string readable_bytes(double bytes) {
  constexpr double mebi = 1024.0 * 1024.0;
  std::array<char, 48> text{};
  if (!(bytes >= 0 && bytes <= 1e300)) return "? bytes";
  if (bytes < mebi) {
    std::snprintf(text.data(), text.size(), "%.0f %s", bytes, bytes == 1 ? "byte" : "bytes");
    return text.data();
  }
  constexpr std::array<const char*, 5> units{"MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  // What would be rounded to 1024 of a unit is 1 of the next.
  for (bytes /= mebi; bytes >= 1023.5 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  const int decimals = bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f", decimals, bytes);
  std::string number = text.data();
  if (number.find('.') != std::string::npos) {
    while (number.ends_with('0')) number.pop_back();
    if (number.ends_with('.')) number.pop_back();
  }
  return number + ' ' + units[unit];
}

} // namespace mtmc
