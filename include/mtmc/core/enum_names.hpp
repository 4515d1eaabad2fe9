#pragma once
/// Names of the closed lists, for JSON, reports and messages.

#include <mtmc/requirements.hpp>

#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace mtmc::inline MTMC_ABI {

/// One value of an enumeration and its stable name.
template <class Enum> struct EnumName {
  Enum value;            ///< the value
  std::string_view name; ///< its name in JSON and texts
};

/// An enumeration whose values and names `enum_names(Enum)`, found by its namespace, lists.
template <class Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) { enum_names(value); };

/// The stable name of a value.
template <NamedEnum Enum> [[nodiscard]] constexpr std::string_view to_string(Enum value) noexcept {
  for (const EnumName<Enum>& entry : enum_names(value))
    if (entry.value == value) return entry.name;
  return "?";
}

/// The value of that name, or nothing.
template <NamedEnum Enum>
[[nodiscard]] constexpr std::optional<Enum> parse_enum(std::string_view name) noexcept {
  for (const EnumName<Enum>& entry : enum_names(Enum{}))
    if (entry.name == name) return entry.value;
  return std::nullopt;
}

} // namespace mtmc
