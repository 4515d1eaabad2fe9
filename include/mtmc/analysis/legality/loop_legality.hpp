#pragma once

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// What single loops allow: parallel execution, reductions, vector instructions. See legality.hpp.

namespace mtmc {

/// Yes, or no and why.
struct Legality {
  bool legal = false;
  /// One sentence without full stop, fit for a decline: "iterations of i depend on each other through A".
  /// Empty if legal.
  std::string reason{};
  /// Scalars private to an iteration that have to be expanded to arrays (see above).
  std::vector<const Variable*> expanded_scalars{};
  /// Those of them that are declared with a value that may as well be computed anew where it is used: the
  /// declaration is their only definition, and nothing it reads is written in the nest.
  std::vector<const Variable*> recomputable{};
  /// The nest is imperfect between the loops in question: statements before and after the inner loops must be
  /// distributed into loops of their own.
  bool needs_distribution = false;
  explicit operator bool() const noexcept { return legal; }
};

/// A reduction that a loop carries.
struct Reduction {
  ReductionOperation operation = ReductionOperation::none;
  /// The scalar, or null.
  const Variable* scalar = nullptr;
  /// Else the array whose elements are updated, and one such write.
  const Array* array = nullptr;
  const Access* access = nullptr;
  /// The type of what is reduced ("float").
  std::string type{};
};

namespace detail {

[[nodiscard]] inline Legality declined(std::string reason) {
  Legality result;
  result.reason = std::move(reason);
  return result;
}
[[nodiscard]] inline Legality allowed() {
  Legality result;
  result.legal = true;
  return result;
}

[[nodiscard]] inline std::string shown(const LoopInfo& loop) {
  return loop.variable.empty() ? "the loop in line " + std::to_string(loop.first_line) : loop.variable;
}

/// Nothing can be said of a loop that is not canonical or does what is not understood.
[[nodiscard]] inline Legality analysable(const LoopInfo& loop) {
  if (!loop.canonical) return declined("the loop is no counting loop: " + loop.why_not_canonical);
  if (loop.understood && loop.barriers.first == loop.barriers.last) return allowed();
  if (loop.understood)
    return declined("the threads of a block wait for each other in line " +
                    std::to_string(loop.function->barriers[loop.barriers.first].node->range.first_line));
  const auto& opaque = loop.function->opaque;
  if (loop.opaque.first >= opaque.size()) return declined("it contains something that is not understood");
  const OpaqueEffect& effect = opaque[loop.opaque.first];
  return declined("line " + std::to_string(effect.line) + " contains " + effect.reason);
}

/// A dependence that is in the way, as a sentence.
[[nodiscard]] inline std::string depends(const LoopInfo& loop, const Dependence& dependence) {
  return "iterations of " + shown(loop) + " may depend on each other through " +
         dependence.source->array->name + " (lines " +
         std::to_string(dependence.source->node->range.first_line) + " and " +
         std::to_string(dependence.sink->node->range.first_line) + ")";
}

[[nodiscard]] inline std::string depends(const LoopInfo& loop, const Variable& variable) {
  return "iterations of " + shown(loop) + " depend on each other through " + variable.name;
}

} // namespace detail

/// Iterations may run at once, in any order: no dependence is carried by the loop, not even of a reduction.
/// Scalars that are declared outside but private to an iteration (`classify_scalars`) must be made private.
[[nodiscard]] inline Legality loop_is_parallel(const LoopInfo& loop) {
  if (Legality known = detail::analysable(loop); !known) return known;
  for (const ScalarFacts& scalar : classify_scalars(loop))
    if (scalar.role != ScalarRole::invariant && scalar.role != ScalarRole::privatizable)
      return detail::declined(detail::depends(loop, *scalar.variable));
  for (const Dependence& dependence : dependences_in(loop))
    if (carries(loop, dependence)) return detail::declined(detail::depends(loop, dependence));
  return detail::allowed();
}

/// The reductions a loop carries.
[[nodiscard]] inline std::vector<Reduction> reductions_of(const LoopInfo& loop) {
  std::vector<Reduction> result;
  for (const ScalarFacts& scalar : classify_scalars(loop))
    if (scalar.role == ScalarRole::reduction) {
      Reduction reduction;
      reduction.operation = scalar.operation;
      reduction.scalar = scalar.variable;
      reduction.type = scalar.variable->type;
      result.push_back(std::move(reduction));
    }
  for (const Dependence& dependence : dependences_in(loop)) {
    if (!dependence.reduction || !dependence.sink->write || !carries(loop, dependence)) continue;
    const bool known = std::any_of(result.begin(), result.end(), [&](const Reduction& other) {
      return other.array == dependence.sink->array && other.operation == dependence.sink->update;
    });
    if (known) continue;
    Reduction reduction;
    reduction.operation = dependence.sink->update;
    reduction.array = dependence.sink->array;
    reduction.access = dependence.sink;
    reduction.type = dependence.sink->array->element_type;
    result.push_back(std::move(reduction));
  }
  return result;
}

/// Everything the loop carries is a recognised reduction, and there is at least one.
[[nodiscard]] inline Legality loop_is_reduction(const LoopInfo& loop) {
  if (Legality known = detail::analysable(loop); !known) return known;
  for (const ScalarFacts& scalar : classify_scalars(loop))
    if (scalar.role == ScalarRole::carried || scalar.role == ScalarRole::induction)
      return detail::declined(detail::depends(loop, *scalar.variable));
  for (const Dependence& dependence : dependences_in(loop))
    if (!dependence.reduction && carries(loop, dependence))
      return detail::declined(detail::depends(loop, dependence));
  if (reductions_of(loop).empty())
    return detail::declined("iterations of " + detail::shown(loop) + " do not depend on each other at all");
  return detail::allowed();
}

/// The innermost loop may be executed by vector instructions: what it carries are reductions of scalars (or
/// of an element that stays the same), or dependences from a statement to a later one, which whole vectors
/// respect. The reductions are those of `reductions_of`.
[[nodiscard]] inline Legality vectorization_legal(const LoopInfo& loop) {
  if (Legality known = detail::analysable(loop); !known) return known;
  if (!loop.innermost()) return detail::declined(detail::shown(loop) + " is not the innermost loop");
  for (const ScalarFacts& scalar : classify_scalars(loop))
    if (scalar.role == ScalarRole::carried || scalar.role == ScalarRole::induction)
      return detail::declined(detail::depends(loop, *scalar.variable));
  for (const Dependence& dependence : dependences_in(loop)) {
    if (!carries(loop, dependence)) continue;
    if (dependence.reduction) {
      const auto& subscripts = dependence.sink->subscripts;
      const bool fixed = std::all_of(subscripts.begin(), subscripts.end(), [&](const Polynomial& subscript) {
        const auto symbols = subscript.symbols();
        return subscript.defined() && std::none_of(symbols.begin(), symbols.end(), [&](const Symbol* symbol) {
                 return symbol->loop != nullptr && symbol->loop->inside(&loop);
               });
      });
      if (fixed) continue;
    } else if (dependence.source->order < dependence.sink->order) {
      continue;
    }
    return detail::declined(detail::depends(loop, dependence));
  }
  return detail::allowed();
}

} // namespace mtmc
