#pragma once

#include <mtmc/analysis/syntax/lexer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// \file
/// The words of a type's text: qualifiers, address spaces, the type of a value.

namespace mtmc::inline MTMC_ABI::detail {

/// Calls `replacement(word)` for each word of a type's text; an empty answer takes the word out.
template <class Replacement>
[[nodiscard]] std::string with_words(std::string_view type, const Replacement& replacement) {
  std::string result;
  std::size_t done = 0;
  bool glued = true; // nothing that a blank should follow stands before
  for (const Token& token : words_of(type)) {
    if (!glued) result += type.substr(done, token.begin - done);
    done = token.end;
    const std::string word = replacement(std::string(token.text(type)));
    result += word;
    glued = word.empty() && (glued || result.empty() || result.back() == ' ');
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

/// Whether a type's text has one of the words.
[[nodiscard]] inline bool has_any_word(std::string_view type, std::string_view one, std::string_view other) {
  for (const Token& token : words_of(type))
    if (token.text(type) == one || token.text(type) == other) return true;
  return false;
}

/// The address space that a type's text names: "global", "local", "constant", "private"; empty if none.
[[nodiscard]] inline std::string address_space(std::string_view type) {
  for (const std::string_view space : {"global", "local", "constant", "private"})
    if (has_any_word(type, "__" + std::string(space), space)) return std::string(space);
  return has_any_word(type, "__shared__", "__shared__") ? "local" : "";
}

/// A type's text without qualifiers and pointers: "float" of "__global const float*".
[[nodiscard]] inline std::string value_type(std::string_view type) {
  return with_words(type, [](const std::string& word) -> std::string {
    const bool dropped = word == "const" || word == "volatile" || word == "*" || word == "restrict" ||
                         word == "__restrict__" || word == "__restrict" || word == "__shared__" ||
                         !address_space(word).empty();
    return dropped ? std::string{} : word;
  });
}

} // namespace mtmc::detail
