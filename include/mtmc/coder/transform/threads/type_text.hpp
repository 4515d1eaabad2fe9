#pragma once
/// Types as text.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/support/text.hpp>

#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// A type without `const` and `volatile`: "unsigned int" of "const unsigned int".
[[nodiscard]] inline std::string without_qualifiers(std::string_view type) {
  std::string name;
  for (const Token& token : words_of(type)) {
    const std::string_view word = token.text(type);
    if (word == "const" || word == "volatile") continue;
    if (!name.empty() && is_name_character(name.back()) && is_name_character(word.front())) name += ' ';
    name += word;
  }
  return name;
}

/// The type that a pointer's type points to, without what qualifies it: "float" of "const float*
/// __restrict__".
[[nodiscard]] inline std::string pointed_type(std::string_view type) {
  return without_qualifiers(type.substr(0, type.find('*')));
}

} // namespace mtmc::detail
