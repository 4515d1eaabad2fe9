#pragma once

#include <mtmc/analysis/kernel_analysis.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

/// \file
/// What the scalars used in a loop are to that loop.

namespace mtmc {

/// What a scalar is to a loop.
enum class ScalarRole : std::uint8_t {
  /// Not written in the loop.
  invariant,
  /// Every iteration writes it before it reads it (or it is declared in the body): iterations do not
  /// communicate through it.
  privatizable,
  /// Moves by the same amount in every iteration (`p += 2` once, unconditionally).
  induction,
  /// Only ever updated by one operation whose order does not matter (but for rounding).
  reduction,
  /// An iteration reads what an earlier one wrote, in some other way.
  carried
};

/// A scalar as seen from one loop.
struct ScalarFacts {
  const Variable* variable = nullptr;
  ScalarRole role = ScalarRole::invariant;
  /// Of a reduction.
  ReductionOperation operation = ReductionOperation::none;
  /// Declared inside the loop's body.
  bool declared_inside = false;
  /// Declared outside and written in the loop, and read after it: the last value must survive.
  bool live_out = false;
};

namespace detail {

/// `outer` is `inner` or around it.
[[nodiscard]] inline bool guards(const FunctionAnalysis& function, std::size_t outer,
                                 std::size_t inner) noexcept {
  while (true) {
    if (inner == outer) return true;
    if (inner == 0) return false;
    inner = function.guards[inner].parent;
  }
}

/// The uses of one variable.
using VariableUses = std::vector<const ScalarUse*>;

/// Whenever `read` happens, one of the writes from `first` on has happened before it in the same pass.
[[nodiscard]] inline bool defined_before(const FunctionAnalysis& function, const VariableUses& uses,
                                         const ScalarUse& read) {
  return std::any_of(uses.begin(), uses.end(), [&](const ScalarUse* use) {
    return use->write && use->order < read.order && guards(function, use->guard, read.guard);
  });
}

/// The variable is moved exactly once in each iteration, by an amount that stays the same.
[[nodiscard]] inline bool is_induction(const LoopInfo& loop, const VariableUses& uses) {
  const ScalarUse* update = nullptr;
  for (const ScalarUse* use : uses) {
    if (!use->write) continue;
    if (update != nullptr || use->update != ReductionOperation::sum || use->loop != &loop) return false;
    if (loop.function->guards[use->guard].loop != &loop) return false; // in a branch
    update = use;
  }
  if (update == nullptr || update->variable->floating || update->statement == nullptr ||
      update->statement->kind != NodeKind::expression_statement)
    return false;
  const SyntaxNode& expression = operand(*update->statement);
  if (expression.kind == NodeKind::unary || expression.kind == NodeKind::postfix) return true;
  if (expression.kind != NodeKind::assignment || expression.text == "=") return false;
  const SyntaxNode& amount = right_operand(expression);
  if (amount.kind == NodeKind::literal) return true;
  if (amount.kind != NodeKind::name) return false;
  const auto all = std::span(loop.function->scalar_uses)
                       .subspan(loop.scalar_uses.first, loop.scalar_uses.last - loop.scalar_uses.first);
  return std::none_of(all.begin(), all.end(),
                      [&](const ScalarUse& use) { return use.write && use.variable->name == amount.text; });
}

[[nodiscard]] inline std::pair<ScalarRole, ReductionOperation> role_of(const LoopInfo& loop,
                                                                       const VariableUses& uses) {
  const Variable& variable = *uses.front()->variable;
  const bool written = std::any_of(uses.begin(), uses.end(), [](const ScalarUse* use) { return use->write; });
  if (!written) return {ScalarRole::invariant, ReductionOperation::none};
  if (variable.persistent || variable.address_taken) return {ScalarRole::carried, ReductionOperation::none};
  if (variable.loop != nullptr && variable.loop->inside(&loop))
    return {ScalarRole::privatizable, ReductionOperation::none};
  const bool defined = std::all_of(uses.begin(), uses.end(), [&](const ScalarUse* use) {
    return use->write || defined_before(*loop.function, uses, *use);
  });
  if (defined) return {ScalarRole::privatizable, ReductionOperation::none};
  const ReductionOperation operation = uses.front()->update;
  const bool updates =
      std::all_of(uses.begin(), uses.end(), [&](const ScalarUse* use) { return use->update == operation; });
  if (updates && operation != ReductionOperation::none && !variable.pointer)
    return {ScalarRole::reduction, operation};
  if (is_induction(loop, uses)) return {ScalarRole::induction, ReductionOperation::none};
  return {ScalarRole::carried, ReductionOperation::none};
}

/// The value that the loop leaves in the variable may be read later: behind the loop, or in the next
/// iteration of a loop around it.
[[nodiscard]] inline bool read_after(const LoopInfo& loop, const Variable& variable) {
  const auto& uses = loop.function->scalar_uses;
  VariableUses outside;
  for (const std::size_t use : variable.uses)
    if (use < loop.scalar_uses.first || use >= loop.scalar_uses.last) outside.push_back(&uses[use]);
  const std::size_t end = loop.scalar_uses.last;
  for (const ScalarUse* use : outside) {
    if (use->write) continue;
    const auto redefines = [&](std::size_t from) {
      return std::any_of(outside.begin(), outside.end(), [&](const ScalarUse* other) {
        return other->write && other->order < use->order &&
               static_cast<std::size_t>(other - uses.data()) >= from &&
               guards(*loop.function, other->guard, use->guard);
      });
    };
    const bool behind = static_cast<std::size_t>(use - uses.data()) >= end;
    if (behind ? !redefines(end) : loop.parent != nullptr && !redefines(0)) return true;
  }
  return variable.persistent || variable.address_taken;
}

} // namespace detail

/// The scalars used in a loop (heads of inner loops included, its own variable not), in order of first use.
/// Parameters that nobody assigns are left out, and so are variables that only loops' heads declare.
[[nodiscard]] inline std::vector<ScalarFacts> classify_scalars(const LoopInfo& loop) {
  std::vector<ScalarFacts> result;
  std::vector<detail::VariableUses> uses;
  std::unordered_map<const Variable*, std::size_t> position;
  for (std::size_t i = loop.scalar_uses.first; i < loop.scalar_uses.last; ++i) {
    const ScalarUse& use = loop.function->scalar_uses[i];
    if (use.variable == loop.control) continue;
    const auto [entry, fresh] = position.emplace(use.variable, uses.size());
    if (fresh) uses.emplace_back();
    uses[entry->second].push_back(&use);
  }
  for (const detail::VariableUses& own : uses) {
    ScalarFacts facts;
    facts.variable = own.front()->variable;
    std::tie(facts.role, facts.operation) = detail::role_of(loop, own);
    facts.declared_inside = facts.variable->loop != nullptr && facts.variable->loop->inside(&loop);
    if (facts.role != ScalarRole::invariant && !facts.declared_inside)
      facts.live_out = detail::read_after(loop, *facts.variable);
    result.push_back(facts);
  }
  return result;
}

} // namespace mtmc
