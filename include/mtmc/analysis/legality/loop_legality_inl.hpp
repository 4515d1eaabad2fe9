#pragma once
/// Definitions of analysis/legality/loop_legality.hpp.

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/loop_legality.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE Legality declined(std::string reason) {
  Legality result;
  result.reason = std::move(reason);
  return result;
}

MTMC_INLINE Legality allowed() {
  Legality result;
  result.legal = true;
  return result;
}

MTMC_INLINE std::string shown(const LoopInfo& loop) {
  return loop.variable.empty() ? "the loop in line " + std::to_string(loop.first_line) : loop.variable;
}

MTMC_INLINE Legality analysable(const LoopInfo& loop) {
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

MTMC_INLINE std::string depends(const LoopInfo& loop, const Dependence& dependence) {
  return "iterations of " + shown(loop) + " may depend on each other through " +
         dependence.source->array->name + " (lines " +
         std::to_string(dependence.source->node->range.first_line) + " and " +
         std::to_string(dependence.sink->node->range.first_line) + ")";
}

MTMC_INLINE std::string depends(const LoopInfo& loop, const Variable& variable) {
  return "iterations of " + shown(loop) + " depend on each other through " + variable.name;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Legality loop_is_parallel(const LoopInfo& loop) {
  if (Legality known = detail::analysable(loop); !known) return known;
  for (const ScalarFacts& scalar : classify_scalars(loop))
    if (scalar.role != ScalarRole::invariant && scalar.role != ScalarRole::privatizable)
      return detail::declined(detail::depends(loop, *scalar.variable));
  for (const Dependence& dependence : dependences_in(loop))
    if (carries(loop, dependence)) return detail::declined(detail::depends(loop, dependence));
  return detail::allowed();
}

MTMC_INLINE std::vector<Reduction> reductions_of(const LoopInfo& loop) {
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

MTMC_INLINE Legality loop_is_reduction(const LoopInfo& loop) {
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

MTMC_INLINE Legality vectorization_legal(const LoopInfo& loop) {
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
