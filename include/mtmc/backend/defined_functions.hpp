#pragma once
/// Which functions a text in C++ defines, by its tokens.

#include <mtmc/backend/source_tokens.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// All tokens of a text but its end, in order.
[[nodiscard]] inline std::vector<SourceToken> all_tokens(std::string_view text) {
  std::vector<SourceToken> tokens;
  SourceTokens source(text);
  for (auto token = source.next(); token.kind != SourceToken::Kind::end; token = source.next())
    tokens.push_back(std::move(token));
  return tokens;
}

/// Finds heads of functions among tokens: a name with something of a type before it, parentheses and a body
/// behind it. Linear in the number of tokens. What macros write is not seen.
class FunctionHeads {
public:
  /// Keeps a reference to the tokens.
  explicit FunctionHeads(const std::vector<SourceToken>& tokens)
      : tokens_(tokens), close_(tokens.size(), tokens.size()) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].is("(")) open.push_back(i);
      if (!tokens[i].is(")") || open.empty()) continue;
      close_[open.back()] = i;
      open.pop_back();
    }
  }

  /// Whether a function's name stands there, with its parameters behind it.
  [[nodiscard]] bool names(std::size_t i) const {
    if (i == 0 || i + 1 >= tokens_.size() || tokens_[i].kind != SourceToken::Kind::name) return false;
    if (!tokens_[i + 1].is("(") || is_word_of_statements(tokens_[i])) return false;
    const auto& before = tokens_[i - 1];
    if (before.kind == SourceToken::Kind::name) return !is_word_of_statements(before);
    return before.is("*") || before.is("&") || before.is("&&") || before.is(">") || before.is(">>");
  }

  /// Whether a function's name stands there, and behind its parameters its body.
  [[nodiscard]] bool defines(std::size_t i) const {
    if (!names(i)) return false;
    auto at = close_[i + 1] + 1;
    for (; at < tokens_.size(); ++at) {
      if (is_one_of_specifiers(tokens_[at])) continue;
      if (!tokens_[at].is("(") || !is_one_of_specifiers(tokens_[at - 1])) break;
      at = close_[at]; // noexcept(...), __attribute__((...))
    }
    if (at + 1 < tokens_.size() && tokens_[at].is("-") && tokens_[at + 1].is(">"))
      for (const auto last = std::min(at + longest_result, tokens_.size());
           at < last && !tokens_[at].is("{") && !tokens_[at].is(";");)
        ++at;
    return at < tokens_.size() && tokens_[at].is("{");
  }

private:
  /// Tokens of a result that comes behind an arrow; a limit keeps the walk linear.
  static constexpr std::size_t longest_result = 32;

  [[nodiscard]] static bool is_word_of_statements(const SourceToken& token) {
    constexpr auto words = std::to_array<std::string_view>(
        {"if",        "for",      "while",    "switch",        "catch",         "return",
         "else",      "do",       "case",     "throw",         "new",           "delete",
         "sizeof",    "alignof",  "alignas",  "decltype",      "noexcept",      "requires",
         "co_return", "co_await", "co_yield", "not",           "and",           "or",
         "xor",       "goto",     "typeid",   "static_assert", "__attribute__", "__launch_bounds__"});
    return std::find(words.begin(), words.end(), token.spelling) != words.end();
  }
  [[nodiscard]] static bool is_one_of_specifiers(const SourceToken& token) {
    constexpr auto words = std::to_array<std::string_view>(
        {"const", "noexcept", "override", "final", "__attribute__", "__restrict__", "throw"});
    return std::find(words.begin(), words.end(), token.spelling) != words.end();
  }

  const std::vector<SourceToken>& tokens_;
  /// The parenthesis that closes the one at that place; the number of tokens if none does.
  std::vector<std::size_t> close_;
};

/// Names of the functions that a text defines, members among them; not those that macros write.
[[nodiscard]] inline std::set<std::string, std::less<>>
defined_functions(const std::vector<SourceToken>& tokens) {
  const FunctionHeads heads(tokens);
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (heads.defines(i)) names.insert(tokens[i].spelling);
  return names;
}

} // namespace mtmc::detail
