#pragma once
/// Reading and rewriting the launch lines of a tree together with the functions they call.

#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/support/text.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A launch line and where it stands among the children of the tree.
struct LaunchNode {
  std::size_t index = 0;
  LaunchLine line{};
};

/// The text of a launch comment after its marker, and its keyword.
[[nodiscard]] inline std::string launch_keyword(const SyntaxNode& node, std::string_view& rest) {
  if (node.kind != NodeKind::launch_comment) return {};
  rest = trim(std::string_view(node.text));
  if (!rest.starts_with("//@")) return {};
  rest.remove_prefix(3);
  return take_identifier(rest);
}

/// The name of the buffer that a `scratch` line declares; empty for any other node, and for a buffer that
/// every call finds full of zeros, which is read before it is written.
[[nodiscard]] inline std::string scratch_name(const SyntaxNode& node) {
  std::string_view rest;
  if (launch_keyword(node, rest) != "scratch" || trim(rest).ends_with("zero")) return {};
  return take_identifier(rest);
}

/// All launches of a kernel in order.
[[nodiscard]] inline std::vector<LaunchNode> launches_of(const SyntaxNode& tree) {
  std::vector<LaunchNode> launches;
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    std::string_view rest;
    if (launch_keyword(tree.children[i], rest) != "launch") continue;
    launches.push_back(
        {i, parse_launch_line(rest, tree.children[i].text, tree.children[i].range.first_line)});
  }
  return launches;
}

[[nodiscard]] inline std::size_t count_launches(const SyntaxNode& tree, std::string_view entry) {
  const auto launches = launches_of(tree);
  return static_cast<std::size_t>(
      std::count_if(launches.begin(), launches.end(),
                    [entry](const LaunchNode& launch) { return launch.line.entry == entry; }));
}

/// Whether some function calls the function of that name.
[[nodiscard]] inline bool is_called(const SyntaxNode& tree, std::string_view name) {
  bool called = false;
  walk(tree, [&](const SyntaxNode& node) {
    if (is_call_of(node, name) || (node.kind == NodeKind::opaque && uses_name(node, name))) called = true;
  });
  return called;
}

/// Whether an expression of a launch line mentions a name.
[[nodiscard]] inline bool mentions(std::string_view expression, std::string_view name) {
  for (std::size_t at = expression.find(name); at != std::string_view::npos;
       at = expression.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_name_character(expression[at - 1])) &&
        (end == expression.size() || !is_name_character(expression[end])))
      return true;
  }
  return false;
}

/// `//@ launch entry<<<grid, block>>>(arguments)`.
[[nodiscard]] inline std::string launch_line_text(const LaunchLine& line) {
  const auto extents = [](const std::vector<std::string>& parts) {
    return parts.size() == 1 ? parts.front() : '(' + joined(parts, ", ") + ')';
  };
  std::string text = "//@ launch " + line.entry;
  if (!line.grid.empty()) {
    text += "<<<" + extents(line.grid) + ", " + extents(line.block);
    if (!line.shared_bytes.empty()) text += ", " + line.shared_bytes;
    if (!line.cluster.empty()) text += ", cluster(" + joined(line.cluster, ", ") + ')';
    text += ">>>";
  }
  return text + '(' + joined(line.arguments, ", ") + ')';
}

/// Removes a parameter of a function and its argument in the launch lines.
inline void remove_parameter(SyntaxNode& tree, SyntaxNode& function, const std::string& parameter) {
  std::size_t position = 0;
  while (position < parameters(function).size() && parameters(function)[position].text != parameter)
    ++position;
  if (position == parameters(function).size()) return;
  function.children.erase(function.children.begin() + static_cast<std::ptrdiff_t>(position));
  for (LaunchNode& launch : launches_of(tree)) {
    if (launch.line.entry != function.text || position >= launch.line.arguments.size()) continue;
    launch.line.arguments.erase(launch.line.arguments.begin() + static_cast<std::ptrdiff_t>(position));
    tree.children[launch.index].text = launch_line_text(launch.line);
  }
}

/// Whether a launch gives the same buffer to two parameters of its function.
[[nodiscard]] inline bool has_aliased_arguments(const LaunchLine& launch, const SyntaxNode& function) {
  const auto& arguments = launch.arguments;
  const auto formal = parameters(function);
  for (std::size_t i = 0; i < arguments.size() && i < formal.size(); ++i) {
    if (formal[i].type.find('*') == std::string::npos) continue;
    if (std::count(arguments.begin(), arguments.end(), arguments[i]) > 1) return true;
  }
  return false;
}

/// Whether some launch of a function does.
[[nodiscard]] inline bool has_aliased_arguments(const SyntaxNode& tree, const SyntaxNode& function) {
  const auto launches = launches_of(tree);
  return std::any_of(launches.begin(), launches.end(), [&](const LaunchNode& launch) {
    return launch.line.entry == function.text && has_aliased_arguments(launch.line, function);
  });
}

} // namespace mtmc::detail
