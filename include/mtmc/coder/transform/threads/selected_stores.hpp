#pragma once
/// Stores of one element in both ways of a branch, written as one store of a selected value.

#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// The one statement of a way of a branch, where that is `array[...] = value;`.
[[nodiscard]] inline const SyntaxNode* only_store(const SyntaxNode& way) {
  const auto inside = statements(way);
  if (inside.size() != 1 || inside.front().kind != NodeKind::expression_statement) return nullptr;
  const SyntaxNode& expression = operand(inside.front());
  const bool stores = expression.kind == NodeKind::assignment && expression.text == "=" &&
                      left_operand(expression).kind == NodeKind::subscript;
  return stores ? &expression : nullptr;
}

/// Writes `if (c) a[i] = x; else a[i] = y;` as `a[i] = c ? x : y;`, also where branches stand in each other.
/// `floats`: the arrays of `float`, of which that is known to convert both values as before.
inline void select_stores(SyntaxNode& node, const std::set<std::string>& floats) {
  for (SyntaxNode& child : node.children) select_stores(child, floats);
  if (node.kind != NodeKind::if_statement) return;
  const SyntaxNode* const other = else_branch(node);
  const SyntaxNode* const yes = only_store(then_branch(node));
  const SyntaxNode* const no = other == nullptr ? nullptr : only_store(*other);
  if (yes == nullptr || no == nullptr || !structurally_equal(left_operand(*yes), left_operand(*no))) return;
  const SyntaxNode& element = left_operand(*yes);
  bool changes =
      subscript_base(element).kind != NodeKind::name || !floats.contains(subscript_base(element).text);
  walk(subscript_index(element), [&](const SyntaxNode& part) {
    changes = changes || part.kind == NodeKind::assignment || part.kind == NodeKind::call ||
              part.kind == NodeKind::opaque || part.text == "++" || part.text == "--";
  });
  if (changes) return;
  SyntaxNode store = make_assignment(
      element, "=", make_conditional(if_condition(node), right_operand(*yes), right_operand(*no)));
  store.leading_trivia = node.leading_trivia;
  store.trailing_trivia = node.trailing_trivia;
  node = std::move(store);
}

/// The same in a function, for all of its parameters that point to `float`.
inline void select_stores_of(SyntaxNode& function) {
  std::set<std::string> floats;
  for (const SyntaxNode& parameter : parameters(function))
    if (parameter.type.find('*') != std::string::npos && pointed_type(parameter.type) == "float")
      floats.insert(parameter.text);
  select_stores(function_body(function), floats);
}

} // namespace mtmc::detail
