#pragma once
/// Kernels in the style of old C declare loop variables before the loops; transformations want them in the
/// heads.

#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Whether a loop starts with `variable = value`.
[[nodiscard]] inline bool is_loop_over(const SyntaxNode& node, std::string_view variable) {
  return node.kind == NodeKind::for_loop && loop_init(node).kind == NodeKind::assignment &&
         loop_init(node).text == "=" && is_name(left_operand(loop_init(node)), variable);
}

/// Whether all that happens to a variable below `node` is to be the variable of loops that do not contain
/// each other.
[[nodiscard]] inline bool only_counts_loops(const SyntaxNode& node, const std::string& variable,
                                            bool inside) {
  if (is_loop_over(node, variable)) {
    if (inside || uses_name(right_operand(loop_init(node)), variable)) return false;
    return std::all_of(node.children.begin() + 1, node.children.end(),
                       [&](const SyntaxNode& child) { return only_counts_loops(child, variable, true); });
  }
  if (node.kind == NodeKind::pragma || node.kind == NodeKind::opaque) {
    bool mentioned = false;
    names_in_text(node.text, [&](std::string_view name) { mentioned = mentioned || name == variable; });
    return !mentioned;
  }
  if (node.kind == NodeKind::name && node.text == variable) return inside;
  return std::all_of(node.children.begin(), node.children.end(),
                     [&](const SyntaxNode& child) { return only_counts_loops(child, variable, inside); });
}

[[nodiscard]] inline std::size_t count_declarations(const SyntaxNode& function, std::string_view name) {
  std::size_t count = 0;
  walk(function, [&](const SyntaxNode& node) {
    if ((node.kind == NodeKind::declarator || node.kind == NodeKind::parameter) && node.text == name) ++count;
  });
  return count;
}

/// Declares a variable in the heads of its loops.
inline void declare_in_heads(SyntaxNode& node, const std::string& type, const std::string& variable) {
  if (is_loop_over(node, variable)) {
    SyntaxNode value = std::move(right_operand(loop_init(node)));
    loop_init(node) = make_declaration(type, variable, std::move(value));
    return;
  }
  for (SyntaxNode& child : node.children) declare_in_heads(child, type, variable);
}

/// Moves the declarations of a block's loop variables into the loops.
inline void declare_loop_variables_of(SyntaxNode& block, const SyntaxNode& function) {
  for (std::size_t i = 0; i < block.children.size(); ++i) {
    if (block.children[i].kind != NodeKind::declaration) continue;
    const std::string type = block.children[i].type;
    const bool plain = type == "int" || type == "long" || type == "unsigned" || type == "unsigned int" ||
                       type == "size_t" || type == "std::size_t" || type == "int64_t" ||
                       type == "std::int64_t" || type == "long long" || type == "unsigned long";
    if (!plain) continue;
    std::vector<std::string> moved;
    for (const SyntaxNode& declarator : block.children[i].children)
      if (declarator.children.empty() && declarator.type.empty() &&
          count_declarations(function, declarator.text) == 1 &&
          only_counts_loops(block, declarator.text, false))
        moved.push_back(declarator.text);
    for (const std::string& variable : moved) {
      for (SyntaxNode& statement : block.children) declare_in_heads(statement, type, variable);
      std::erase_if(block.children[i].children,
                    [&](const SyntaxNode& declarator) { return declarator.text == variable; });
    }
    if (!block.children[i].children.empty()) continue;
    if (i + 1 < block.children.size())
      block.children[i + 1].leading_trivia.insert(0, block.children[i].leading_trivia);
    block.children.erase(block.children.begin() + static_cast<std::ptrdiff_t>(i));
    --i;
  }
}

} // namespace detail

/// `int i; for (i = 0; ...)` becomes `for (int i = 0; ...)` wherever the value of `i` is not used outside
/// such loops.
inline void declare_loop_variables(SyntaxNode& tree) {
  for (SyntaxNode* function : functions(tree)) {
    const SyntaxNode before = *function;
    detail::declare_loop_variables_of(function_body(*function), before);
  }
}

} // namespace mtmc
