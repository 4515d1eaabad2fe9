#pragma once
/// Members of an endpoint's JSON, which may be missing, null or of another type.

#include <mtmc/core/json_fields.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// A member that is there and not null; else null.
[[nodiscard]] inline const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
[[nodiscard]] inline const Json* member(const Json* object, const char* name) {
  return object == nullptr ? nullptr : member(*object, name);
}

/// Empty where there is no such text.
[[nodiscard]] inline std::string string_member(const Json& object, const char* name) {
  const auto* const value = member(object, name);
  return value == nullptr || !value->is_string() ? std::string() : value->get<std::string>();
}

/// A count, also where it is written as a floating-point number; nothing for anything else.
[[nodiscard]] inline std::optional<std::int64_t> count_in(const Json* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto number = value->get<double>();
  if (!(number >= 0 && number < 1e15)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

} // namespace mtmc::detail
