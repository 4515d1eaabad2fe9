#pragma once

#include <mtmc/analysis/syntax/source_text.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// \file
/// Text of a C-family language (C, C++, OpenCL C, CUDA C++) to tokens. Total and tolerant: any bytes are
/// accepted, every byte belongs to exactly one token, the work is linear in the text.

namespace mtmc::inline MTMC_ABI {

/// What a token is. The kinds from `whitespace` to `block_comment` are trivia.
enum class TokenKind : std::uint8_t {
  identifier,     ///< identifiers and keywords; bytes above 0x7f count as letters
  number,         ///< any preprocessing number: `0x1p-3`, `1'000`, `.5f`
  string,         ///< string literals with prefix, raw ones too; an unterminated one ends with its line
  character,      ///< character literals with prefix; an unterminated one ends with its line
  punctuator,     ///< operators and brackets, longest match
  directive,      ///< a preprocessor line from `#` on with its continuations, without the last newline
  launch_comment, ///< a line comment that starts with `//@` and is the first on its line
  invalid,        ///< one byte that starts no token (`@`, NUL, a stray backslash)
  whitespace,     ///< a run of blanks, newlines and continued line ends
  line_comment,   ///< `// ...` without the newline
  block_comment,  ///< `/* ... */`; an unterminated one ends with the text
};

/// One token: `source.substr(begin, end - begin)`. Lines and columns count from 1, columns in bytes.
struct Token {
  std::size_t begin = 0;               ///< offset of the first byte
  std::size_t end = 0;                 ///< offset behind the last byte
  int line = 1;                        ///< 1-based line of the first byte
  int column = 1;                      ///< 1-based column of the first byte, in bytes
  TokenKind kind = TokenKind::invalid; ///< what it is

