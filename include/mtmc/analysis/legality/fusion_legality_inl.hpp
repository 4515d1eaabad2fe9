#pragma once
/// Definitions of analysis/legality/fusion_legality.hpp.

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/legality/fusion_legality.hpp>
#include <mtmc/analysis/legality/loop_legality.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Both loops run through the same values, provably.
[[nodiscard]] inline bool same_iterations(const LoopInfo& first, const LoopInfo& second) {
  if (first.step != second.step || first.limits.size() != second.limits.size() ||
      !(expanded(first.start) == expanded(second.start)))
    return false;
  std::vector<Polynomial> others;
  for (const Polynomial& limit : second.limits) others.push_back(expanded(limit));
  return std::all_of(first.limits.begin(), first.limits.end(), [&](const Polynomial& limit) {
    const Polynomial wanted = expanded(limit);
    return std::any_of(others.begin(), others.end(),
                       [&](const Polynomial& other) { return other == wanted; });
  });
}

MTMC_INLINE UsedInLoop::UsedInLoop(const LoopInfo& loop) {
  const FunctionAnalysis& function = *loop.function;
  for (std::size_t i = loop.accesses.first; i < loop.accesses.last; ++i) {
    const Access& access = function.accesses[i];
    note(arrays_[access.array], access.write);
    if (access.array->unknown) note(through_unknown_, access.write);
    if (!access.array->local) note(shared_, access.write);
  }
  for (std::size_t i = loop.scalar_uses.first; i < loop.scalar_uses.last; ++i)
    note(scalars_[function.scalar_uses[i].variable], function.scalar_uses[i].write);
}

MTMC_INLINE bool UsedInLoop::needs_order(const Access& access) const {
  const auto same = arrays_.find(access.array);
  return (same != arrays_.end() && conflicts(same->second, access.write)) ||
         (!access.array->local && conflicts(through_unknown_, access.write)) ||
         (access.array->unknown && conflicts(shared_, access.write));
}

MTMC_INLINE bool UsedInLoop::needs_order(const ScalarUse& use) const {
  const auto same = scalars_.find(use.variable);
  return same != scalars_.end() && conflicts(same->second, use.write);
}

MTMC_INLINE bool UsedInLoop::conflicts(const Uses& uses, bool write) {
  return uses.written || (write && uses.read);
}

MTMC_INLINE Legality movable_before(const LoopInfo& first, const LoopInfo& second,
                                    std::span<const SyntaxNode> between) {
  for (const SyntaxNode& statement : between) switch (statement.kind) {
    case NodeKind::declaration:
    case NodeKind::expression_statement:
    case NodeKind::comment:
    case NodeKind::pragma:
    case NodeKind::empty:
      break;
    default:
      return declined("line " + std::to_string(statement.range.first_line) + " stands between the loops");
    }
  const FunctionAnalysis& function = *first.function;
  const UsedInLoop inside(first);
  if (first.opaque.last != second.opaque.first)
    return declined("something that is not understood stands between the loops");
  if (first.barriers.last != second.barriers.first)
    return declined("the threads of a block wait for each other between the loops");
  for (std::size_t i = first.accesses.last; i < second.accesses.first; ++i) {
    const Access& access = function.accesses[i];
    if (inside.needs_order(access))
      return declined("line " + std::to_string(access.node->range.first_line) + " between the loops needs " +
                      access.array->name + " of the first loop");
  }
  for (std::size_t i = first.scalar_uses.last; i < second.scalar_uses.first; ++i) {
    const ScalarUse& use = function.scalar_uses[i];
    if (inside.needs_order(use))
      return declined("line " + std::to_string(use.node->range.first_line) + " between the loops needs " +
                      use.variable->name + " of the first loop");
    if (use.variable == first.control)
      return declined("the value of " + first.variable + " is read between the loops");
  }
  return allowed();
}

