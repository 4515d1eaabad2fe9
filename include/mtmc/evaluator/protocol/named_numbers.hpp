#pragma once
/// Numbers that a kernel's text names. They guide what a kernel is asked, as a fuzzer's dictionary does, and
/// decide nothing: whoever hides a number is asked what everybody is asked.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Each once, in ascending order.
struct NamedNumbers {
  std::vector<std::int64_t> integers; ///< from 0 to 2^40
  std::vector<double> reals;          ///< positive and finite; integers are no reals
};

namespace detail {

/// A literal, and where it ends.
struct NumberLiteral {
  std::optional<std::int64_t> integer;
  double value = 0;
  std::size_t end = 0;
};

/// The literal that begins at a place of a text.
[[nodiscard]] inline NumberLiteral read_number(std::string_view text, std::size_t from) {
  std::string digits;
  std::size_t at = from;
  const bool hexadecimal = text.size() > from + 1 && text[from] == '0' && (text[from + 1] | 0x20) == 'x';
  const char exponent = hexadecimal ? 'p' : 'e';
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const bool sign = (c == '+' || c == '-') && at > from && (text[at - 1] | 0x20) == exponent;
    if (c == '\'') continue;
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && !sign) break;
    digits += c;
  }
  NumberLiteral literal{std::nullopt, 0, std::max(at, from + 1)};
  const char* const first = digits.data() + (hexadecimal ? 2 : 0);
  const char* const last = digits.data() + digits.size();
  std::int64_t integer = 0;
  const auto whole = std::from_chars(first, last, integer, hexadecimal ? 16 : 10);
  const auto suffix = whole.ptr == last ? '\0' : static_cast<char>(*whole.ptr | 0x20);
  if (whole.ec == std::errc{} && (suffix == '\0' || suffix == 'u' || suffix == 'l' || suffix == 'z')) {
    literal.integer = integer;
    literal.value = static_cast<double>(integer);
    return literal;
  }
  double real = 0;
  const auto parsed =
      std::from_chars(first, last, real, hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (parsed.ec == std::errc{}) literal.value = real;
  return literal;
}

/// `left * right`, `left << right`, ...; nothing for another operator or too large a result.
[[nodiscard]] inline std::optional<std::int64_t> folded(std::int64_t left, std::string_view operation,
                                                        std::int64_t right) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (left > most || right > most) return std::nullopt;
  if (operation == "+") return left + right;
  if (operation == "-" && right <= left) return left - right;
  if (operation == "*" && static_cast<double>(left) * static_cast<double>(right) <= static_cast<double>(most))
    return left * right;
  if (operation == "<<" && right < 40 && left <= most >> right) return left << right;
  return std::nullopt;
}

template <class T> void keep_once(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

template <class T>
[[nodiscard]] std::vector<T> without(const std::vector<T>& all, const std::vector<T>& known) {
  std::vector<T> rest;
  std::set_difference(all.begin(), all.end(), known.begin(), known.end(), std::back_inserter(rest));
  return rest;
}

} // namespace detail

/// All literals of a text, and what neighbours make that are joined by `+`, `-`, `*` or `<<`, from the left.
[[nodiscard]] inline NamedNumbers numbers_in(std::string_view text) {
  NamedNumbers found;
  constexpr std::int64_t none = -1;
  std::int64_t before = none;
  std::string operation;
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const auto is_digit = [&](std::size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_digit(at) || (c == '.' && is_digit(at + 1))) {
      const auto literal = detail::read_number(text, at);
      at = literal.end;
      auto value = literal.integer.value_or(none);
      if (value >= 0 && value <= most) {
        found.integers.push_back(value);
        if (before != none)
          if (const auto together = detail::folded(before, operation, value)) {
            found.integers.push_back(*together);
            value = *together;
          }
      } else if (literal.value > 0 && std::isfinite(literal.value)) {
        found.reals.push_back(literal.value);
      }
      before = value;
      operation.clear();
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_'))
        ++at;
      before = none;
    } else {
      // Brackets do not part what an operator joins.
      if (std::isspace(static_cast<unsigned char>(c)) == 0 && c != '(' && c != ')') operation += c;
      ++at;
    }
  }
  detail::keep_once(found.integers);
  detail::keep_once(found.reals);
  return found;
}

/// Those of a text that another one does not name.
[[nodiscard]] inline NamedNumbers numbers_beyond(std::string_view text, std::string_view known) {
  const auto all = numbers_in(text);
  const auto other = numbers_in(known);
  return {detail::without(all.integers, other.integers), detail::without(all.reals, other.reals)};
}

} // namespace mtmc
