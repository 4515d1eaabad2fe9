#pragma once
/// Definitions of support/expression.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/expression.hpp>
#include <mtmc/support/nearest_name.hpp>

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

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::int64_t ExpressionReader::read() {
  skip_blanks();
  if (at_ == text_.size()) fail(at_, "it is empty", "write an integer, a symbol or a formula such as 2*M*N");
  const std::int64_t value = sum();
  if (at_ < text_.size()) {
    if (peek() == ')') fail(at_, "this ')' closes nothing", "remove it or add the missing '('");
    fail(at_, "unexpected " + shown(at_),
         "the expression is complete before it; remove the rest or put an operator (+ - * / %) in between");
  }
  return value;
}

MTMC_INLINE ExpressionReader::Level::Level(ExpressionReader& reader) : reader_{reader} {
  if (++reader_.depth_ > deepest)
    reader_.fail(reader_.at_, "it is nested more than " + std::to_string(deepest) + " levels deep",
                 "remove superfluous parentheses and signs, or split the expression");
}

MTMC_INLINE std::int64_t ExpressionReader::sum() {
  std::int64_t left = product();
  while (at_ < text_.size() && (peek() == '+' || peek() == '-')) {
    const std::size_t place = at_;
    const char symbol = take_operator();
    const std::int64_t right = product();
    left = combine(symbol, left, right, place);
  }
  return left;
}

MTMC_INLINE std::int64_t ExpressionReader::product() {
  std::int64_t left = signed_factor();
  while (at_ < text_.size() && (peek() == '*' || peek() == '/' || peek() == '%')) {
    const std::size_t place = at_;
    const char symbol = take_operator();
    const std::int64_t right = signed_factor();
    left = combine(symbol, left, right, place);
  }
  return left;
}

MTMC_INLINE std::int64_t ExpressionReader::signed_factor() {
  const Level level{*this};
  if (at_ < text_.size() && peek() == '-') {
    const std::size_t place = at_;
    take_operator();
    if (at_ < text_.size() && is_digit(peek())) return integer(true, place);
    const std::int64_t value = signed_factor();
    return combine('-', 0, value, place);
  }
  return factor();
}

MTMC_INLINE std::int64_t ExpressionReader::factor() {
  if (at_ == text_.size())
    fail(at_, "it ends where a value is expected", "add an integer, a symbol or a parenthesis");
  if (is_digit(peek())) return integer(false, at_);
  if (is_name_start(peek())) return name();
  if (peek() == '(') {
    const std::size_t open = at_;
    take_operator();
    const std::int64_t value = sum();
    if (at_ == text_.size()) fail(open, "this '(' is never closed", "add the missing ')'");
    if (peek() != ')')
      fail(at_, "unexpected " + shown(at_),
           "expected an operator (+ - * / %) or the ')' that closes the '('");
    take_operator();
    return value;
  }
  fail(at_, "expected a value but found " + shown(at_),
       "write an integer, a symbol, a function or a parenthesis here");
}

MTMC_INLINE std::int64_t ExpressionReader::integer(bool negative, std::size_t place) {
  // Accumulated downwards, because only there does the most negative value fit.
  std::int64_t value = 0;
  for (; at_ < text_.size() && is_digit(peek()); ++at_)
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
        __builtin_sub_overflow(value, std::int64_t{peek() - '0'}, &value))
      too_large_integer(place);
  if (at_ < text_.size() && (is_name_start(peek()) || peek() == '.'))
    fail(place, "this is not an integer",
         "only decimal integers are understood: no fractions, exponents, hexadecimal digits or suffixes; "
         "write a multiplication with *");
  skip_blanks();
  if (negative) return value;
  if (value == std::numeric_limits<std::int64_t>::min()) too_large_integer(place);
  return -value;
}

