#pragma once
/// Contents for a kernel in double precision.

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The same numbers in f64.
[[nodiscard]] inline std::vector<std::byte> in_double_precision(std::span<const std::byte> floats) {
  std::vector<std::byte> result(2 * floats.size());
  for (std::size_t at = 0; at + sizeof(float) <= floats.size(); at += sizeof(float)) {
    float narrow = 0;
    std::memcpy(&narrow, floats.data() + at, sizeof narrow);
    const auto wide = static_cast<double>(narrow);
    std::memcpy(result.data() + 2 * at, &wide, sizeof wide);
  }
  return result;
}

} // namespace mtmc
