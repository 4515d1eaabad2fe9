#pragma once
/// Definitions of core/action.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/action.hpp>

#include <string>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string Action::text() const {
  if (kind == Kind::stop) return "stop";
  if (kind == Kind::free_text) return free_text;
  std::string result = verb + ' ' + label + " in line " + std::to_string(first_line);
  if (last_line != first_line) result += " to " + std::to_string(last_line);
  return result;
}

MTMC_INLINE std::string Action::key() const {
  if (kind == Kind::stop) return "stop";
  if (kind == Kind::free_text) return "free|" + free_text;
  return optimization + '|' + region;
}

} // namespace mtmc