MTMC_INLINE std::int64_t ExpressionReader::name() {
  const std::size_t place = at_;
  while (at_ < text_.size() && (is_name_start(peek()) || is_digit(peek()))) ++at_;
  const std::string_view word = text_.substr(place, at_ - place);
  skip_blanks();
  if (at_ < text_.size() && peek() == '(') return call(word, place);
  note(word);
  if (symbols_ == nullptr) return 0;
  const auto found = symbols_->find(word);
  if (found == symbols_->end()) unknown_symbol(word, place);
  return found->second;
}

MTMC_INLINE void ExpressionReader::note(std::string_view word) {
  for (const std::string& known : names_)
    if (known == word) return;
  names_.emplace_back(word);
}

MTMC_INLINE std::int64_t ExpressionReader::call(std::string_view word, std::size_t place) {
  const FunctionEntry* entry = nullptr;
  for (const FunctionEntry& known : functions)
    if (known.name == word) entry = &known;
  if (entry == nullptr) unknown_function(word, place);
  const std::size_t open = at_;
  take_operator();
  std::vector<std::int64_t> arguments;
  if (at_ < text_.size() && peek() != ')') {
    arguments.push_back(sum());
    while (at_ < text_.size() && peek() == ',') {
      take_operator();
      arguments.push_back(sum());
    }
  }
  if (at_ == text_.size()) fail(open, "this '(' is never closed", "add the missing ')'");
  if (peek() != ')')
    fail(at_, "unexpected " + shown(at_), "expected an operator, ',' or the ')' that ends the arguments");
  take_operator();
  if (arguments.size() < entry->least || arguments.size() > entry->most)
    fail(place,
         std::string{entry->name} + " is given " + std::to_string(arguments.size()) +
             (arguments.size() == 1 ? " argument" : " arguments"),
         "write it as " + std::string{entry->usage});
  return symbols_ == nullptr ? 0 : apply(*entry, arguments, place);
}

MTMC_INLINE std::int64_t ExpressionReader::apply(const FunctionEntry& entry,
                                                 std::span<const std::int64_t> arguments,
                                                 std::size_t place) const {
  switch (entry.function) {
  case Function::min:
  case Function::max: {
    std::int64_t chosen = arguments[0];
    for (const std::int64_t value : arguments)
      if (entry.function == Function::min ? value < chosen : value > chosen) chosen = value;
    return chosen;
  }
  case Function::ceil_div:
    return ceil_div(arguments[0], arguments[1], entry, place);
  case Function::round_up: {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(ceil_div(arguments[0], arguments[1], entry, place), arguments[1], &result))
      overflow(entry.name, place);
    return result;
  }
  case Function::next_pow2: {
    if (arguments[0] > std::int64_t{1} << 62) overflow(entry.name, place);
    std::int64_t power = 1;
    while (power < arguments[0]) power *= 2;
    return power;
  }
  }
  return 0;
}

MTMC_INLINE std::int64_t ExpressionReader::ceil_div(std::int64_t value, std::int64_t divisor,
                                                    const FunctionEntry& entry, std::size_t place) const {
  if (divisor <= 0)
    fail(place, std::string{entry.name} + " is given the divisor " + std::to_string(divisor),
         "the second argument must be positive");
  return value / divisor + (value % divisor > 0 ? 1 : 0);
}

MTMC_INLINE std::int64_t ExpressionReader::combine(char symbol, std::int64_t left, std::int64_t right,
                                                   std::size_t place) const {
  if (symbols_ == nullptr) return 0;
  std::int64_t result = 0;
  bool overflows = false;
  switch (symbol) {
  case '+':
    overflows = __builtin_add_overflow(left, right, &result);
    break;
  case '-':
    overflows = __builtin_sub_overflow(left, right, &result);
    break;
  case '*':
    overflows = __builtin_mul_overflow(left, right, &result);
    break;
  default:
    if (right == 0)
      fail(place, std::string{"division by zero: the right side of '"} + symbol + "' is 0",
           "use a divisor that is not 0 for these sizes, for instance max(1, ...)");
    // The one quotient that does not fit, and whose remainder traps on x86-64 all the same.
    overflows = left == std::numeric_limits<std::int64_t>::min() && right == -1;
    if (!overflows) result = symbol == '/' ? left / right : left % right;
  }
  if (overflows) overflow(std::string_view{&symbol, 1}, place);
  return result;
}

