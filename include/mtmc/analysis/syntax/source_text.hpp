#pragma once

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// \file
/// Lines and indentation of source text, as the parser takes it apart and the printer puts it together.

namespace mtmc::inline MTMC_ABI::detail {

[[nodiscard]] constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

[[nodiscard]] inline std::string_view trim_right(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

[[nodiscard]] inline std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return trim_right(text);
}

/// The blanks that begin the line on which `offset` is the byte in `column` (from 1).
[[nodiscard]] inline std::string_view line_indentation(std::string_view source, std::size_t offset,
                                                       int column) noexcept {
  const std::size_t begin = offset - static_cast<std::size_t>(column - 1);
  std::size_t end = begin;
  while (end < offset && (source[end] == ' ' || source[end] == '\t')) ++end;
  return source.substr(begin, end - begin);
}

/// Takes `indentation` off the front of `line`, or all its leading blanks if it stands further left.
[[nodiscard]] inline std::string_view dedent(std::string_view line, std::string_view indentation) noexcept {
  if (line.substr(0, indentation.size()) == indentation) return line.substr(indentation.size());
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return line;
}

/// `text` with its lines after the first moved from the indentation `from` to `to`. Lines further left than
/// `from`, directives at the left edge and texts with raw strings stay as they are.
[[nodiscard]] inline std::string reindent(std::string_view text, std::string_view from, std::string_view to) {
  if (from == to || text.find('\n') == std::string_view::npos || text.find("R\"") != std::string_view::npos)
    return std::string(text);
  std::string result;
  result.reserve(text.size() + 64);
  std::size_t begin = 0;
  for (;;) {
    const std::size_t newline = text.find('\n', begin);
    const std::string_view line =
        text.substr(begin, newline == std::string_view::npos ? newline : newline - begin);
    const bool fixed =
        begin == 0 || trim(line).empty() || line.front() == '#' || line.substr(0, from.size()) != from;
    if (!fixed) result += to;
    result += fixed ? line : line.substr(from.size());
    if (newline == std::string_view::npos) return result;
    result += '\n';
    begin = newline + 1;
  }
}

} // namespace mtmc::detail
