#pragma once
/// Definitions of analysis/legality/nest_legality.hpp.

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/legality/loop_legality.hpp>
#include <mtmc/analysis/legality/nest_legality.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE Legality Band::check() const {
  if (first_ > last_ || last_ >= nest_.size()) return declined("the nest has no such loops");
  if (Legality known = analysable(loop(first_)); !known) return known;
  for (std::size_t level = first_; level < last_; ++level)
    if (loop(level).has_continue)
      return declined("a continue skips the rest of an iteration of " + shown(loop(level)));
  return allowed();
}

MTMC_INLINE std::size_t Band::group_of(const LoopInfo* loop_around, std::size_t order) const {
  std::size_t level = first_;
  while (level < last_ && loop_around->inside(&loop(level + 1))) ++level;
  const std::size_t depth = last_ - first_;
  if (level == last_) return depth;
  return order < loop(level + 1).order.first ? level - first_ : 2 * depth - (level - first_);
}

MTMC_INLINE std::size_t Band::group_of(const Access& access) const {
  return group_of(access.loop, access.order);
}

MTMC_INLINE std::optional<std::span<const Directions>>
Band::directions_of(const Dependence& dependence) const {
  const std::size_t begin = position_in(dependence, loop(first_));
  for (std::size_t p = 0; p < begin; ++p)
    if (!has(dependence.directions[p], Directions::equal)) return std::nullopt;
  const std::size_t count = std::min(dependence.directions.size() - begin, last_ - first_ + 1);
  return std::span(dependence.directions).subspan(begin, count);
}

MTMC_INLINE std::vector<Band::BoundDependence> Band::bounds_depend_on(std::size_t level) const {
  std::vector<BoundDependence> result;
  const auto look_at = [&](const Polynomial& bound) {
    for (const Symbol* symbol : bound.symbols())
      for (std::size_t other = first_; other <= last_; ++other)
        if (symbol->loop == &loop(other))
          result.push_back({other, symbol->kind != Symbol::Kind::loop_variable});
  };
  look_at(loop(level).start);
  for (const Polynomial& bound : loop(level).limits) look_at(bound);
  for (const Polynomial& bound : loop(level).origins) look_at(bound);
  return result;
}

MTMC_INLINE void Band::inspect_scalars(Legality& legality,
                                       std::vector<std::vector<Directions>>& dependences) const {
  for (const ScalarFacts& scalar : classify_scalars(loop(first_))) {
    const Variable& variable = *scalar.variable;
    if (scalar.role == ScalarRole::invariant || scalar.role == ScalarRole::reduction) continue;
    if (controls_band(variable)) {
      if (!scalar.live_out) continue;
      legality = declined("the value of " + variable.name + " is read behind the loops");
      return;
    }
    if (scalar.role != ScalarRole::privatizable) {
      legality = declined(depends(loop(first_), variable));
      return;
    }
    if (scalar.live_out) {
      legality = declined("the last value of " + variable.name + " is read behind the loops");
      return;
    }
    inspect_private(variable, legality, dependences);
  }
  if (loop(first_).control != nullptr && loop(first_).variable_type.empty() &&
      read_after(loop(first_), *loop(first_).control))
    legality = declined("the value of " + loop(first_).variable + " is read behind the loops");
}

MTMC_INLINE void Band::inspect_arrays(Legality& legality) const {
  const FunctionAnalysis& function = *loop(first_).function;
  std::vector<std::pair<const Array*, std::size_t>> groups;
  for (std::size_t i = loop(first_).accesses.first; i < loop(first_).accesses.last; ++i) {
    const Access& access = function.accesses[i];
    if (!access.array->local || access.array->variable->loop == nullptr ||
        !access.array->variable->loop->inside(&loop(first_)))
      continue;
    const std::size_t group = group_of(access);
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& entry) { return entry.first == access.array; });
    if (known == groups.end())
      groups.emplace_back(access.array, group);
    else if (known->second != group)
      legality = declined("the array " + access.array->name +
                          " passes values from the statements around the inner loop to it");
  }
}

MTMC_INLINE bool Band::controls_band(const Variable& variable) const {
  for (std::size_t level = first_; level <= last_; ++level)
    if (loop(level).control == &variable) return true;
  return false;
}