MTMC_INLINE void ExpressionReader::fail(std::size_t position, const std::string& problem,
                                        const std::string& remedy) const {
  // A long text is shown only around the place, so that the message stays readable.
  constexpr std::size_t around = 60;
  const std::size_t first = position > around ? position - around : 0;
  std::string excerpt{text_.substr(first, 2 * around)};
  for (char& c : excerpt)
    if (c < ' ' || c > '~') c = is_blank(c) ? ' ' : '?';
  if (first > 0) excerpt.insert(0, "...");
  if (first + 2 * around < text_.size()) excerpt += "...";
  throw ExpressionError{"expression \"" + excerpt + "\", column " + std::to_string(position + 1) + ": " +
                            problem + "; " + remedy,
                        position};
}

MTMC_INLINE void ExpressionReader::overflow(std::string_view operation, std::size_t place) const {
  fail(place, "the result of '" + std::string{operation} + "' does not fit into 64 bits",
       "use smaller sizes or reorder the formula so that intermediate values stay below 2^63");
}

MTMC_INLINE void ExpressionReader::too_large_integer(std::size_t place) const {
  fail(place, "this integer does not fit into 64 bits", "use a value between -2^63 and 2^63 - 1");
}

MTMC_INLINE void ExpressionReader::unknown_symbol(std::string_view word, std::size_t place) const {
  std::vector<std::string_view> known;
  for (const auto& [symbol, value] : *symbols_) known.push_back(symbol);
  std::string remedy = known.empty() ? "no symbols are defined here, only integers may be used"
                                     : "known symbols: " + detail::joined(known);
  for (const FunctionEntry& entry : functions)
    if (entry.name == word) remedy = "it is a function: write " + std::string{entry.usage};
  if (const std::string_view near = nearest_name(word, known); !near.empty())
    remedy = "did you mean '" + std::string{near} + "'? " + remedy;
  fail(place, "unknown symbol " + quoted(word), remedy);
}

MTMC_INLINE void ExpressionReader::unknown_function(std::string_view word, std::size_t place) const {
  std::vector<std::string_view> known;
  for (const FunctionEntry& entry : functions) known.push_back(entry.name);
  std::string remedy = "known functions: " + detail::joined(known);
  if (const std::string_view near = nearest_name(word, known); !near.empty())
    remedy = "did you mean '" + std::string{near} + "'? " + remedy;
  fail(place, "unknown function " + quoted(word), remedy);
}

MTMC_INLINE std::string ExpressionReader::quoted(std::string_view word) {
  constexpr std::size_t longest = 60;
  return "'" + std::string{word.substr(0, longest)} + (word.size() > longest ? "...'" : "'");
}

MTMC_INLINE std::string ExpressionReader::shown(std::size_t position) const {
  if (position >= text_.size()) return "the end";
  const auto code = static_cast<unsigned char>(text_[position]);
  if (code < ' ' || code >= 0x7f) return "byte " + std::to_string(code);
  return std::string{"'"} + text_[position] + "'";
}

MTMC_INLINE char ExpressionReader::take_operator() {
  const char symbol = text_[at_++];
  skip_blanks();
  return symbol;
}

MTMC_INLINE void ExpressionReader::skip_blanks() {
  while (at_ < text_.size() && is_blank(peek())) ++at_;
}

MTMC_INLINE bool ExpressionReader::is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::int64_t evaluate_expression(std::string_view text, const Symbols& symbols) {
  return detail::ExpressionReader{text, &symbols}.read();
}

MTMC_INLINE std::vector<std::string> expression_symbols(std::string_view text) {
  detail::ExpressionReader reader{text, nullptr};
  reader.read();
  return reader.take_names();
}

} // namespace mtmc
