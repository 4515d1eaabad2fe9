#pragma once
/// Element types of buffers and scalars.

#include <mtmc/requirements.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// Element type of a buffer or scalar.
enum class DataType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8 };

namespace detail {
struct DataTypeFacts {
  DataType type;
  std::string_view name;
  std::size_t size;
  bool floating;
  bool is_signed;
  /// Relative spacing of the numbers near one; 0 for integers.
  double epsilon;
};
inline constexpr std::array<DataTypeFacts, 12> data_type_facts{{
    {DataType::f64, "f64", 8, true, true, 0x1p-52},
    {DataType::f32, "f32", 4, true, true, 0x1p-23},
    {DataType::f16, "f16", 2, true, true, 0x1p-10},
    {DataType::bf16, "bf16", 2, true, true, 0x1p-7},
    {DataType::i64, "i64", 8, false, true, 0},
    {DataType::i32, "i32", 4, false, true, 0},
    {DataType::i16, "i16", 2, false, true, 0},
    {DataType::i8, "i8", 1, false, true, 0},
    {DataType::u64, "u64", 8, false, false, 0},
    {DataType::u32, "u32", 4, false, false, 0},
    {DataType::u16, "u16", 2, false, false, 0},
    {DataType::u8, "u8", 1, false, false, 0},
}};
[[nodiscard]] constexpr const DataTypeFacts& facts_of(DataType type) noexcept {
  return data_type_facts[static_cast<std::size_t>(type)];
}
} // namespace detail

/// Short name as in task files: "f32", "bf16", "i64", ...
[[nodiscard]] constexpr std::string_view to_string(DataType type) noexcept {
  return detail::facts_of(type).name;
}
/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DataType type) noexcept { return detail::facts_of(type).size; }
/// Whether it is a floating-point type.
[[nodiscard]] constexpr bool is_floating(DataType type) noexcept { return detail::facts_of(type).floating; }
/// Whether it can hold negative numbers.
[[nodiscard]] constexpr bool is_signed(DataType type) noexcept { return detail::facts_of(type).is_signed; }
/// Relative spacing of the numbers near one (2^-23 for f32); 0 for integers.
[[nodiscard]] constexpr double epsilon_of(DataType type) noexcept { return detail::facts_of(type).epsilon; }
/// The type of that short name, or nothing.
[[nodiscard]] constexpr std::optional<DataType> parse_data_type(std::string_view name) noexcept {
  for (const auto& facts : detail::data_type_facts)
    if (facts.name == name) return facts.type;
  return std::nullopt;
}

} // namespace mtmc
