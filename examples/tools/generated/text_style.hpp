#pragma once
// The outside of a source text: indentation, braces, long lines.

#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "draw.hpp"

namespace generated {

/// How somebody lays out a text.
struct TextStyle {
  std::size_t indent = 2;         ///< columns of a level
  bool braces_apart = false;      ///< an opening brace stands on a line of its own
  bool few_braces = false;        ///< none around a single statement
  bool fewest_braces = false;     ///< nor around a loop that has none
  bool postfix_increment = false; ///< i++ rather than ++i
  bool star_at_name = false;      ///< float *x rather than float* x
  std::size_t width = 110;        ///< columns that the head of a function may have
};

/// A style in which somebody may write.
[[nodiscard]] inline TextStyle drawn_text_style(Draw& draw) {
  return {.indent = draw.chance(0.6) ? std::size_t{2} : std::size_t{4},
          .braces_apart = draw.chance(0.2),
          .few_braces = draw.chance(0.4),
          .fewest_braces = draw.chance(0.6),
          .postfix_increment = draw.chance(0.35),
          .star_at_name = draw.chance(0.25),
          .width = draw.chance(0.5) ? std::size_t{110} : std::size_t{90}};
}

/// The lines of a text, without blanks around them.
[[nodiscard]] inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) lines.emplace_back(mtmc::trim(mtmc::detail::take_line(text)));
  return lines;
}

/// The lines without braces around single statements of loops and branches.
[[nodiscard]] inline std::vector<std::string> without_single_braces(std::vector<std::string> lines,
                                                                    bool nested) {
  const auto is_head = [](const std::string& line) {
    return line.starts_with("for (") || line.starts_with("if (");
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i + 2 < lines.size(); ++i) {
      if (!is_head(lines[i]) || !lines[i].ends_with(" {")) continue;
      std::size_t last = i + 1; // of the only statement inside, behind the heads of loops around it
      while (nested && last + 1 < lines.size() && is_head(lines[last]) && lines[last].ends_with(')')) ++last;
      if (!lines[last].ends_with(';') || lines[last].starts_with("for (") || last + 1 >= lines.size() ||
          lines[last + 1] != "}")
        continue;
      lines[i].resize(lines[i].size() - 2);
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(last) + 1);
      changed = true;
    }
  }
  return lines;
}

/// The head of a function on as many lines as its width takes.
[[nodiscard]] inline std::string wrapped(std::string line, std::size_t width) {
  std::string text;
  const auto open = line.find('(');
  if (open == std::string::npos || line.starts_with("//") || line.find('{') == std::string::npos) return line;
  while (line.size() > width) {
    const auto comma = line.rfind(", ", width - 1);
    if (comma == std::string::npos || comma <= open) break;
    text += line.substr(0, comma + 1) + '\n';
    line = std::string(open + 1, ' ') + line.substr(comma + 2);
  }
  return text + line;
}

/// A text laid out: one statement a line on entry, each block between a line that ends with `{` and one that
/// begins with `}`.
[[nodiscard]] inline std::string laid_out(std::string_view text, const TextStyle& style) {
  auto lines = lines_of(text);
  if (style.few_braces) lines = without_single_braces(std::move(lines), style.fewest_braces);
  std::string result;
  std::size_t depth = 0, single = 0;
  for (auto& line : lines) {
    if (line.starts_with("}") && depth > 0) --depth;
    const std::string margin(style.indent * (depth + single), ' ');
    const bool opens = line.ends_with("{");
    const bool head = line.starts_with("for (") || line.starts_with("if (");
    single = head && !opens && !line.ends_with(';') ? single + 1 : 0;
    if (line.empty()) {
      result += '\n';
      continue;
    }
    const std::string next = "\n" + margin;
    if (style.braces_apart && line == "} else {")
      result += margin + "}" + next + "else" + next + "{\n";
    else if (style.braces_apart && opens && line.size() > 2)
      result += wrapped(margin + line.substr(0, line.size() - 2) + next + "{", style.width) + '\n';
    else
      result += wrapped(margin + line, style.width) + '\n';
    if (opens) ++depth;
  }
  return result;
}

} // namespace generated
