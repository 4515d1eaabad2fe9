#pragma once
/// Tokens of a Python text: names, numbers, strings, symbols, and where logical lines and blocks begin and
/// end.

#include <mtmc/requirements.hpp>

#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A token; its text is a view into the source.
struct PythonToken {
  /// What it is.
  enum class Kind : std::uint8_t {
    name,    ///< identifiers and keywords
    number,  ///< also complex ones
    string,  ///< with its prefix and quotes; f-strings whole
    symbol,  ///< operators, brackets, punctuation
    marker,  ///< a comment line `#@ ...` of its own
    newline, ///< the end of a logical line
    indent,  ///< a block begins
    dedent,  ///< a block ends
    end,     ///< of the text
    unknown  ///< a character that no Python token begins with
  };
  Kind kind = Kind::end;   ///< what it is
  std::string_view text{}; ///< as written; empty for what is not written
  std::size_t begin = 0;   ///< offset of its first byte
  int line = 0;            ///< 1-based
  int column = 0;          ///< 1-based, in bytes
  int last_line = 0;       ///< of its last byte

  /// Offset behind its last byte.
  [[nodiscard]] std::size_t end() const noexcept { return begin + text.size(); }
};

/// Reads a whole text in one pass; the work is linear. Never fails: an unfinished string ends with its line
/// (or, in triple quotes, with the text), and a bracket that nobody closes ends where a line begins with
/// `def`, `class`, `import`, `return` or a decorator.
class PythonLexer {
public:
  explicit PythonLexer(std::string_view source) : source_(source) {
    if (source_.starts_with("\xEF\xBB\xBF")) place_ = 3;
    line_begin_ = place_;
  }

  /// All tokens; the last one is `end`.
  [[nodiscard]] std::vector<PythonToken> tokens() {
    tokens_.reserve(source_.size() / 4 + 8);
    bool line_starts = true;
    while (true) {
      if (line_starts && !begin_line()) break;
      line_starts = false;
      skip_blanks();
      if (place_ >= source_.size()) break;
      const char c = source_[place_];
      if (c == '#') {
        skip_to_line_end();
      } else if (c == '\n' || c == '\r') {
        if (depth_ == 0) add(PythonToken::Kind::newline, place_, place_);
        next_line();
        line_starts = true;
      } else {
        read_token(c);
      }
    }
    if (!tokens_.empty() && tokens_.back().kind != PythonToken::Kind::newline) end_logical_line();
    while (indents_.size() > 1) close_block();
    add_markers();
    add(PythonToken::Kind::end, source_.size(), source_.size());
    return std::move(tokens_);
  }

private:
  using Kind = PythonToken::Kind;

  [[nodiscard]] PythonToken token(Kind kind, std::size_t begin, std::size_t end) const {
    return {.kind = kind,
            .text = source_.substr(begin, end - begin),
            .begin = begin,
            .line = line_,
            .column = static_cast<int>(begin - line_begin_) + 1,
            .last_line = line_};
  }
  void add(Kind kind, std::size_t begin, std::size_t end) { tokens_.push_back(token(kind, begin, end)); }
  /// Comments have no indentation, so that a marker belongs to the statement behind it.
  void add_markers() {
    tokens_.insert(tokens_.end(), markers_.begin(), markers_.end());
    markers_.clear();
  }
  void end_logical_line() {
    depth_ = 0;
    add(Kind::newline, place_, place_);
  }
  void close_block() {
    indents_.pop_back();
    add(Kind::dedent, place_, place_);
  }
  [[nodiscard]] char at(std::size_t i) const noexcept { return i < source_.size() ? source_[i] : '\0'; }

  /// Behind a line end; `\r\n` is one.
  void next_line() {
    if (at(place_) == '\r' && at(place_ + 1) == '\n') ++place_;
    ++place_;
    ++line_;
    line_begin_ = place_;
  }
  void skip_to_line_end() {
    while (place_ < source_.size() && source_[place_] != '\n' && source_[place_] != '\r') ++place_;
  }
  void skip_blanks() {
    while (place_ < source_.size()) {
      const char c = source_[place_];
      if (c == ' ' || c == '\t' || c == '\f') {
        ++place_;
      } else if (c == '\\' && (at(place_ + 1) == '\n' || at(place_ + 1) == '\r')) {
        ++place_;
        next_line();
      } else {
        return;
      }
    }
  }

