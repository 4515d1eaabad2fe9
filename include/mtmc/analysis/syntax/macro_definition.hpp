#pragma once
/// Macros that a file defines.

#include <mtmc/support/text.hpp>

#include <cstddef>
#include <optional>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// `#define NAME meaning`. Both parts lie in the text of the line.
struct MacroDefinition {
  std::string_view name{};
  std::string_view meaning{}; ///< what stands behind the name, parameters of the macro included
  /// A macro with parameters: nothing stands between its name and their bracket.
  [[nodiscard]] bool has_parameters() const noexcept { return meaning.starts_with('('); }
};

/// What a line of the preprocessor defines; nothing where it is another directive.
[[nodiscard]] inline std::optional<MacroDefinition> macro_definition(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = trim(line.substr(1));
  if (take_identifier(line) != "define") return std::nullopt;
  std::size_t length = 0;
  while (length < line.size() && is_name_character(line[length])) ++length;
  if (length == 0) return std::nullopt;
  return MacroDefinition{line.substr(0, length), line.substr(length)};
}

} // namespace mtmc::detail
