#pragma once
/// How threads that share a reduction already combine their values right behind it.

#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/block_trees.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>

#include <cstddef>
#include <optional>
#include <set>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a statement is `sum = sum_of_block(sum);` for the value, and that function of the tree does what
/// it is called for: combines the values of a warp, or of a block.
[[nodiscard]] inline bool combines_by_function(const SyntaxNode& tree, const SyntaxNode& statement,
                                               const ReducedValue& value, bool warp) {
  if (statement.kind != NodeKind::expression_statement || operand(statement).kind != NodeKind::assignment ||
      operand(statement).text != "=" || !is_name(left_operand(operand(statement)), value.name))
    return false;
  const SyntaxNode& call = right_operand(operand(statement));
  if (call.kind != NodeKind::call || callee(call).kind != NodeKind::name || arguments(call).size() != 1 ||
      !is_name(arguments(call).front(), value.name))
    return false;
  const SyntaxNode* const there = find_function(tree, callee(call).text);
  auto kind = thread_reduction(value.reduction, warp);
  if (!kind || there == nullptr) return false;
  kind->name = callee(call).text;
  const SyntaxNode text = parse(kind->text());
  const SyntaxNode* const wanted = find_function(text, kind->name);
  return wanted != nullptr && structurally_equal(*there, *wanted);
}

/// The statements right behind the loop that combine each value by such a function.
[[nodiscard]] inline std::optional<KnownCombination>
combination_by_functions(const ReductionLaunch& reduction) {
  const ReductionBody& body = reduction.body;
  KnownCombination found;
  found.statements = body.values.size();
  if (body.epilogue.size() < found.statements) return std::nullopt;
  std::set<bool> warps;
  std::set<std::string> combined;
  for (std::size_t i = 0; i < found.statements; ++i)
    for (const ReducedValue& value : body.values)
      for (const bool warp : {false, true})
        if (combines_by_function(reduction.request.tree, *body.epilogue[i], value, warp)) {
          warps.insert(warp);
          combined.insert(value.name);
        }
  if (combined.size() != body.values.size() || warps.size() != 1) return std::nullopt;
  found.warp = *warps.begin();
  for (const ReducedValue& value : body.values) found.totals.push_back(value.name);
  return found;
}

/// How the threads combine their values right behind the loop, where that is known: the parts of a block or
/// a warp are then one.
[[nodiscard]] inline std::optional<KnownCombination> known_combination(const ReductionLaunch& reduction) {
  if (reduction.block.size() != 1 || reduction.threads % 32 != 0 || !reduction.is_shared())
    return std::nullopt;
  if (auto functions = combination_by_functions(reduction)) return functions;
  return BlockTree(reduction.body, reduction.threads,
                   [&](const SyntaxNode& node) { return reduction.is_thread_number(node); })
      .find();
}

} // namespace mtmc::detail
