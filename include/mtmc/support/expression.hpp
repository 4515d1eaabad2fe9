#pragma once

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The values an expression may refer to, by name: the symbols of a problem size and the like.
using Symbols = std::map<std::string, std::int64_t, std::less<>>;

/// What is wrong with an expression and where. `what()` shows the text, points at the place and says
/// what to do about it.
class ExpressionError : public std::runtime_error {
public:
  /// `position`: offset of the place in the text, in bytes.
  ExpressionError(const std::string& message, std::size_t position)
      : std::runtime_error{message}, position_{position} {}

  /// Where in the text it happened, as a byte offset from 0; the text's length if something is missing at
  /// its end.
  [[nodiscard]] std::size_t position() const noexcept { return position_; }

private:
  std::size_t position_;
};

namespace detail {

/// Reads an expression once, from left to right, and evaluates it on the way. With no symbols given it only
/// checks the syntax and notes the names, and no operation is carried out.
class ExpressionReader {
public:
  ExpressionReader(std::string_view text, const Symbols* symbols) : text_{text}, symbols_{symbols} {}

  std::int64_t read();

  [[nodiscard]] std::vector<std::string> take_names() { return std::move(names_); }

private:
  enum class Function { ceil_div, min, max, round_up, next_pow2 };
  struct FunctionEntry {
    std::string_view name;
    Function function;
    std::size_t least;
    std::size_t most;
    std::string_view usage;
  };
  static constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();
  static constexpr FunctionEntry functions[] = {
      {"ceil_div", Function::ceil_div, 2, 2, "ceil_div(a, b)"},
      {"min", Function::min, 2, any_number, "min(a, b, ...)"},
      {"max", Function::max, 2, any_number, "max(a, b, ...)"},
      {"round_up", Function::round_up, 2, 2, "round_up(value, multiple)"},
      {"next_pow2", Function::next_pow2, 1, 1, "next_pow2(a)"},
  };
  // Each level costs a few hundred bytes of stack, so 200 stay far below any thread's stack.
  static constexpr std::size_t deepest = 200;

  class Level {
  public:
    explicit Level(ExpressionReader& reader);
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --reader_.depth_; }

  private:
    ExpressionReader& reader_;
  };

  // sum = product { ("+" | "-") product }
  std::int64_t sum();

  // product = signed { ("*" | "/" | "%") signed }
  std::int64_t product();

  // signed = "-" signed | factor
  std::int64_t signed_factor();

  // factor = integer | name | name "(" arguments ")" | "(" sum ")"
  std::int64_t factor();

  std::int64_t integer(bool negative, std::size_t place);

  std::int64_t name();

  void note(std::string_view word);

  std::int64_t call(std::string_view word, std::size_t place);

  [[nodiscard]] std::int64_t apply(const FunctionEntry& entry, std::span<const std::int64_t> arguments,
                                   std::size_t place) const;

  [[nodiscard]] std::int64_t ceil_div(std::int64_t value, std::int64_t divisor, const FunctionEntry& entry,
                                      std::size_t place) const;

  [[nodiscard]] std::int64_t combine(char symbol, std::int64_t left, std::int64_t right,
                                     std::size_t place) const;

  [[noreturn]] void fail(std::size_t position, const std::string& problem, const std::string& remedy) const;

  [[noreturn]] void overflow(std::string_view operation, std::size_t place) const;

  [[noreturn]] void too_large_integer(std::size_t place) const;

  [[noreturn]] void unknown_symbol(std::string_view word, std::size_t place) const;

  [[noreturn]] void unknown_function(std::string_view word, std::size_t place) const;

  [[nodiscard]] static std::string quoted(std::string_view word);

  [[nodiscard]] std::string shown(std::size_t position) const;

  [[nodiscard]] char peek() const { return text_[at_]; }

  char take_operator();

  void skip_blanks();

  [[nodiscard]] static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  [[nodiscard]] static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  [[nodiscard]] static bool is_name_start(char c);

  std::string_view text_;
  const Symbols* symbols_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::vector<std::string> names_;
};

} // namespace detail

/// The value of an integer expression, as in shapes, grids and flop counts.
///
/// ```
/// expr     = product { ("+" | "-") product }
/// product  = signed { ("*" | "/" | "%") signed }
/// signed   = "-" signed | integer | symbol | function "(" expr {"," expr} ")" | "(" expr ")"
/// function = ceil_div(a, b) | min(a, b, ...) | max(a, b, ...) | round_up(value, multiple) | next_pow2(a)
/// ```
///
/// Arithmetic is exact in 64-bit signed integers. `/` truncates towards zero and `%` has the sign of its left
/// side, as in C++. `ceil_div` rounds towards positive infinity and, like `round_up`, wants a positive second
/// argument. `next_pow2(a)` is the smallest power of two that is at least `a`, and 1 for `a` < 1.
/// Symbols are [A-Za-z_][A-Za-z0-9_]*; a name followed by "(" is a function, so a symbol may be called `min`.
///
/// Throws ExpressionError on overflow (of intermediate results too), division by zero, an unknown symbol
/// or function, a wrong number of arguments, a syntax error, or nesting beyond 200 levels.
[[nodiscard]] std::int64_t evaluate_expression(std::string_view text, const Symbols& symbols);

/// The symbols that `text` refers to, in the order of their first use, each once. Function names are none.
/// Throws ExpressionError on a syntax error, an unknown function or a wrong number of arguments.
[[nodiscard]] std::vector<std::string> expression_symbols(std::string_view text);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/expression_inl.hpp>
#endif
