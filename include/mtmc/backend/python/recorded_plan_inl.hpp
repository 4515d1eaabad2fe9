#pragma once
/// Definitions of backend/python/recorded_plan.hpp.

#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/support/sha256.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::optional<int> recorded_type_bytes(std::string_view type) noexcept {
  constexpr std::pair<std::string_view, int> types[] = {
      {"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1},
      {"i64", 8}, {"i32", 4}, {"i16", 2}, {"i8", 1},   {"u8", 1},     {"bool", 1},
  };
  for (const auto& [name, bytes] : types)
    if (name == type) return bytes;
  return std::nullopt;
}

MTMC_INLINE std::string RecordedKernel::id() const {
  auto content = name + '\n';
  for (const auto& [option, value] : options) content += option + '=' + std::to_string(value) + ' ';
  for (const auto& parameter : parameters) content += '\n' + parameter.name + ": " + parameter.type;
  return sha256_hex(content + '\n' + ir);
}

} // namespace mtmc
