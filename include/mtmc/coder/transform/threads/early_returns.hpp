#pragma once
/// Threads beyond the last result that return early, written as a branch around the work: one form for the
/// transformations that write a function anew.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether an expression is made of names and integers alone. Comparisons of other things may be of floating
/// values, where "not less" is more than "greater or equal".
[[nodiscard]] inline bool is_of_integers(const SyntaxNode& expression, const SyntaxNode& function) {
  const auto is_real = [](std::string_view type) {
    return type.find("float") != std::string_view::npos || type.find("double") != std::string_view::npos ||
           type.find("half") != std::string_view::npos || type.find("auto") != std::string_view::npos;
  };
  bool integers = true;
  walk(expression, [&](const SyntaxNode& node) {
    if (node.kind == NodeKind::literal)
      integers = integers && node.text.find_first_of(".fFeE") == std::string::npos;
    else if (node.kind == NodeKind::cast)
      integers = integers && !is_real(node.type);
    else if (node.kind != NodeKind::name && node.kind != NodeKind::binary && node.kind != NodeKind::member)
      integers = false;
  });
  walk(function, [&](const SyntaxNode& node) {
    if (node.kind == NodeKind::parameter && is_real(node.type) && uses_name(expression, node.text))
      integers = false;
    if (node.kind == NodeKind::declaration && is_real(node.type))
      for (const SyntaxNode& declarator : node.children)
        integers = integers && !uses_name(expression, declarator.text);
  });
  return integers;
}

/// The condition that holds where another does not: `i < M && j < N` for `i >= M || j >= N`.
[[nodiscard]] inline SyntaxNode opposite_of(const SyntaxNode& condition, const SyntaxNode& function) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> opposites{
      {{">=", "<"}, {"<", ">="}, {">", "<="}, {"<=", ">"}, {"==", "!="}, {"!=", "=="}}};
  if (condition.kind == NodeKind::unary && condition.text == "!") return operand(condition);
  if (condition.kind == NodeKind::binary) {
    const SyntaxNode &left = left_operand(condition), &right = right_operand(condition);
    if (condition.text == "||" || condition.text == "&&")
      return make_binary(condition.text == "||" ? "&&" : "||", opposite_of(left, function),
                         opposite_of(right, function));
    for (const auto& [symbol, opposite] : opposites)
      if (condition.text == symbol && is_of_integers(condition, function))
        return make_binary(std::string(opposite), left, right);
  }
  return make_unary("!", condition);
}

/// The parts of a condition that must all hold: those that `&&` joins.
inline void take_conditions(const SyntaxNode& condition, std::vector<SyntaxNode>& conditions) {
  if (condition.kind == NodeKind::binary && condition.text == "&&") {
    take_conditions(left_operand(condition), conditions);
    take_conditions(right_operand(condition), conditions);
  } else {
    conditions.push_back(condition);
  }
}

/// Whether a statement is `if (...) return;`.
[[nodiscard]] inline bool is_early_return(const SyntaxNode& statement) {
  if (statement.kind != NodeKind::if_statement || else_branch(statement) != nullptr) return false;
  const auto inside = statements(then_branch(statement));
  return inside.size() == 1 && inside.front().kind == NodeKind::return_statement &&
         inside.front().children.empty();
}

/// Writes `if (i >= M) return; work` as `if (i < M) { work }`, where only declarations stand in front and
/// nothing else returns. False where there is nothing of the kind.
[[nodiscard]] inline bool nest_early_returns(SyntaxNode& function) {
  std::vector<SyntaxNode>& body = function_body(function).children;
  const auto first = std::find_if(body.begin(), body.end(), is_early_return);
  const bool declarations = std::all_of(body.begin(), first, [](const SyntaxNode& statement) {
    return statement.kind == NodeKind::declaration || statement.kind == NodeKind::comment;
  });
  if (first == body.end() || !declarations) return false;
  auto end = first;
  SyntaxNode condition = opposite_of(if_condition(*end), function);
  for (++end; end != body.end() && is_early_return(*end); ++end)
    condition = make_binary("&&", std::move(condition), opposite_of(if_condition(*end), function));
  bool returns = end == body.end();
  std::for_each(end, body.end(), [&](const SyntaxNode& statement) {
    walk(statement, [&](const SyntaxNode& node) {
      returns = returns || node.kind == NodeKind::return_statement || node.kind == NodeKind::opaque;
    });
  });
  if (returns) return false;
  std::string trivia = first->leading_trivia;
  SyntaxNode branch = make_if(
      std::move(condition),
      make_block(std::vector<SyntaxNode>(std::make_move_iterator(end), std::make_move_iterator(body.end()))));
  branch.leading_trivia = std::move(trivia);
  body.erase(first, body.end());
  body.push_back(std::move(branch));
  return true;
}

} // namespace mtmc::detail
