#pragma once

#include <mtmc/analysis/syntax/lexer.hpp>
#include <mtmc/support/text.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// What a C-family text opens and never closes.

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Looks at the tokens of a text, of conditional directives at the first branch only.
class UnfinishedText {
public:
  explicit UnfinishedText(std::string_view source) : source_(source) {}

  [[nodiscard]] std::string find() {
    for (const Token& token : lex(source_)) {
      const auto text = token.text(source_);
      if (token.kind == TokenKind::directive) note_branch(text);
      if (skipped_ > 0) continue;
      if (token.kind == TokenKind::block_comment && (text.size() < 4 || !text.ends_with("*/")))
        return "the comment" + place(token) + " is never closed";
      const bool quoted = token.kind == TokenKind::string || token.kind == TokenKind::character;
      if (quoted && !ends_quoted(text)) return "the quote" + place(token) + " is never closed";
      if (token.kind != TokenKind::punctuator || text.size() != 1) continue;
      if (std::string_view("([{").find(text.front()) != std::string_view::npos) open_.push_back(token);
      if (std::string_view(")]}").find(text.front()) == std::string_view::npos) continue;
      if (open_.empty()) return "the '" + std::string(text) + '\'' + place(token) + " closes nothing";
      if (!matches(open_.back(), text.front())) break;
      open_.pop_back();
    }
    if (open_.empty()) return {};
    return "the '" + std::string(open_.back().text(source_)) + '\'' + place(open_.back()) +
           " is never closed";
  }

private:
  [[nodiscard]] static std::string place(const Token& token) {
    return " at line " + std::to_string(token.line) + ", column " + std::to_string(token.column);
  }
  /// A quoted token ends with its quote, with the end of a raw string, or unfinished with its line.
  [[nodiscard]] static bool ends_quoted(std::string_view text) {
    const auto begin = text.find_first_of("\"'");
    return begin + 1 < text.size() && text.back() == text[begin];
  }
  [[nodiscard]] bool matches(const Token& open, char close) const {
    const char opened = open.text(source_).front();
    return (opened == '(' && close == ')') || (opened == '[' && close == ']') ||
           (opened == '{' && close == '}');
  }
  /// Counts how many conditionals leave out what follows: all branches but the first do, and `#if 0`.
  void note_branch(std::string_view text) {
    text = trim(text.substr(1));
    const auto word = take_identifier(text);
    if (word == "if" || word == "ifdef" || word == "ifndef") {
      branches_.push_back(word == "if" && text == "0");
      skipped_ += branches_.back() ? 1 : 0;
    } else if (branches_.empty()) {
      return;
    } else if (word == "else" || word == "elif" || word == "endif") {
      const bool skipped = branches_.back();
      if (word == "endif") {
        branches_.pop_back();
        skipped_ -= skipped ? 1 : 0;
      } else if (!skipped) {
        branches_.back() = true;
        ++skipped_;
      }
    }
  }

  std::string_view source_;
  std::vector<Token> open_;
  /// Of each conditional around: whether its present branch is left out.
  std::vector<bool> branches_;
  int skipped_ = 0;
};

} // namespace detail

/// "the '(' at line 3, column 12 is never closed": the bracket, quote or comment that a text opens and does
/// not close, or a bracket that closes nothing. Empty if there is none. Macros are not expanded, so that a
/// text whose macros hold single brackets is misjudged: ask only where a text was not understood.
[[nodiscard]] inline std::string find_unfinished(std::string_view source) {
  return detail::UnfinishedText(source).find();
}

} // namespace mtmc