MTMC_INLINE void Band::inspect_private(const Variable& variable, Legality& legality,
                                       std::vector<std::vector<Directions>>& dependences) const {
  const FunctionAnalysis& function = *loop(first_).function;
  std::optional<std::size_t> group;
  bool several = false;
  bool body_writes = false;
  int writes = 0;
  for (std::size_t i = loop(first_).scalar_uses.first; i < loop(first_).scalar_uses.last; ++i) {
    const ScalarUse& use = function.scalar_uses[i];
    if (use.variable != &variable) continue;
    const std::size_t own = group_of(use.loop, use.order);
    several = several || (group && *group != own);
    group = own;
    writes += use.write ? 1 : 0;
    body_writes = body_writes || (use.write && own == body_group());
  }
  if (!several) return;
  legality.expanded_scalars.push_back(&variable);
  if (writes == 1 && recomputable(variable)) legality.recomputable.push_back(&variable);
  if (!body_writes) return;
  // Private down to this level; the loops further in pass the value on.
  std::size_t level = first_;
  while (level < last_ && role_in(loop(level + 1), variable).first == ScalarRole::privatizable) ++level;
  if (level == last_) return;
  if (role_in(loop(level + 1), variable).first == ScalarRole::reduction) return;
  for (std::size_t carrier = level + 1; carrier <= last_; ++carrier) {
    std::vector<Directions> vector(last_ - first_ + 1, Directions::equal);
    vector[carrier - first_] = Directions::less;
    for (std::size_t inner = carrier + 1; inner <= last_; ++inner) vector[inner - first_] = Directions::any;
    dependences.push_back(std::move(vector));
  }
}

MTMC_INLINE std::pair<ScalarRole, ReductionOperation> Band::role_in(const LoopInfo& loop,
                                                                    const Variable& variable) {
  VariableUses uses;
  for (std::size_t i = loop.scalar_uses.first; i < loop.scalar_uses.last; ++i)
    if (loop.function->scalar_uses[i].variable == &variable) uses.push_back(&loop.function->scalar_uses[i]);
  if (uses.empty()) return {ScalarRole::invariant, ReductionOperation::none};
  return role_of(loop, uses);
}

MTMC_INLINE bool Band::recomputable(const Variable& variable) const {
  if (variable.declaration == nullptr || variable.declaration->kind != NodeKind::declarator) return false;
  const SyntaxNode* value = initial_value(*variable.declaration);
  if (value == nullptr) return false;
  return reads_only_constants(*value);
}

MTMC_INLINE bool Band::reads_only_constants(const SyntaxNode& node) const {
  const FunctionAnalysis& function = *loop(first_).function;
  if (node.kind == NodeKind::assignment || node.kind == NodeKind::postfix || node.kind == NodeKind::opaque ||
      (node.kind == NodeKind::unary && (node.text == "++" || node.text == "--")))
    return false;
  for (std::size_t i = loop(first_).accesses.first; i < loop(first_).accesses.last; ++i) {
    const Access& access = function.accesses[i];
    if (access.node != &node) continue;
    if (access.array->unknown) return false;
    for (std::size_t j = loop(first_).accesses.first; j < loop(first_).accesses.last; ++j)
      if (function.accesses[j].write &&
          (function.accesses[j].array == access.array || function.accesses[j].array->unknown))
        return false;
  }
  if (node.kind == NodeKind::name)
    for (std::size_t i = loop(first_).scalar_uses.first; i < loop(first_).scalar_uses.last; ++i) {
      const ScalarUse& use = function.scalar_uses[i];
      if (use.write && use.variable->name == node.text && !controls_band(*use.variable)) return false;
    }
  return std::all_of(node.children.begin(), node.children.end(),
                     [this](const SyntaxNode& child) { return reads_only_constants(child); });
}

