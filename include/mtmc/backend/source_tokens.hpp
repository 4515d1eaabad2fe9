#pragma once
/// The tokens of a C++ text as its compiler sees them, for screening and rewriting: spelling and place,
/// nothing of grammar.

#include <mtmc/support/text.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::detail {

/// One token. Literals are told from names, because only names can do harm.
struct SourceToken {
  enum class Kind { name, number, text, header, punctuation, end };
  Kind kind = Kind::end;
  /// With spliced lines joined; for `text` the literal without prefix and quotes, for `header` what stands
  /// between the angle brackets.
  std::string spelling{};
  /// 1-based line on which it begins.
  int line = 1;
  /// Whether it is the first one of its (spliced) line.
  bool starts_line = false;
  /// Bytes of the text it takes up: from `begin` to before `end`.
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] bool is(std::string_view text) const noexcept {
    return kind != Kind::text && kind != Kind::header && spelling == text;
  }
};

/// Takes a text apart, by the rules of C++ in translation phases 2 and 3: a backslash at the end of a line
/// joins it to the next one (with blanks behind it too, as compilers have it), except within raw strings;
/// comments are blanks; digraphs come out as what they stand for.
class SourceTokens {
public:
  explicit SourceTokens(std::string_view text) : text_(text) {}

  /// The next token; kind `end` at the end of the text, again and again.
  [[nodiscard]] SourceToken next() {
    skip_blanks();
    SourceToken token;
    token.line = line_;
    token.starts_line = starts_line_;
    starts_line_ = false;
    const char c = peek();
    token.begin = token.end = at_;
    if (c == '\0') return token;
    if (begins_name(c)) {
      token.kind = SourceToken::Kind::name;
      while (is_name_part(peek())) token.spelling += take();
      if ((peek() == '"' || peek() == '\'') && is_prefix(token.spelling)) {
        const bool raw = token.spelling.back() == 'R' && peek() == '"';
        token.kind = SourceToken::Kind::text;
        token.spelling = raw ? take_raw() : take_quoted();
      }
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      token.kind = SourceToken::Kind::number;
      take_number(token.spelling);
    } else if (c == '"' || c == '\'') {
      token.kind = SourceToken::Kind::text;
      token.spelling = take_quoted();
    } else {
      token.kind = SourceToken::Kind::punctuation;
      token.spelling = take_punctuation();
    }
    token.end = at_;
    return token;
  }

  /// The header's name that follows, `<name>` or `"name"`; kind `punctuation` or `name` if something else
  /// does. For the place behind `#include`.
  [[nodiscard]] SourceToken next_header() {
    skip_blanks();
    const char close = peek() == '<' ? '>' : '"';
    if (starts_line_ || (peek() != '<' && peek() != '"')) return next();
    SourceToken token;
    token.kind = SourceToken::Kind::header;
    token.line = line_;
    token.begin = at_;
    (void)take();
    while (peek() != close && peek() != '\n' && peek() != '\0') token.spelling += take();
    if (peek() == close) (void)take();
    token.end = at_;
    return token;
  }

  /// Whether the next token begins a line, or there is none.
  [[nodiscard]] bool at_line_start() {
    skip_blanks();
    return starts_line_ || peek() == '\0';
  }

  /// The tokens up to the end of the (spliced) line.
  [[nodiscard]] std::vector<SourceToken> rest_of_line() {
    std::vector<SourceToken> tokens;
    while (!at_line_start()) tokens.push_back(next());
    return tokens;
  }

private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  /// With what compilers allow besides: dollars, and letters that are not ASCII.
  static bool begins_name(char c) {
    return is_name_start(c) || c == '$' || static_cast<unsigned char>(c) >= 0x80;
  }
  static bool is_name_part(char c) { return begins_name(c) || is_digit(c); }
  static bool is_prefix(std::string_view name) {
    for (const std::string_view prefix : {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"})
      if (name == prefix) return true;
    return false;
  }

  /// Where a splice that begins at `at` ends, or `at`.
  [[nodiscard]] std::size_t behind_splice(std::size_t at) const {
    if (at >= text_.size() || text_[at] != '\\') return at;
    std::size_t end = at + 1;
    while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t' || text_[end] == '\r')) ++end;
    return end < text_.size() && text_[end] == '\n' ? end + 1 : at;
  }
  /// Steps over splices.
  void join() {
    for (auto end = behind_splice(at_); end != at_; end = behind_splice(at_)) {
      at_ = end;
      ++line_;
    }
  }
  [[nodiscard]] char peek() {
    join();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  [[nodiscard]] char peek(int further) {
    join();
    std::size_t at = at_;
    for (; further > 0 && at < text_.size(); --further) {
      ++at;
      for (auto end = behind_splice(at); end != at; end = behind_splice(at)) at = end;
    }
    return at < text_.size() ? text_[at] : '\0';
  }
  char take() {
    const char c = peek();
    if (at_ < text_.size()) ++at_;
    if (c == '\n') {
      ++line_;
      starts_line_ = true;
    }
    return c;
  }

  void skip_blanks() {
    for (;;) {
      const char c = peek();
      if (at_ >= text_.size()) return;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f' || c == '\0') {
        (void)take();
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') (void)take();
      } else if (c == '/' && peek(1) == '*') {
        const bool first = starts_line_;
        (void)take();
        (void)take();
        while (at_ < text_.size() && !(peek() == '*' && peek(1) == '/')) (void)take();
        (void)take();
        (void)take();
        starts_line_ = first;
      } else {
        return;
      }
    }
  }

  [[nodiscard]] std::string take_quoted() {
    const char quote = take();
    std::string content;
    while (at_ < text_.size() && peek() != quote && peek() != '\n') {
      if (peek() == '\\') content += take();
      content += take();
    }
    if (peek() == quote) (void)take();
    return content;
  }

  /// A raw string ends where its own bytes say so; nothing is spliced in it.
  [[nodiscard]] std::string take_raw() {
    (void)take();
    const auto open = text_.find('(', at_);
    if (open == std::string_view::npos) return {};
    const std::string close = ')' + std::string(text_.substr(at_, open - at_)) + '"';
    auto end = text_.find(close, open);
    if (end == std::string_view::npos) end = text_.size();
    std::string content(text_.substr(open + 1, end - open - 1));
    for (const char c : content) line_ += c == '\n' ? 1 : 0;
    at_ = end == text_.size() ? end : end + close.size();
    return content;
  }

  void take_number(std::string& spelling) {
    for (;;) {
      const char c = peek();
      const bool exponent = c == '+' || c == '-';
      if (exponent && !(spelling.ends_with('e') || spelling.ends_with('E') || spelling.ends_with('p') ||
                        spelling.ends_with('P')))
        return;
      if (!exponent && c != '.' && !is_name_part(c) && !(c == '\'' && is_name_part(peek(1)))) return;
      spelling += take();
    }
  }

  /// Doubled signs that matter to a screen come as one token, digraphs as what they stand for.
  [[nodiscard]] std::string take_punctuation() {
    const char first = take();
    const char second = peek();
    if (first == '%' && second == ':') {
      (void)take();
      if (peek() == '%' && peek(1) == ':') {
        (void)take();
        (void)take();
        return "##";
      }
      return "#";
    }
    if (first == '<' && second == ':') {
      (void)take();
      return "[";
    }
    if (first == ':' && second == '>') {
      (void)take();
      return "]";
    }
    if ((first == '#' && second == '#') || (first == ':' && second == ':')) {
      (void)take();
      return {first, second};
    }
    return {first};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
};

} // namespace mtmc::detail
