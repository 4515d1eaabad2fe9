#pragma once

#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

/// \file
/// What the scalars used in a loop are to that loop.

namespace mtmc::inline MTMC_ABI {

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
  /// The scalar.
  const Variable* variable = nullptr;
  /// What the loop does with it.
  ScalarRole role = ScalarRole::invariant;
  /// Of a reduction.
  ReductionOperation operation = ReductionOperation::none;
  /// Declared inside the loop's body.
  bool declared_inside = false;
  /// Declared outside and written in the loop, and read after it: the last value must survive.
  bool live_out = false;
};

namespace detail {

/// Writes that have happened on the way through the uses of a variable, by the branches they stand in.
class WritesSoFar {
public:
  explicit WritesSoFar(const FunctionAnalysis& function) : function_(function) {}

  void note(const ScalarUse& write) { guards_.insert(write.guard); }
  /// One of them has certainly happened where the read does: its branch is the read's, or around it.
  [[nodiscard]] bool define(const ScalarUse& read) const {
    for (std::size_t guard = read.guard;; guard = function_.guards[guard].parent) {
      if (guards_.contains(guard)) return true;
      if (guard == 0) return false;
    }
  }

private:
  const FunctionAnalysis& function_;
  std::unordered_set<std::size_t> guards_;
};

/// The uses of one variable.
using VariableUses = std::vector<const ScalarUse*>;

/// Whenever one of the reads happens, one of the writes has happened before it in the same pass. The uses
/// stand in their order.
[[nodiscard]] inline bool all_defined(const FunctionAnalysis& function, const VariableUses& uses) {
  WritesSoFar writes(function);
  for (const ScalarUse* use : uses) {
    if (use->write)
      writes.note(*use);
    else if (!writes.define(*use))
      return false;
  }
  return true;
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
  if (all_defined(*loop.function, uses)) return {ScalarRole::privatizable, ReductionOperation::none};
  const ReductionOperation operation = uses.front()->update;
  const bool updates =
      std::all_of(uses.begin(), uses.end(), [&](const ScalarUse* use) { return use->update == operation; });
  // What `+=` means of a class is the class's affair.
  const auto type = type_facts(variable.type);
  const bool number = type.floating || type.integer || has_word(variable.type, "auto");
  if (updates && operation != ReductionOperation::none && !variable.pointer && number)
    return {ScalarRole::reduction, operation};
  if (is_induction(loop, uses)) return {ScalarRole::induction, ReductionOperation::none};
  return {ScalarRole::carried, ReductionOperation::none};
}

/// The value that the loop leaves in the variable may be read later: behind the loop, or in the next
/// iteration of a loop around it.
[[nodiscard]] inline bool read_after(const LoopInfo& loop, const Variable& variable) {
  if (variable.persistent || variable.address_taken) return true;
  // Each loop that uses the variable looks at all of its uses, which a text may have in each of its lines.
  constexpr std::size_t max_uses = 2000;
  if (variable.uses.size() > max_uses) return true;
  WritesSoFar before(*loop.function);
  WritesSoFar behind(*loop.function);
  for (const std::size_t position : variable.uses) {
    const ScalarUse& use = loop.function->scalar_uses[position];
    if (position >= loop.scalar_uses.first && position < loop.scalar_uses.last) continue;
    const bool is_behind = position >= loop.scalar_uses.last;
    WritesSoFar& writes = is_behind ? behind : before;
    if (use.write)
      writes.note(use);
    else if ((is_behind || loop.parent != nullptr) && !writes.define(use))
      return true;
  }
  return false;
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
