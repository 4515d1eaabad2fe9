#pragma once

#include <mtmc/analysis/syntax/source_text.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// \file
/// Comments and blank lines between statements, and which statement they go with.

namespace mtmc::inline MTMC_ABI::detail {

/// The comments and blank lines between two tokens, shared out.
struct TriviaSplit {
  std::string trailing; ///< the comment on the line of the token before
  std::string leading;  ///< whole lines before the token after, at no indentation
};

/// Where the first line of `gap` ends: its newline outside block comments, or its size.
[[nodiscard]] inline std::size_t first_line_end(std::string_view gap) noexcept {
  std::size_t i = 0;
  while (i < gap.size() && gap[i] != '\n') {
    if (gap[i] == '/' && i + 1 < gap.size() && gap[i + 1] == '*') {
      const std::size_t close = gap.find("*/", i + 2);
      i = close == std::string_view::npos ? gap.size() : close + 2;
    } else if (gap[i] == '/' && i + 1 < gap.size() && gap[i + 1] == '/') {
      const std::size_t newline = gap.find('\n', i);
      return newline == std::string_view::npos ? gap.size() : newline;
    } else {
      ++i;
    }
  }
  return i;
}

/// Shares out the trivia `gap`. `after_token`: a token stands before it on its first line. `keep_trailing`: a
/// comment there belongs to that token, else to what follows. `last`: nothing but a closing bracket or the
/// end follows.
[[nodiscard]] inline TriviaSplit split_trivia(std::string_view gap, std::string_view indentation,
                                              bool after_token, bool keep_trailing, bool last) {
  TriviaSplit split;
  std::string_view rest = gap;
  if (after_token) {
    const std::size_t end = first_line_end(gap);
    const std::string_view first = trim(gap.substr(0, end));
    if (keep_trailing && (end < gap.size() || last))
      split.trailing = first;
    else if (!first.empty())
      split.leading = std::string(first) + '\n';
    rest = end < gap.size() ? gap.substr(end + 1) : std::string_view{};
  }
  while (!rest.empty()) {
    const std::size_t newline = rest.find('\n');
    const std::string_view line = trim_right(rest.substr(0, newline));
    if (newline != std::string_view::npos || !line.empty()) {
      split.leading += dedent(line, indentation);
      split.leading += '\n';
    }
    rest = newline == std::string_view::npos ? std::string_view{} : rest.substr(newline + 1);
  }
  return split;
}

} // namespace mtmc::detail
