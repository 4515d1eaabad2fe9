#pragma once

#include <mtmc/analysis/syntax/token_buffer.hpp>

#include <cstddef>
#include <string_view>

/// \file
/// Which tokens of a C-family text are a type: what tells a declaration from an expression, a cast from
/// parentheses and template arguments from a comparison.

namespace mtmc::inline MTMC_ABI::detail {

/// Looks at tokens without moving. Every answer is the index after what was found, or `TokenBuffer::none`.
class TypeScanner {
public:
  explicit TypeScanner(const TokenBuffer& tokens) : tokens_(tokens), limit_(tokens.size()) {}

  /// What `type_end` found.
  struct TypeScan {
    std::size_t end = TokenBuffer::none; ///< after the last specifier; `none` if there is no type
    bool certain = false; ///< a builtin type, a qualifier or template arguments were among them
  };

  /// After `<` at `index`: the index after the matching `>`, or `none` if this does not look like template
  /// arguments. Looks at a bounded number of tokens, so that a text full of `<` stays linear.
  [[nodiscard]] std::size_t template_arguments_end(std::size_t index) const {
    constexpr std::size_t lookahead = 96;
    std::size_t depth = 0;
    for (std::size_t i = index; i < limit_ && i < index + lookahead; ++i) {
      const TokenKind kind = tokens_.kind(i);
      if (kind == TokenKind::identifier || kind == TokenKind::number || kind == TokenKind::character)
        continue;
      if (kind != TokenKind::punctuator) return TokenBuffer::none;
      const std::string_view text = tokens_.text(i);
      if (text == "<")
        ++depth;
      else if (text == ">" || text == ">>" || text == ">>>") {
        if (text.size() > depth) return TokenBuffer::none;
        depth -= text.size();
        if (depth == 0) return i + 1;
      } else if (text == "(" || text == "[") {
        const std::size_t close = tokens_.closing(i);
        if (close == TokenBuffer::none) return TokenBuffer::none;
        i = close;
      } else if (text == ";" || text == "{" || text == "}" || text == ")" || text == "]" || text == "&&" ||
                 text == "||") {
        return TokenBuffer::none;
      }
    }
    return TokenBuffer::none;
  }

  /// After the qualified name with template arguments at `index`, or `none`. In an expression, `<` opens
  /// template arguments only when written without a blank before it and when `(`, `{` or `::` follows.
  [[nodiscard]] std::size_t qualified_name_end(std::size_t index, bool in_expression,
                                               bool& has_arguments) const {
    if (tokens_.is(index, "::")) ++index;
    for (;;) {
      if (!tokens_.is_plain_name(index) && tokens_.word(index) != Word::type) return TokenBuffer::none;
      ++index;
      if (index < limit_ && tokens_.is(index, "<") && !(in_expression && !tokens_.gap(index).empty())) {
        const std::size_t end = template_arguments_end(index);
        const bool fits = end != TokenBuffer::none && (!in_expression || tokens_.is(end, "(") ||
                                                       tokens_.is(end, "{") || tokens_.is(end, "::"));
        if (fits) {
          index = end;
          has_arguments = true;
        }
      }
      if (index + 1 >= limit_ || !tokens_.is(index, "::")) return index;
      ++index;
      if (tokens_.is(index, "template")) ++index;
    }
  }

  /// The type specifiers at `index`: qualifiers and one type, no pointers.
  [[nodiscard]] TypeScan type_end(std::size_t index) const {
    TypeScan scan;
    bool found = false;
    while (index < limit_) {
      const Word word = tokens_.word(index);
      if (word == Word::qualifier || (word == Word::soft_qualifier && !found && is_word(index + 1))) {
        scan.certain = true;
        ++index;
      } else if (word == Word::argued_qualifier) {
        index = after_group(index + 1);
        scan.certain = true;
      } else if (word == Word::elaborated && !found && tokens_.is_plain_name(index + 1) &&
                 (tokens_.is_plain_name(index + 2) || tokens_.is(index + 2, "*"))) {
        index += 2;
        found = scan.certain = true;
      } else if (word == Word::type && !tokens_.is(index + 1, "::")) {
        found = scan.certain = true;
        ++index;
      } else if (!found && (tokens_.is(index, "decltype") || tokens_.is(index, "typeof") ||
                            tokens_.is(index, "__typeof__"))) {
        index = after_group(index + 1);
        found = scan.certain = true;
      } else if (!found && tokens_.is(index, "[") && tokens_.is(index + 1, "[") &&
                 after_group(index) != index) {
        index = after_group(index);
        scan.certain = true;
      } else if (!found && (tokens_.is(index, "::") || tokens_.kind(index) == TokenKind::identifier)) {
        bool has_arguments = false;
        const std::size_t end = qualified_name_end(index, false, has_arguments);
        if (end == TokenBuffer::none) break;
        index = end;
        found = true;
        scan.certain = scan.certain || has_arguments;
      } else {
        break;
      }
    }
    if (found) scan.end = index;
    return scan;
  }

  /// After the pointer and reference part (`* const`, `&`, `* __restrict__`) at `index`.
  [[nodiscard]] std::size_t pointer_end(std::size_t index) const {
    while (index < limit_ && (tokens_.is(index, "*") || tokens_.is(index, "&") || tokens_.is(index, "&&") ||
                              tokens_.word(index) == Word::qualifier))
      ++index;
    return index;
  }

  [[nodiscard]] bool is_word(std::size_t index) const {
    return index < limit_ && tokens_.kind(index) == TokenKind::identifier;
  }

  /// After the bracket group at `index` if there is one, else `index`.
  [[nodiscard]] std::size_t after_group(std::size_t index) const {
    const std::size_t close = tokens_.closing(index);
    return close == TokenBuffer::none || close >= limit_ ? index : close + 1;
  }

protected:
  const TokenBuffer& tokens_;
  std::size_t limit_; ///< no token from here on is seen
};

} // namespace mtmc::detail