  /// Finds the next line with a statement and what its indentation says. False at the end of the text.
  [[nodiscard]] bool begin_line() {
    while (place_ < source_.size()) {
      int width = 0;
      for (; place_ < source_.size(); ++place_) {
        const char c = source_[place_];
        if (c == ' ')
          ++width;
        else if (c == '\t')
          width = (width / 8 + 1) * 8;
        else if (c == '\f')
          width = 0;
        else
          break;
      }
      const char c = at(place_);
      if (place_ >= source_.size()) return false;
      if (c == '#') {
        const std::size_t begin = place_;
        skip_to_line_end();
        if (depth_ == 0 && at(begin + 1) == '@') markers_.push_back(token(Kind::marker, begin, place_));
      } else if (c == '\n' || c == '\r') {
        // A blank line.
      } else {
        if (depth_ > 0 && starts_statement()) end_logical_line();
        if (depth_ == 0) indent_to(width);
        return true;
      }
      if (place_ < source_.size()) next_line();
    }
    return false;
  }
  void indent_to(int width) {
    if (width > indents_.back()) {
      indents_.push_back(width);
      add(Kind::indent, place_, place_);
    }
    while (width < indents_.back()) close_block();
    // A line that fits no block around it: the nearest one is meant.
    if (width > indents_.back() && indents_.size() > 1) indents_.back() = width;
    const bool goes_on = decorates_ || continues_statement();
    decorates_ = source_[place_] == '@';
    if (goes_on) markers_.clear();
    add_markers();
  }
  /// Whether the line is a part of the statement before; what stands between is a comment then, no marker.
  [[nodiscard]] bool continues_statement() const noexcept {
    const std::string_view rest = source_.substr(place_);
    constexpr std::string_view words[] = {"else", "elif", "except", "finally"};
    return std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
      return rest.starts_with(word) && (rest.size() == word.size() || !is_name_character(rest[word.size()]));
    });
  }
  /// Whether a line inside of brackets can only be the beginning of a statement.
  [[nodiscard]] bool starts_statement() const noexcept {
    const std::string_view rest = source_.substr(place_);
    if (rest.front() == '@') return line_begin_ == place_ && rest.size() > 1 && is_name_start(rest[1]);
    constexpr std::string_view words[] = {"def ", "class ", "import ", "return ", "async def "};
    return std::any_of(std::begin(words), std::end(words),
                       [&](std::string_view word) { return rest.starts_with(word); });
  }

  void read_token(char c) {
    const std::size_t begin = place_;
    if (is_name_start(c) || static_cast<unsigned char>(c) >= 0x80) {
      while (is_name_character(at(place_)) || static_cast<unsigned char>(at(place_)) >= 0x80) ++place_;
      if ((at(place_) == '"' || at(place_) == '\'') &&
          is_string_prefix(source_.substr(begin, place_ - begin)))
        read_string(begin);
      else
        add(Kind::name, begin, place_);
    } else if ((c >= '0' && c <= '9') || (c == '.' && at(place_ + 1) >= '0' && at(place_ + 1) <= '9')) {
      read_number(begin);
    } else if (c == '"' || c == '\'') {
      read_string(begin);
    } else {
      read_symbol(begin);
    }
  }
  [[nodiscard]] static bool is_string_prefix(std::string_view text) noexcept {
    if (text.size() > 2) return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
      const char small = lower_case(c);
      return small == 'r' || small == 'b' || small == 'u' || small == 'f' || small == 't';
    });
  }
  /// `1if` is a number and a word, so that it ends where no number can go on.
  void read_number(std::size_t begin) {
    const auto take = [this](auto belongs) {
      while (belongs(at(place_)) || at(place_) == '_') ++place_;
    };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    const char kind = at(begin) == '0' ? lower_case(at(begin + 1)) : '\0';
    if (kind == 'x' || kind == 'o' || kind == 'b') {
      place_ += 2;
      take([&](char c) { return digit(c) || (kind == 'x' && lower_case(c) >= 'a' && lower_case(c) <= 'f'); });
    } else {
      take(digit);
      if (at(place_) == '.') {
        ++place_;
        take(digit);
      }
      if (lower_case(at(place_)) == 'e') {
        const bool sign = at(place_ + 1) == '+' || at(place_ + 1) == '-';
        if (digit(at(place_ + (sign ? 2U : 1U)))) {
          place_ += sign ? 2 : 1;
          take(digit);
        }
      }
      if (lower_case(at(place_)) == 'j') ++place_;
    }
    add(Kind::number, begin, place_);
  }
  /// `place_` is at the first quote.
  void read_string(std::size_t begin) {
    const int first_line = line_;
    const std::size_t first_line_begin = line_begin_;
    const char quote = source_[place_];
    const bool triple = at(place_ + 1) == quote && at(place_ + 2) == quote;
    place_ += triple ? 3 : 1;
    while (place_ < source_.size()) {
      const char c = source_[place_];
      if (c == '\\' && place_ + 1 < source_.size()) {
        ++place_;
        if (source_[place_] == '\n' || source_[place_] == '\r')
          next_line();
        else
          ++place_;
      } else if (c == quote && (!triple || (at(place_ + 1) == quote && at(place_ + 2) == quote))) {
        place_ += triple ? 3 : 1;
        break;
      } else if (c == '\n' || c == '\r') {
        if (!triple) break;
        next_line();
      } else {
        ++place_;
      }
    }
    tokens_.push_back({.kind = Kind::string,
                       .text = source_.substr(begin, place_ - begin),
                       .begin = begin,
                       .line = first_line,
                       .column = static_cast<int>(begin - first_line_begin) + 1,
                       .last_line = line_});
  }
  void read_symbol(std::size_t begin) {
    constexpr std::string_view symbols[] = {"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>",
                                            "<<",  "<=",  ">=",  "==",  "!=",  "->", "+=", "-=",
                                            "*=",  "/=",  "%=",  "&=",  "|=",  "^=", "@=", ":="};
    const std::string_view rest = source_.substr(begin);
    const auto found = std::find_if(std::begin(symbols), std::end(symbols),
                                    [&](std::string_view one) { return rest.starts_with(one); });
    const char c = rest.front();
    constexpr std::string_view single = "+-*/%@&|^~<>()[]{},:.;=";
    const bool known = found != std::end(symbols) || single.find(c) != std::string_view::npos;
    place_ += found != std::end(symbols) ? found->size() : 1;
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    add(known ? Kind::symbol : Kind::unknown, begin, place_);
  }

  std::string_view source_;
  std::vector<PythonToken> tokens_{};
  std::vector<PythonToken> markers_{}; ///< of lines before the next statement
  std::vector<int> indents_{0};
  std::size_t place_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
  int depth_ = 0;          ///< of open brackets
  bool decorates_ = false; ///< the last logical line was a decorator
};

} // namespace mtmc::detail