/// Some pair of iterations in these directions would be executed the wrong way round if the loops stood in
/// this order (indices into the directions).
[[nodiscard]] inline bool violated(std::span<const Directions> directions,
                                   std::span<const std::size_t> order) noexcept {
  for (const std::size_t position : order) {
    if (position >= directions.size()) continue;
    if (has(directions[position], Directions::greater)) return true;
    if (!has(directions[position], Directions::equal)) return false;
  }
  return false;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Legality permutation_legal(const LoopNest& nest, std::size_t first,
                                       const std::vector<std::size_t>& order) {
  // Loops that stay where they are at either end have no part in it.
  std::size_t begin = 0;
  std::size_t end = order.size();
  while (begin < end && order[begin] == first + begin) ++begin;
  while (end > begin && order[end - 1] == first + end - 1) --end;
  if (begin == end) return detail::allowed();
  const std::size_t low = first + begin;
  const std::size_t high = first + end - 1;
  const detail::Band band(nest, low, high);
  Legality legality = band.check();
  if (!legality) return legality;
  std::vector<std::size_t> positions; // of the directions, in the new order
  for (std::size_t p = begin; p < end; ++p) {
    if (order[p] < low || order[p] > high) return detail::declined("that is no order of these loops");
    positions.push_back(order[p] - low);
  }
  const auto place_of = [&](std::size_t level) {
    return std::find(positions.begin(), positions.end(), level - low) - positions.begin();
  };
  for (std::size_t level = low; level <= high; ++level)
    for (const auto& bound : band.bounds_depend_on(level))
      for (std::size_t other = bound.computed ? low : bound.level; other <= bound.level; ++other)
        if (place_of(other) > place_of(level))
          return detail::declined("the bounds of " + detail::shown(band.loop(level)) + " depend on " +
                                  detail::shown(band.loop(other)));
  std::vector<std::vector<Directions>> through_scalars;
  band.inspect_scalars(legality, through_scalars);
  if (legality && !band.perfect()) band.inspect_arrays(legality);
  if (!legality) return legality;
  for (const auto& directions : through_scalars)
    if (detail::violated(directions, positions))
      return detail::declined("a scalar passes values on in the present order of the loops");
  for (const Dependence& dependence : dependences_in(band.loop(low))) {
    const auto directions = band.directions_of(dependence);
    if (dependence.reduction || !directions) continue;
    const std::size_t source = band.group_of(*dependence.source);
    const std::size_t sink = band.group_of(*dependence.sink);
    const bool bad = source == sink ? source == band.body_group() && detail::violated(*directions, positions)
                                    : source > sink;
    if (bad) return detail::declined(detail::depends(band.loop(low), dependence));
  }
  legality.needs_distribution = !band.perfect();
  return legality;
}

MTMC_INLINE Legality interchange_legal(const LoopNest& nest, std::size_t a, std::size_t b) {
  if (a > b) std::swap(a, b);
  std::vector<std::size_t> order;
  for (std::size_t level = a; level <= b; ++level) order.push_back(level == a ? b : level == b ? a : level);
  return permutation_legal(nest, a, order);
}

MTMC_INLINE Legality band_is_permutable(const LoopNest& nest, std::size_t first, std::size_t last) {
  const detail::Band band(nest, first, last);
  Legality legality = band.check();
  if (!legality) return legality;
  for (std::size_t level = first; level <= last; ++level)
    if (const auto bounds = band.bounds_depend_on(level); !bounds.empty())
      return detail::declined("the bounds of " + detail::shown(band.loop(level)) + " depend on " +
                              detail::shown(band.loop(bounds.front().level)));
  std::vector<std::vector<Directions>> through_scalars;
  band.inspect_scalars(legality, through_scalars);
  if (legality && !band.perfect()) band.inspect_arrays(legality);
  if (!legality) return legality;
  const auto moves_back = [](std::span<const Directions> directions) {
    return std::any_of(directions.begin(), directions.end(),
                       [](Directions set) { return detail::has(set, Directions::greater); });
  };
  for (const auto& directions : through_scalars)
    if (moves_back(directions))
      return detail::declined("a scalar passes values on in the present order of the loops");
  for (const Dependence& dependence : dependences_in(band.loop(first))) {
    const auto directions = band.directions_of(dependence);
    if (dependence.reduction || !directions) continue;
    if (moves_back(*directions) || band.group_of(*dependence.source) > band.group_of(*dependence.sink))
      return detail::declined(detail::depends(band.loop(first), dependence));
  }
  legality.needs_distribution = !band.perfect();
  return legality;
}

MTMC_INLINE Legality unroll_and_jam_legal(const LoopNest& nest, std::size_t level) {
  if (level >= nest.size()) return detail::declined("the nest has no such loop");
  const std::size_t last = nest.size() - 1;
  const detail::Band band(nest, level, last);
  Legality legality = band.check();
  if (!legality) return legality;
  if (nest.loop(last).has_continue)
    return detail::declined("a continue skips the rest of an iteration of " + detail::shown(nest.loop(last)));
  if (level == last) return legality;
  for (std::size_t inner = level + 1; inner <= last; ++inner)
    for (const auto& bound : band.bounds_depend_on(inner))
      if (bound.level == level || bound.computed)
        return detail::declined("the bounds of " + detail::shown(nest.loop(inner)) + " depend on " +
                                detail::shown(nest.loop(bound.level)));
  for (const ScalarFacts& scalar : classify_scalars(nest.loop(level))) {
    if (scalar.role == ScalarRole::carried || scalar.role == ScalarRole::induction)
      return detail::declined(detail::depends(nest.loop(level), *scalar.variable));
    if (scalar.role == ScalarRole::privatizable && scalar.live_out)
      return detail::declined("the last value of " + scalar.variable->name + " is read behind the loops");
  }
  for (const Dependence& dependence : dependences_in(nest.loop(level))) {
    const auto directions = band.directions_of(dependence);
    if (dependence.reduction || !directions || !carries(nest.loop(level), dependence)) continue;
    bool tied = true; // the inner loops may be in the same iteration
    bool bad = false;
    for (const Directions set : directions->subspan(1)) {
      bad = bad || (tied && detail::has(set, Directions::greater));
      tied = tied && detail::has(set, Directions::equal);
    }
    if (bad || (tied && band.group_of(*dependence.source) > band.group_of(*dependence.sink)))
      return detail::declined(detail::depends(nest.loop(level), dependence));
  }
  return legality;
}

} // namespace mtmc
