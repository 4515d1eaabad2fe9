#pragma once
/// Templates with placeholders in braces, as policy cards hold them.

#include <mtmc/support/text.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::array<std::string_view, 8> policy_placeholders{
    "observation", "task", "device", "kernel", "regions", "history", "actions", "legend"};

/// Passes the pieces of a template, in their order, to `text(piece)` and `placeholder(name)`. `{{` and `}}`
/// are braces, and so is one that holds no name.
template <class Text, class Placeholder>
void visit_template(std::string_view pattern, Text text, Placeholder placeholder) {
  while (!pattern.empty()) {
    const auto brace = pattern.find_first_of("{}");
    text(pattern.substr(0, brace));
    if (brace == std::string_view::npos) return;
    pattern.remove_prefix(brace);
    const auto close = pattern.find('}');
    if (pattern.size() > 1 && pattern[1] == pattern[0]) {
      text(pattern.substr(0, 1));
      pattern.remove_prefix(2);
    } else if (pattern[0] == '{' && close != std::string_view::npos &&
               is_identifier(pattern.substr(1, close - 1))) {
      placeholder(pattern.substr(1, close - 1));
      pattern.remove_prefix(close + 1);
    } else {
      text(pattern.substr(0, 1));
      pattern.remove_prefix(1);
    }
  }
}

[[nodiscard]] inline bool has_placeholder(std::string_view pattern, std::string_view wanted) {
  bool found = false;
  visit_template(pattern, [](std::string_view) {}, [&](std::string_view name) { found |= name == wanted; });
  return found;
}

/// The first placeholder that does not exist; empty if all do.
[[nodiscard]] inline std::string find_unknown_placeholder(std::string_view pattern) {
  std::string unknown;
  visit_template(
      pattern, [](std::string_view) {},
      [&](std::string_view name) {
        for (const auto known : policy_placeholders)
          if (known == name) return;
        if (unknown.empty()) unknown = name;
      });
  return unknown;
}

} // namespace mtmc::detail
