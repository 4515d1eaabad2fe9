#pragma once

#include <mtmc/analysis/legality/loop_legality.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// When two neighbouring loops may become one.

namespace mtmc {

namespace detail {

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

/// The statements between two loops may as well stand before the first one.
[[nodiscard]] inline Legality movable_before(const LoopInfo& first, const LoopInfo& second,
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
  if (first.opaque.last != second.opaque.first)
    return declined("something that is not understood stands between the loops");
  if (first.barriers.last != second.barriers.first)
    return declined("the threads of a block wait for each other between the loops");
  for (std::size_t i = first.accesses.last; i < second.accesses.first; ++i) {
    const Access& between_access = function.accesses[i];
    for (std::size_t j = first.accesses.first; j < first.accesses.last; ++j) {
      const Access& inside = function.accesses[j];
      const bool may_meet = inside.array == between_access.array ||
                            (inside.array->unknown && !between_access.array->local) ||
                            (between_access.array->unknown && !inside.array->local);
      if (may_meet && (inside.write || between_access.write))
        return declined("line " + std::to_string(between_access.node->range.first_line) +
                        " between the loops needs " + between_access.array->name + " of the first loop");
    }
  }
  for (std::size_t i = first.scalar_uses.last; i < second.scalar_uses.first; ++i) {
    const ScalarUse& between_use = function.scalar_uses[i];
    for (std::size_t j = first.scalar_uses.first; j < first.scalar_uses.last; ++j) {
      const ScalarUse& inside = function.scalar_uses[j];
      if (inside.variable == between_use.variable && (inside.write || between_use.write))
        return declined("line " + std::to_string(between_use.node->range.first_line) +
                        " between the loops needs " + inside.variable->name + " of the first loop");
    }
    if (between_use.variable == first.control)
      return declined("the value of " + first.variable + " is read between the loops");
  }
  return allowed();
}

[[nodiscard]] inline Legality scalars_allow_fusion(const LoopInfo& first, const LoopInfo& second) {
  const auto of_first = classify_scalars(first);
  const auto of_second = classify_scalars(second);
  const auto written = [](const ScalarFacts& scalar) { return scalar.role != ScalarRole::invariant; };
  for (const ScalarFacts& a : of_first) {
    if (a.variable == second.control && a.variable != first.control)
      return declined(second.variable + " is used in the first loop");
    for (const ScalarFacts& b : of_second) {
      if (a.variable != b.variable || (!written(a) && !written(b))) continue;
      const bool both_private = a.role == ScalarRole::privatizable && b.role == ScalarRole::privatizable;
      const bool both_reduce =
          a.role == ScalarRole::reduction && b.role == ScalarRole::reduction && a.operation == b.operation;
      if (!both_private && !both_reduce)
        return declined("the second loop needs " + a.variable->name + " of all iterations of the first");
    }
  }
  for (const ScalarFacts& b : of_second)
    if (b.variable == first.control) return declined(first.variable + " is used in the second loop");
  return allowed();
}

/// No element goes from an iteration of the first loop to an earlier one of the second.
[[nodiscard]] inline Legality accesses_allow_fusion(const LoopInfo& first, const LoopInfo& second) {
  auto common = common_loops(first.parent, second.parent);
  const std::size_t outer = common.size();
  common.push_back({&first, &second});
  const FunctionAnalysis& function = *first.function;
  int budget = 1000; // constraint systems for one pair of loops
  for (std::size_t i = first.accesses.first; i < first.accesses.last; ++i)
    for (std::size_t j = second.accesses.first; j < second.accesses.last; ++j) {
      const Access& a = function.accesses[i];
      const Access& b = function.accesses[j];
      if (!a.write && !b.write) continue;
      if (a.array != b.array) {
        if ((a.array->unknown && !b.array->local) || (b.array->unknown && !a.array->local))
          return declined(a.array->name + " and " + b.array->name + " may be the same memory");
        continue;
      }
      if (a.update != ReductionOperation::none && a.update == b.update) continue;
      bool backward = a.array->unknown;
      if (!backward) {
        PairTest test(a, b, common, function.assumptions, budget);
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

/// `fusion_legal` for loops whose surroundings are known: `between` stands between them in one block.
[[nodiscard]] inline Legality fusion_legal_between(const LoopInfo& first, const LoopInfo& second,
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

} // namespace detail

/// Two loops that stand one after the other in one block (with nothing but declarations, assignments,
/// comments and directives between them) may become one loop with the bodies one after the other: the
/// iteration spaces are provably equal and no iteration of the second needs something from a later iteration
/// of the first. What stands between them must be movable before the first loop, which is checked.
[[nodiscard]] inline Legality fusion_legal(const LoopInfo& first, const LoopInfo& second) {
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
