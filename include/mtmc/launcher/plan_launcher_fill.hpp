#pragma once
/// A fill of a recorded plan as what a driver can do: equal elements in rows.

#include <mtmc/backend/python/recorded_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Rows of neighbours.
struct FilledRows {
  std::int64_t width = 1; ///< elements of a row
  std::int64_t rows = 1;  ///< how many; 0 if there is nothing to fill
  std::int64_t pitch = 0; ///< elements from the beginning of a row to that of the next
};

/// The elements of a view as rows; nothing where they are none.
[[nodiscard]] inline std::optional<FilledRows> filled_rows(const RecordedView& view) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes; // stride and extent
  for (std::size_t axis = 0; axis < view.sizes.size(); ++axis) {
    if (view.sizes[axis] == 0) return FilledRows{0, 0, 0};
    // Along an axis without stride it is always the same element.
    if (view.sizes[axis] > 1 && view.strides[axis] > 0)
      axes.emplace_back(view.strides[axis], view.sizes[axis]);
  }
  std::sort(axes.begin(), axes.end());
  FilledRows filled;
  for (const auto& [stride, extent] : axes) {
    if (filled.rows == 1 && stride == filled.width)
      filled.width *= extent;
    else if (filled.rows == 1 && stride > filled.width)
      filled = {filled.width, extent, stride};
    else if (filled.rows > 1 && stride == filled.pitch * filled.rows)
      filled.rows *= extent;
    else
      return std::nullopt;
  }
  return filled;
}

/// A number as a floating-point type of 16 bits, rounded to the nearest, ties to even.
[[nodiscard]] inline std::uint64_t bits_of_16(float value, int mantissa_bits) {
  constexpr int bits = 16;
  const int bias = (1 << (bits - 2 - mantissa_bits)) - 1;
  const auto infinite = static_cast<std::uint64_t>(2 * bias + 1) << mantissa_bits;
  const auto sign = std::signbit(value) ? std::uint64_t{1} << (bits - 1) : 0;
  if (std::isnan(value)) return infinite | std::uint64_t{1} << (mantissa_bits - 1);
  if (std::isinf(value)) return sign | infinite;
  if (value == 0) return sign;
  // The exponent of subnormal numbers is that of the smallest normal ones.
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const auto digits =
      static_cast<std::uint64_t>(std::nearbyint(std::ldexp(std::fabs(value), mantissa_bits - exponent)));
  // The leading one of a normal number adds one to the exponent, as does a carry.
  const auto whole = (static_cast<std::uint64_t>(exponent + bias - 1) << mantissa_bits) + digits;
  return sign | std::min(whole, infinite);
}

/// A filled element's bits; nothing for a value that the type cannot hold, or of 8 bits and not zero.
[[nodiscard]] inline std::optional<std::uint64_t> filled_bits(const RecordedValue& value,
                                                              std::string_view type) {
  const bool real = value.kind == RecordedValue::Kind::real;
  const auto of = [](auto number) {
    std::uint64_t word = 0;
    std::memcpy(&word, &number, sizeof number);
    return word;
  };
  const auto number = [&]<class T>(T) {
    return real ? static_cast<T>(value.real) : static_cast<T>(value.integer);
  };
  if (type == "f64") return of(number(double{}));
  if (type == "f32") return of(number(float{}));
  if (type == "f16") return bits_of_16(number(float{}), 10);
  if (type == "bf16") return bits_of_16(number(float{}), 7);
  if (type == "bool") return real ? value.real != 0 : value.integer != 0;
  if (type.starts_with("f8")) {
    const bool zero = real ? value.real == 0 && !std::signbit(value.real) : value.integer == 0;
    return zero ? std::optional<std::uint64_t>(0) : std::nullopt;
  }
  constexpr double most = 9.2e18; // below 2^63
  if (real && !(std::fabs(value.real) < most)) return std::nullopt;
  const int bits = 8 * recorded_type_bytes(type).value_or(8);
  const auto word = static_cast<std::uint64_t>(number(std::int64_t{}));
  return bits == 64 ? word : word & ((std::uint64_t{1} << bits) - 1);
}

} // namespace mtmc::detail