  /// The token's text in the source it was lexed from.
  [[nodiscard]] std::string_view text(std::string_view source) const {
    return source.substr(begin, end - begin);
  }
};

/// True for whitespace and plain comments: what no grammar rule sees.
[[nodiscard]] constexpr bool is_trivia(TokenKind kind) noexcept { return kind >= TokenKind::whitespace; }

/// How to read the text.
struct LexerOptions {
  bool cuda_launches = false; ///< read `<<<` and `>>>` as one token each
};

namespace detail {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_identifier_start(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
[[nodiscard]] constexpr bool is_identifier_part(char c) noexcept {
  return is_identifier_start(c) || is_digit(c);
}

/// The scanner behind `lex`: a position and the rules that move it.
class Scanner {
public:
  Scanner(std::string_view source, const LexerOptions& options) : source_(source), options_(options) {}

  [[nodiscard]] std::vector<Token> run() {
    std::vector<Token> tokens;
    tokens.reserve(source_.size() / 3 + 8);
    while (position_ < source_.size()) {
      Token token;
      token.begin = position_;
      token.line = line_;
      token.column = static_cast<int>(position_ - line_begin_) + 1;
      token.kind = next();
      token.end = position_;
      note_lines(token);
      if (token.kind != TokenKind::whitespace && token.kind != TokenKind::block_comment)
        line_is_blank_ = false;
      tokens.push_back(token);
    }
    return tokens;
  }

private:
  [[nodiscard]] char at(std::size_t index) const noexcept {
    return index < source_.size() ? source_[index] : '\0';
  }

  /// Length of a backslash-newline at `index`, or 0.
  [[nodiscard]] std::size_t continuation(std::size_t index) const noexcept {
    if (at(index) != '\\') return 0;
    if (at(index + 1) == '\n') return 2;
    return at(index + 1) == '\r' && at(index + 2) == '\n' ? 3 : 0;
  }

  /// Only whitespace, comments, strings and directives can hold newlines.
  void note_lines(const Token& token) noexcept {
    if (token.kind == TokenKind::identifier || token.kind == TokenKind::number ||
        token.kind == TokenKind::punctuator)
      return;
    for (std::size_t i = token.begin; i < token.end; ++i) {
      if (source_[i] != '\n') continue;
      ++line_;
      line_begin_ = i + 1;
      line_is_blank_ = true;
    }
  }

  TokenKind next() {
    const char c = source_[position_];
    if (is_blank(c) || continuation(position_) != 0) return skip_whitespace();
    if (is_identifier_start(c)) return identifier_or_literal();
    if (is_digit(c) || (c == '.' && is_digit(at(position_ + 1)))) return number();
    if (c == '"') return quoted('"', TokenKind::string);
    if (c == '\'') return quoted('\'', TokenKind::character);
    if (c == '/' && at(position_ + 1) == '/') return line_comment();
    if (c == '/' && at(position_ + 1) == '*') return skip_block_comment(), TokenKind::block_comment;
    if (c == '#' && line_is_blank_) return directive();
    return punctuator();
  }

  TokenKind skip_whitespace() noexcept {
    while (position_ < source_.size()) {
      if (is_blank(source_[position_]))
        ++position_;
      else if (const std::size_t length = continuation(position_); length != 0)
        position_ += length;
      else
        break;
    }
    return TokenKind::whitespace;
  }

  TokenKind identifier_or_literal() {
    const std::size_t begin = position_;
    while (position_ < source_.size() && is_identifier_part(source_[position_])) ++position_;
    const char quote = at(position_);
    if (quote != '"' && quote != '\'') return TokenKind::identifier;
    const std::string_view prefix = source_.substr(begin, position_ - begin);
    const auto is_one_of = [prefix](auto... options) { return ((prefix == options) || ...); };
    if (quote == '"' && is_one_of("R", "u8R", "uR", "UR", "LR")) return raw_string();
    if (is_one_of("u8", "u", "U", "L"))
      return quoted(quote, quote == '"' ? TokenKind::string : TokenKind::character);
    return TokenKind::identifier;
  }

  TokenKind number() noexcept {
    const bool hexadecimal = at(position_) == '0' && (at(position_ + 1) | 0x20) == 'x';
    while (position_ < source_.size()) {
      const char c = source_[position_];
      const char lower = static_cast<char>(c | 0x20);
      const bool exponent = hexadecimal ? lower == 'p' : lower == 'e';
      const bool sign_follows = exponent && (at(position_ + 1) == '+' || at(position_ + 1) == '-');
      if (sign_follows || (c == '\'' && is_identifier_part(at(position_ + 1))))
        position_ += 2;
      else if (is_identifier_part(c) || c == '.')
        ++position_;
      else
        break;
    }
    return TokenKind::number;
  }

  TokenKind quoted(char quote, TokenKind kind) noexcept {
    ++position_;
    while (position_ < source_.size() && source_[position_] != '\n') {
      const char c = source_[position_];
      if (const std::size_t length = continuation(position_); length != 0)
        position_ += length;
      else if (c == '\\' && position_ + 1 < source_.size() && at(position_ + 1) != '\n')
        position_ += 2;
      else if (++position_; c == quote)
        break;
    }
    return kind;
  }

  TokenKind raw_string() {
    const std::size_t quote = position_;
    std::size_t open = quote + 1;
    while (open - quote <= 17 && open < source_.size() && source_[open] != '(' && source_[open] != '\n')
      ++open;
    if (at(open) != '(') return quoted('"', TokenKind::string);
    std::size_t close = open + 1;
    const std::string_view delimiter = source_.substr(quote + 1, open - quote - 1);
    for (;; ++close) {
      close = source_.find(')', close);
      if (close == std::string_view::npos) return position_ = source_.size(), TokenKind::string;
      if (source_.substr(close + 1, delimiter.size()) == delimiter && at(close + 1 + delimiter.size()) == '"')
        break;
    }
    position_ = close + delimiter.size() + 2;
    return TokenKind::string;
  }

  TokenKind line_comment() noexcept {
    const bool launch = line_is_blank_ && at(position_ + 2) == '@';
    while (position_ < source_.size() && source_[position_] != '\n') {
      const std::size_t length = continuation(position_);
      position_ += length == 0 ? 1 : length;
    }
    if (source_[position_ - 1] == '\r' && at(position_) == '\n') --position_;
    return launch ? TokenKind::launch_comment : TokenKind::line_comment;
  }

  void skip_block_comment() noexcept {
    const std::size_t close = source_.find("*/", position_ + 2);
    position_ = close == std::string_view::npos ? source_.size() : close + 2;
  }

  TokenKind directive() {
    while (position_ < source_.size() && source_[position_] != '\n') {
      const char c = source_[position_];
      if (const std::size_t length = continuation(position_); length != 0)
        position_ += length;
      else if (c == '/' && at(position_ + 1) == '*')
        skip_block_comment();
      else if (c == '/' && at(position_ + 1) == '/')
        (void)line_comment();
      else if (c == '"')
        (void)quoted('"', TokenKind::string);
      else if (c == '\r' && at(position_ + 1) == '\n')
        break;
      else
        ++position_;
    }
    return TokenKind::directive;
  }

  TokenKind punctuator() noexcept {
    const std::string_view rest = source_.substr(position_, 4);
    const auto take = [this](std::size_t length) { return position_ += length, TokenKind::punctuator; };
    const auto starts = [rest](std::string_view symbol) { return rest.substr(0, symbol.size()) == symbol; };
    if (options_.cuda_launches && (starts("<<<") || starts(">>>"))) return take(3);
    switch (rest[0]) {
    case '<':
      return take(starts("<<=") || starts("<=>") ? 3 : starts("<<") || starts("<=") ? 2 : 1);
    case '>':
      return take(starts(">>=") ? 3 : starts(">>") || starts(">=") ? 2 : 1);
    case '-':
      return take(starts("->*") ? 3 : starts("--") || starts("-=") || starts("->") ? 2 : 1);
    case '+':
      return take(starts("++") || starts("+=") ? 2 : 1);
    case '&':
      return take(starts("&&") || starts("&=") ? 2 : 1);
    case '|':
      return take(starts("||") || starts("|=") ? 2 : 1);
    case ':':
      return take(starts("::") ? 2 : 1);
    case '#':
      return take(starts("##") ? 2 : 1);
    case '.':
      return take(starts("...") ? 3 : starts(".*") ? 2 : 1);
    case '*':
    case '/':
    case '%':
    case '^':
    case '=':
    case '!':
      return take(rest.size() > 1 && rest[1] == '=' ? 2 : 1);
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case ';':
    case ',':
    case '?':
    case '~':
      return take(1);
    default:
      return ++position_, TokenKind::invalid;
    }
  }

  std::string_view source_;
  LexerOptions options_;
  std::size_t position_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
  bool line_is_blank_ = true; ///< only blanks and block comments so far on this line
};

} // namespace detail

/// All tokens of `source` in order, trivia included: their texts, one after the other, are the source again.
[[nodiscard]] inline std::vector<Token> lex(std::string_view source, const LexerOptions& options = {}) {
  return detail::Scanner(source, options).run();
}

} // namespace mtmc
