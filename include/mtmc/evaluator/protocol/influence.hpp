#pragma once
/// Changing a little of an input, to see what depends on it.

#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/wrong_result.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace mtmc::inline MTMC_ABI {

/// Replaces one element by a clearly different one: 32 above it or (`up` false) below it for real numbers,
/// one for integers; within the range, if there is one, by the end of the range that is further away
/// (integers: the next value, round the end).
inline void replace_element(std::span<std::byte> content, DataType type, std::size_t place,
                            const std::optional<ValueRange>& range, bool up) {
  const double old = detail::element_value(content, type, static_cast<std::int64_t>(place));
  std::byte* at = content.data() + place * size_of(type);
  if (is_floating(type)) {
    double value = (std::isfinite(old) ? old : 0) + (up ? 32.0 : -32.0);
    if (range) value = range->high - old > old - range->low ? range->high : range->low;
    detail::store_real(type, value, range.value_or(ValueRange{-HUGE_VAL, HUGE_VAL}), at);
    return;
  }
  const auto limits = detail::limits_of(type);
  const auto low = range ? static_cast<std::int64_t>(range->low) : limits[0];
  const auto high = range ? static_cast<std::int64_t>(range->high) : limits[1];
  std::int64_t value = 0;
  std::memcpy(&value, at, size_of(type));
  if (is_signed(type) && size_of(type) < 8) value = static_cast<std::int64_t>(old);
  if (up)
    value = value >= high ? low : value + 1;
  else
    value = value <= low ? high : value - 1;
  detail::store_integer(type, value, at);
}

/// Lower bound, with 95 % confidence, of the share of something of which `hits` out of `hits` samples, taken
/// at random, had a property: 0.05^(1/hits).
[[nodiscard]] inline double share_of_hits(int hits) noexcept {
  return hits > 0 ? std::pow(0.05, 1.0 / hits) : 0;
}

} // namespace mtmc
