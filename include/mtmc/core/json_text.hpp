#pragma once
/// A member that is JSON text: kept as it is, whatever its form.

#include <mtmc/core/json.hpp>
#include <mtmc/core/json_fields.hpp>

#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// JSON text of any form.
struct JsonText {
  std::string& text;
  [[nodiscard]] bool empty() const noexcept { return text.empty(); }
};
inline void transfer(const JsonCursor& at, JsonText& value) {
  if (at.writing())
    *at.out = parse_text(value.text, false);
  else
    value.text = at.in->dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace mtmc::detail
