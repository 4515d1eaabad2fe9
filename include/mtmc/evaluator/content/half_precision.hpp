#pragma once
/// The two 16-bit floating-point formats in software, because the host's compiler need not have them.

#include <mtmc/requirements.hpp>

#include <bit>
#include <cstdint>

namespace mtmc::inline MTMC_ABI {

/// The value of an IEEE 754 binary16 number; exact.
[[nodiscard]] constexpr float half_to_float(std::uint16_t half) noexcept {
  constexpr std::uint32_t exponent_mask = 0x7c00u << 13;
  const std::uint32_t sign = (half & 0x8000u) << 16;
  std::uint32_t bits = (half & 0x7fffu) << 13;
  const std::uint32_t exponent = bits & exponent_mask;
  bits += (127u - 15u) << 23;
  if (exponent == exponent_mask) {
    bits += (128u - 16u) << 23;
  } else if (exponent == 0) {
    // A subnormal: read as 2^-14 * (1 + m) and take the implicit one away again, which normalises it exactly.
    bits += 1u << 23;
    bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) - 0x1p-14f);
  }
  return std::bit_cast<float>(bits | sign);
}

/// The IEEE 754 binary16 number nearest to `value`, ties to even; too large values become infinite, NaN stays
/// NaN.
[[nodiscard]] constexpr std::uint16_t float_to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t result = 0;
  if (magnitude >= 0x47800000u) {
    result = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // Adding 0.5 moves the last bit of a binary16 subnormal to the last bit of the float, which rounds it.
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    result = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(result | sign);
}

/// The value of a bfloat16 number; exact.
[[nodiscard]] constexpr float bfloat16_to_float(std::uint16_t number) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(number) << 16);
}

/// The bfloat16 number nearest to `value`, ties to even; too large values become infinite, NaN stays NaN.
[[nodiscard]] constexpr std::uint16_t float_to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

} // namespace mtmc
