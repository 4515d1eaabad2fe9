#pragma once
/// What is taken off a block before it is read as code, each only where the whole block has it.

#include <mtmc/coder/answer_text.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Without line numbers ("  12 | for", "12: for", "12<tab>for") where all lines that are not blank have one,
/// two lines at least, and they ascend.
[[nodiscard]] inline std::string without_line_numbers(std::string_view text) {
  std::string bare;
  long last = -1;
  int numbered = 0;
  for (const auto line : answer_lines(text)) {
    auto rest = line;
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
    if (!trim(rest).empty()) {
      long number = 0;
      std::size_t digits = 0;
      while (digits < rest.size() && digits < 7 && rest[digits] >= '0' && rest[digits] <= '9')
        number = number * 10 + (rest[digits++] - '0');
      if (digits == 0 || number <= last) return std::string(text);
      rest.remove_prefix(digits);
      const bool tab = rest.starts_with('\t');
      while (!tab && rest.starts_with(' ')) rest.remove_prefix(1);
      if (rest.empty() || (rest.front() != '|' && rest.front() != ':' && !tab)) return std::string(text);
      rest.remove_prefix(1);
      if (!tab && rest.starts_with(' ')) rest.remove_prefix(1);
      last = number;
      ++numbered;
    }
    bare.append(rest) += '\n';
  }
  return numbered >= 2 ? bare : std::string(text);
}

/// `&lt;`, `&gt;`, `&quot;`, `&#39;` and `&amp;` as the characters they stand for, in a text that has the
/// first, second or last of them and no `<` or `>` of its own: C, C++ and Python have no use for such a text.
[[nodiscard]] inline std::string without_html_escapes(std::string_view text) {
  constexpr auto escapes = std::to_array<std::pair<std::string_view, char>>(
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&#39;", '\''}});
  const bool escaped = text.find("&lt;") != std::string_view::npos ||
                       text.find("&gt;") != std::string_view::npos ||
                       text.find("&amp;") != std::string_view::npos;
  if (!escaped || text.find_first_of("<>") != std::string_view::npos) return std::string(text);
  std::string bare;
  while (!text.empty()) {
    std::size_t length = 1;
    char c = text.front();
    for (const auto& [escape, character] : escapes)
      if (text.starts_with(escape)) {
        length = escape.size();
        c = character;
        break;
      }
    bare += c;
    text.remove_prefix(length);
  }
  return bare;
}

/// Without the backslashes of Markdown, where every underscore of the text has one.
[[nodiscard]] inline std::string without_markdown_escapes(std::string_view text) {
  bool escaped = false;
  for (auto at = text.find('_'); at != std::string_view::npos; at = text.find('_', at + 1)) {
    if (at == 0 || text[at - 1] != '\\') return std::string(text);
    escaped = true;
  }
  if (!escaped) return std::string(text);
  std::string bare;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool drop = text[i] == '\\' && i + 1 < text.size() &&
                      std::string_view("_*[]<>#").find(text[i + 1]) != std::string_view::npos;
    if (!drop) bare += text[i];
  }
  return bare;
}

/// Without the blanks that all lines start with.
[[nodiscard]] inline std::string without_common_indent(std::string_view text) {
  bool first = true;
  std::string_view common;
  for (const auto line : answer_lines(text)) {
    if (trim(line).empty()) continue;
    const auto blanks = line.substr(0, line.find_first_not_of(" \t"));
    if (first) common = blanks;
    first = false;
    std::size_t same = 0;
    while (same < common.size() && same < blanks.size() && common[same] == blanks[same]) ++same;
    common = common.substr(0, same);
  }
  if (common.empty()) return std::string(text);
  std::string bare;
  for (const auto line : answer_lines(text))
    bare.append(line.substr(std::min(line.size(), common.size()))) += '\n';
  return bare;
}

/// Normalised, without blank lines before.
[[nodiscard]] inline std::string bare_code(std::string_view text) {
  auto code = normalize_text(text);
  std::size_t from = 0;
  for (std::size_t at = 0; at < code.size() && (code[at] == ' ' || code[at] == '\t' || code[at] == '\n');
       ++at)
    if (code[at] == '\n') from = at + 1;
  return code.substr(from);
}

/// A block's text as code.
[[nodiscard]] inline std::string repaired_code(std::string_view text) {
  return bare_code(
      without_common_indent(without_markdown_escapes(without_html_escapes(without_line_numbers(text)))));
}

} // namespace mtmc::detail