[[nodiscard]] inline Legality scalars_allow_fusion(const LoopInfo& first, const LoopInfo& second) {
  const auto of_first = classify_scalars(first);
  const auto of_second = classify_scalars(second);
  std::unordered_map<const Variable*, const ScalarFacts*> in_second;
  for (const ScalarFacts& b : of_second) in_second.emplace(b.variable, &b);
  const auto written = [](const ScalarFacts& scalar) { return scalar.role != ScalarRole::invariant; };
  for (const ScalarFacts& a : of_first) {
    if (a.variable == second.control && a.variable != first.control)
      return declined(second.variable + " is used in the first loop");
    const auto found = in_second.find(a.variable);
    if (found == in_second.end() || (!written(a) && !written(*found->second))) continue;
    const ScalarFacts& b = *found->second;
    const bool both_private = a.role == ScalarRole::privatizable && b.role == ScalarRole::privatizable;
    const bool both_reduce =
        a.role == ScalarRole::reduction && b.role == ScalarRole::reduction && a.operation == b.operation;
    if (!both_private && !both_reduce)
      return declined("the second loop needs " + a.variable->name + " of all iterations of the first");
  }
  if (in_second.contains(first.control)) return declined(first.variable + " is used in the second loop");
  return allowed();
}

MTMC_INLINE Legality accesses_allow_fusion(const LoopInfo& first, const LoopInfo& second) {
  auto common = common_loops(first.parent, second.parent);
  const std::size_t outer = common.size();
  common.push_back({&first, &second});
  const FunctionAnalysis& function = *first.function;
  for (std::size_t i = first.accesses.first; i < first.accesses.last; ++i)
    for (std::size_t j = second.accesses.first; j < second.accesses.last; ++j) {
      const Access& a = function.accesses[i];
      const Access& b = function.accesses[j];
      if (!function.budget->spend(1)) return declined("comparing all accesses of the loops takes too long");
      if (!a.write && !b.write) continue;
      if (a.array != b.array) {
        if ((a.array->unknown && !b.array->local) || (b.array->unknown && !a.array->local))
          return declined(a.array->name + " and " + b.array->name + " may be the same memory");
        continue;
      }
      if (a.update != ReductionOperation::none && a.update == b.update) continue;
      bool backward = a.array->unknown;
      if (!backward) {
        PairTest test(a, b, common, function.assumptions, *function.budget);
        test.restrict_outer(outer);
        const PairVectors pairs = test.run();
        backward = std::any_of(pairs.vectors.begin(), pairs.vectors.end(),
                               [&](const auto& vector) { return has(vector[outer], Directions::greater); });
      }
      if (backward)
        return declined("an iteration of the second loop needs " + a.array->name +
                        " of a later iteration of the first");
    }
  return allowed();
}

MTMC_INLINE Legality fusion_legal_between(const LoopInfo& first, const LoopInfo& second,
                                          std::span<const SyntaxNode> between) {
  if (Legality known = analysable(first); !known) return known;
  if (Legality known = analysable(second); !known) return known;
  if (first.has_continue) return declined("a continue skips the rest of an iteration of " + shown(first));
  if (!same_iterations(first, second))
    return declined("the loops " + shown(first) + " and " + shown(second) +
                    " do not provably run through the same values");
  if (Legality movable = movable_before(first, second, between); !movable) return movable;
  if (Legality scalars = scalars_allow_fusion(first, second); !scalars) return scalars;
  return accesses_allow_fusion(first, second);
}

/// The statements of the block that contains the loop directly, or nothing.
[[nodiscard]] inline std::span<const SyntaxNode> block_around(const SyntaxNode& root,
                                                              const SyntaxNode& loop) {
  for (const SyntaxNode& child : root.children) {
    if (&child == &loop)
      return root.kind == NodeKind::block ? std::span(root.children) : std::span(&child, 1);
    if (child.range.known() && loop.range.known() &&
        (loop.range.begin < child.range.begin || loop.range.end > child.range.end))
      continue;
    if (is_expression(child.kind)) continue;
    if (const auto found = block_around(child, loop); !found.empty()) return found;
  }
  return {};
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Legality fusion_legal(const LoopInfo& first, const LoopInfo& second) {
  if (first.function != second.function || first.parent != second.parent)
    return detail::declined("the loops do not stand in the same block");
  const SyntaxNode& around =
      first.parent != nullptr ? loop_body(*first.parent->node) : function_body(*first.function->node);
  auto block = detail::block_around(around, *first.node);
  if (block.empty()) block = statements(around);
  const std::size_t a = detail::statement_position(block, first.node);
  const std::size_t b = detail::statement_position(block, second.node);
  if (a >= b || b == block.size()) return detail::declined("the loops do not stand in the same block");
  return detail::fusion_legal_between(first, second, block.subspan(a + 1, b - a - 1));
}

} // namespace mtmc
