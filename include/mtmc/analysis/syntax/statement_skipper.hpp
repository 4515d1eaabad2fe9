#pragma once

#include <mtmc/analysis/syntax/token_buffer.hpp>
#include <mtmc/analysis/syntax/type_scanner.hpp>

#include <cstddef>
#include <string_view>

/// \file
/// Where a statement ends that the parser does not understand.

namespace mtmc::inline MTMC_ABI::detail {

/// Finds the ends of statements by keywords, brackets and semicolons alone.
class StatementSkipper : protected TypeScanner {
public:
  /// Sees the tokens up to `limit`.
  StatementSkipper(const TokenBuffer& tokens, std::size_t limit) : TypeScanner(tokens) { limit_ = limit; }

  /// After the statement at `first`, whatever it is: through the heads of loops and ifs to a semicolon or a
  /// closing brace, and on through `else` and `catch`. Iterative, so that no nesting is too deep for it.
  [[nodiscard]] std::size_t end_of(std::size_t first) const {
    const bool is_do = tokens_.is(first, "do");
    std::size_t index = first;
    for (;;) {
      index = skip_simple(skip_heads(index, first));
      const bool goes_on = index < limit_ && (tokens_.is(index, "else") || tokens_.is(index, "catch") ||
                                              (is_do && tokens_.is(index, "while")));
      if (!goes_on || (!is_compound_word(first) && !tokens_.is(index, "else"))) return index;
      if (tokens_.is(index, "while")) return skip_simple(skip_heads(index, first));
    }
  }

private:
  [[nodiscard]] bool is_compound_word(std::size_t index) const {
    return tokens_.is(index, "for") || tokens_.is(index, "while") || tokens_.is(index, "if") ||
           tokens_.is(index, "switch") || tokens_.is(index, "catch") || tokens_.is(index, "do") ||
           tokens_.is(index, "else") || tokens_.is(index, "try");
  }

  [[nodiscard]] std::size_t skip_heads(std::size_t index, std::size_t first) const {
    while (index < limit_) {
      if (is_compound_word(index)) {
        ++index;
        if (tokens_.is(index, "constexpr")) ++index;
        if (tokens_.is(index, "(")) index = after_group(index);
      } else if (index > first && is_compound_word(first) && tokens_.kind(index) == TokenKind::directive) {
        ++index;
      } else {
        break;
      }
    }
    return index;
  }

  [[nodiscard]] std::size_t skip_simple(std::size_t first) const {
    std::size_t index = first;
    while (index < limit_) {
      const TokenKind kind = tokens_.kind(index);
      const bool ends_before =
          kind == TokenKind::directive || kind == TokenKind::launch_comment ||
          (tokens_.word(index) == Word::control && tokens_.starts_line(index) && index > first);
      if (ends_before) return index == first ? index + 1 : index;
      if (kind != TokenKind::punctuator) {
        ++index;
        continue;
      }
      const std::string_view text = tokens_.text(index);
      if (text == ";") return index + 1;
      if (text == "}") return index == first ? index + 1 : index;
      if (text == "{") {
        const std::size_t end = after_group(index);
        if (end == index) return limit_;
        if (tokens_.is(end, ";") && end < limit_) return end + 1;
        if (end >= limit_ || tokens_.starts_line(end) || tokens_.word(end) == Word::reserved ||
            tokens_.word(end) == Word::control || tokens_.is(end, "}"))
          return end;
        index = end;
      } else {
        const std::size_t end = after_group(index);
        index = end == index ? index + 1 : end;
      }
    }
    return limit_;
  }
};

} // namespace mtmc::detail
