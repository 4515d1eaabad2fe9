#pragma once

#include <mtmc/analysis/syntax/source_text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

/// \file
/// How a source text is laid out, so that what is added to it looks the same.

namespace mtmc::inline MTMC_ABI::detail {

/// Indentation, line ends and brace placement.
struct SourceStyle {
  std::string indentation = "  "; ///< one level
  std::string newline = "\n";
  bool brace_on_own_line = false;
};

/// The style of `source`: indentation and braces as at its first line that ends with an opening brace and has
/// an indented line after it; where there is none, those of `otherwise`.
[[nodiscard]] inline SourceStyle style_of(std::string_view source, SourceStyle otherwise) {
  SourceStyle style = std::move(otherwise);
  const std::size_t newline = source.find('\n');
  if (newline != std::string_view::npos && newline > 0 && source[newline - 1] == '\r') style.newline = "\r\n";
  const auto indentation = [](std::string_view line) {
    return line.substr(0, line.find_first_not_of(" \t"));
  };
  std::string_view opening; // the last line with text, if it ends with a brace
  for (std::size_t begin = 0; begin < source.size();) {
    const std::size_t end = std::min(source.find('\n', begin), source.size());
    const std::string_view line = trim_right(source.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty() || line.front() == '#') continue;
    const std::string_view outer = indentation(opening);
    const std::string_view inner = indentation(line);
    if (!opening.empty() && inner.size() > outer.size() && inner.substr(0, outer.size()) == outer) {
      style.indentation = inner.substr(outer.size());
      style.brace_on_own_line = trim(opening) == "{";
      return style;
    }
    opening = line.back() == '{' ? line : std::string_view{};
  }
  return style;
}

} // namespace mtmc::detail
