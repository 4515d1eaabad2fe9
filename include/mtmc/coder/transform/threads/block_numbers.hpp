#pragma once
/// The numbers of blocks that a function speaks of, as variables, and how many there are, as parameters: one
/// form for the transformations that give blocks other work.

#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a node is `blockIdx.y` for an axis.
[[nodiscard]] inline bool is_block_number(const SyntaxNode& node, std::size_t axis) {
  return node.kind == NodeKind::member && is_name(operand(node), "blockIdx") &&
         node.text == '.' + std::string(axis_names[axis]);
}

/// Whether a statement declares one variable as the number of a block, as that is.
[[nodiscard]] inline bool declares_block_number(const SyntaxNode& statement, std::size_t axis) {
  if (statement.kind != NodeKind::declaration || statement.children.size() != 1) return false;
  const SyntaxNode* const value = initial_value(statement.children.front());
  return value != nullptr && is_block_number(*value, axis);
}

/// Whether the number of a thread within its block is named along an axis: threads are numbered there as
/// elsewhere, however few a block has.
[[nodiscard]] inline bool names_thread_along(const SyntaxNode& body, std::size_t axis) {
  bool found = false;
  walk(body, [&](const SyntaxNode& node) {
    found = found || (node.kind == NodeKind::member && is_name(operand(node), "threadIdx") &&
                      node.text == '.' + std::string(axis_names[axis]));
  });
  return found;
}

/// Gives the number of a block along an axis a name where the function uses it in the midst of expressions.
/// False where there is nothing to do.
inline bool name_block_number(SyntaxNode& tree, SyntaxNode& function, std::size_t axis) {
  SyntaxNode& body = function_body(function);
  std::size_t uses = 0;
  walk(body, [&](const SyntaxNode& node) { uses += is_block_number(node, axis) ? 1 : 0; });
  for (const SyntaxNode& statement : body.children)
    if (declares_block_number(statement, axis)) return false;
  if (uses == 0 || names_thread_along(body, axis)) return false;
  const std::string name = fresh_name(tree, "block_" + std::string(axis_names[axis]));
  SyntaxNode number;
  walk(body, [&](SyntaxNode& node) {
    if (!is_block_number(node, axis)) return true;
    number = node;
    node = make_name(name);
    return false;
  });
  body.children.insert(body.children.begin(), make_declaration("const unsigned int", name, number));
  return true;
}

/// Adds a parameter with the number of blocks along an axis where the function's parameters do not tell it.
/// False where there is nothing to do.
inline bool tell_number_of_blocks(SyntaxNode& tree, SyntaxNode& function, std::size_t axis) {
  const auto& body = function_body(function).children;
  if (std::none_of(body.begin(), body.end(),
                   [&](const SyntaxNode& statement) { return declares_block_number(statement, axis); }))
    return false;
  for (LaunchNode& launch : launches_of(tree)) {
    LaunchLine& line = launch.line;
    if (line.entry != function.text || axis >= line.grid.size()) continue;
    if (in_function_words(parse_expression(line.grid[axis]), line, function)) return false;
    const std::string name = fresh_name(tree, "blocks_" + std::string(axis_names[axis]));
    const auto at = function.children.begin() + static_cast<std::ptrdiff_t>(parameters(function).size());
    function.children.insert(at, make_parameter("int", name));
    line.arguments.push_back(line.grid[axis]);
    tree.children[launch.index].text = launch_line_text(line);
    return true;
  }
  return false;
}

/// Does both for all axes along which blocks have one thread.
inline bool name_block_numbers(SyntaxNode& tree, SyntaxNode& function) {
  bool changed = false;
  for (const LaunchNode& launch : launches_of(tree)) {
    if (launch.line.entry != function.text) continue;
    for (std::size_t axis = 0; axis < launch.line.grid.size() && axis < 3; ++axis) {
      if (axis < launch.line.block.size() && launch.line.block[axis] != "1") continue;
      changed = name_block_number(tree, function, axis) || changed;
      changed = tell_number_of_blocks(tree, function, axis) || changed;
    }
    break;
  }
  return changed;
}

} // namespace mtmc::detail
