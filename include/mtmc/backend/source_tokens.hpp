#pragma once
/// The tokens of a C++ text as its compiler sees them, for screening and rewriting: spelling and place,
/// nothing of grammar.

#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Which ends of lines a backslash takes away (translation phase 2).
enum class LineSplices {
  /// Those with blanks between, too, vertical tabs and form feeds among them: GCC and Clang.
  behind_blanks,
  /// Those right behind it, or behind a carriage return: NVRTC.
  bare
};

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
  /// The name that stands right behind a literal and belongs to it.
  std::string suffix{};
  /// Why compilers do not agree where it ends, so that nobody can say what follows; empty where they do.
  std::string_view unclear{};

  [[nodiscard]] bool is(std::string_view text) const noexcept {
    return kind != Kind::text && kind != Kind::header && spelling == text;
  }
};

/// Takes a text apart, by the rules of C++ in translation phases 2 and 3: a backslash at the end of a line
/// joins it to the next one, except within raw strings; comments are blanks; digraphs come out as what they
/// stand for. What GCC, Clang and NVRTC read in different ways is marked (`SourceToken::unclear`).
class SourceTokens {
public:
  explicit SourceTokens(std::string_view text, LineSplices splices = LineSplices::behind_blanks)
      : text_(text), splices_(splices) {
    // Before the first line GCC and Clang take it for nothing.
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

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
      take_name(token);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      token.kind = SourceToken::Kind::number;
      take_number(token);
    } else if (c == '"' || c == '\'') {
      take_quoted(token);
    } else {
      token.kind = SourceToken::Kind::punctuation;
      token.spelling = take_punctuation();
    }
    token.end = at_;
    if (is_odd(token)) look_behind(token);
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
    while (!at_line_start()) {
      tokens.push_back(next());
      auto& token = tokens.back();
      if (token.kind == SourceToken::Kind::text && token.spelling.find('\n') != std::string::npos)
        token.unclear = "a raw string in a directive goes on behind the end of the line";
    }
    return tokens;
  }

private:
  static constexpr std::string_view quoted_at_once = "a name with a quote right behind it";
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_hexadecimal(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  }
  /// With what compilers allow besides: dollars, and letters that are not ASCII.
  static bool begins_name(char c) {
    return is_name_start(c) || c == '$' || static_cast<unsigned char>(c) >= 0x80;
  }
  static bool is_name_part(char c) { return begins_name(c) || is_digit(c); }
  static bool is_quote(char c) { return c == '"' || c == '\''; }
  /// What some compilers do not take for a part of a name, but for a blank or a mistake.
  static bool is_odd(const SourceToken& token) {
    return token.kind == SourceToken::Kind::name &&
           std::any_of(token.spelling.begin(), token.spelling.end(),
                       [](char c) { return begins_name(c) && !is_name_start(c); });
  }
  static bool is_prefix(std::string_view name) {
    for (const std::string_view prefix : {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"})
      if (name == prefix) return true;
    return false;
  }

  /// Where a splice that begins at `at` ends, or `at`.
  [[nodiscard]] std::size_t behind_splice(std::size_t at) const {
    if (at >= text_.size() || text_[at] != '\\') return at;
    std::size_t end = at + 1;
    const std::string_view between = splices_ == LineSplices::bare ? "\r" : " \t\r\v\f";
    while (end < text_.size() && between.find(text_[end]) != std::string_view::npos) ++end;
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

  void take_name(SourceToken& token) {
    token.kind = SourceToken::Kind::name;
    while (is_name_part(peek())) token.spelling += take();
    if (!is_quote(peek()) || !is_prefix(token.spelling)) return;
    if (token.spelling.back() == 'R' && peek() == '"')
      take_raw(token);
    else
      take_quoted(token);
  }

  /// What makes a name of odd characters matter: that a literal or a directive begins behind it, or not.
  void look_behind(SourceToken& token) {
    if (is_quote(peek())) token.unclear = quoted_at_once;
    skip_blanks();
    if (!starts_line_ && (peek() == '#' || (peek() == '%' && peek(1) == ':')))
      token.unclear = "a directive behind characters that may be blanks";
  }

  void take_quoted(SourceToken& token) {
    token.kind = SourceToken::Kind::text;
    token.spelling.clear();
    const char quote = take();
    while (at_ < text_.size() && peek() != quote && peek() != '\n') {
      if (peek() == '\\') token.spelling += take();
      if (at_ < text_.size() && peek() != '\n') token.spelling += take();
    }
    if (peek() != quote) return;
    (void)take();
    take_suffix(token);
  }

  /// The name behind a literal belongs to it, whatever it would begin elsewhere. Behind an empty character,
  /// which is a mistake, and where the name is a macro, compilers see it in other ways.
  void take_suffix(SourceToken& token) {
    if (!begins_name(peek())) return;
    while (is_name_part(peek())) token.suffix += take();
    if (is_quote(peek())) token.unclear = quoted_at_once;
  }

  /// A raw string ends where its own bytes say so; nothing is spliced in it.
  void take_raw(SourceToken& token) {
    constexpr std::size_t longest_mark = 16;
    constexpr std::string_view not_in_mark = " ()\\@$`\t\v\f\r\n";
    token.kind = SourceToken::Kind::text;
    token.spelling.clear();
    const auto mark = at_ + 1;
    auto open = mark;
    while (open < text_.size() && static_cast<unsigned char>(text_[open]) < 0x80 &&
           not_in_mark.find(text_[open]) == std::string_view::npos)
      ++open;
    if (open >= text_.size() || text_[open] != '(' || open - mark > longest_mark) {
      take_quoted(token);
      token.unclear = "the delimiter of a raw string is malformed";
      return;
    }
    const std::string close = ')' + std::string(text_.substr(mark, open - mark)) + '"';
    const auto end = text_.find(close, open);
    token.spelling = text_.substr(open + 1, end == std::string_view::npos ? end : end - open - 1);
    for (const char c : token.spelling) line_ += c == '\n' ? 1 : 0;
    for (std::size_t at = open; at < open + token.spelling.size(); ++at)
      if (behind_splice(at + 1) != at + 1) token.unclear = "a line of a raw string ends in a backslash";
    at_ = end == std::string_view::npos ? text_.size() : end + close.size();
    if (end == std::string_view::npos)
      token.unclear = "a raw string has no end";
    else
      take_suffix(token);
  }

  void take_number(SourceToken& token) {
    auto& spelling = token.spelling;
    for (;;) {
      const char c = peek();
      const bool exponent = c == '+' || c == '-';
      if (exponent && !(spelling.ends_with('e') || spelling.ends_with('E') || spelling.ends_with('p') ||
                        spelling.ends_with('P')))
        return;
      if (c == '\'' && !is_hexadecimal(peek(1))) {
        token.unclear = "a number with a quote right behind it";
        return;
      }
      if (!exponent && c != '.' && c != '\'' && !is_name_part(c)) return;
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
    // `<::` is a sign and `::`, unless a third sign makes it a bracket after all.
    const bool scope = second == ':' && peek(1) == ':' && peek(2) != ':' && peek(2) != '>';
    if (first == '<' && second == ':' && !scope) {
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
  LineSplices splices_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
};

} // namespace mtmc::detail
