#pragma once
/// Definitions of analysis/region_facts.hpp.

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/region_facts.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/analysis/threads/warp_access.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE FunctionAtSize::FunctionAtSize(const FunctionAnalysis& function, const CallContext& context)
    : values_(context.values) {
  if (context.geometry) grid_.emplace(function, *context.geometry, values_);
  for (const LoopInfo& loop : function.loops) {
    trips_.push_back(loop.stride.defined() ? strided_trips(loop) : trip_count(loop, values_));
    const double outer = loop.parent == nullptr ? executions(nullptr) : counts_[loop.parent->index];
    counts_.push_back(trips_.back() ? outer * static_cast<double>(*trips_.back()) : unknown);
    facts_.push_back(loop_facts(loop));
  }
  std::optional<WarpAccess> warp;
  if (grid_) warp.emplace(function, *grid_, values_);
  for (const Access& access : function.accesses) {
    movements_.push_back(movement_of(access));
    if (warp && access.array->place != ArrayPlace::own)
      movements_.back().lanes = warp->facts(access, movements_.back().strides);
  }
}

MTMC_INLINE double FunctionAtSize::executions(const LoopInfo* loop) const {
  if (loop != nullptr) return counts_[loop->index];
  return grid_ ? grid_->working_threads() : 1;
}

MTMC_INLINE std::optional<std::int64_t> FunctionAtSize::strided_trips(const LoopInfo& loop) const {
  Symbols of_first_thread = values_;
  for (const std::string_view index : block_index_names) of_first_thread[std::string(index)] = 0;
  const auto first = value_at(loop.start, of_first_thread);
  const auto limit = value_at(loop.limits.front(), values_);
  const auto stride = value_at(loop.stride, values_);
  if (!first || !limit || !stride || *stride < 1) return std::nullopt;
  return *limit > *first ? (*limit - *first - 1) / *stride + 1 : 0;
}

MTMC_INLINE std::string FunctionAtSize::joined(const std::vector<Polynomial>& bounds,
                                               std::string_view function, std::int64_t shift) {
  std::string text;
  for (const Polynomial& bound : bounds) {
    if (!text.empty()) text += ", ";
    text += (bound + Polynomial(shift)).text();
  }
  return bounds.size() > 1 ? std::string(function) + '(' + text + ')' : text;
}

MTMC_INLINE LoopFacts FunctionAtSize::loop_facts(const LoopInfo& loop) const {
  LoopFacts result;
  result.variable = loop.canonical ? loop.variable : loop_component(*loop.node);
  result.innermost = loop.innermost();
  result.perfect = loop.innermost();
  if (loop.stride.defined()) {
    result.lower = loop.start.text();
    result.upper = loop.limits.front().text();
    result.trip_count = trips_[loop.index];
  }
  if (!loop.canonical) return result;
  result.step = loop.step;
  if (loop.step > 0) {
    result.lower = joined(loop.origins, "max", 0);
    result.upper = joined(loop.limits, "min", 0);
  } else {
    result.lower = joined(loop.limits, "max", 1);
    result.upper = joined(loop.origins, "min", 1);
  }
  result.trip_count = trips_[loop.index];
  result.parallel = loop_is_parallel(loop).legal;
  result.reduction =
      !result.parallel && (loop_is_reduction(loop).legal || (grid_ && carried_scalars(loop).legality.legal));
  return result;
}

MTMC_INLINE FunctionAtSize::Movement FunctionAtSize::movement_of(const Access& access) const {
  Movement result;
  for (std::size_t d = 0; d < access.subscripts.size(); ++d)
    result.subscript += (d > 0 ? "][" : "") + access.subscripts[d].text();
  result.strides.resize(access.loop == nullptr ? 0 : static_cast<std::size_t>(access.loop->depth) + 1);
  for (const LoopInfo* loop = access.loop; loop != nullptr; loop = loop->parent)
    result.strides[static_cast<std::size_t>(loop->depth)] = stride(access, *loop);
  return result;
}

MTMC_INLINE std::optional<std::int64_t> FunctionAtSize::stride(const Access& access,
                                                               const LoopInfo& loop) const {
  if (!loop.canonical || access.subscripts.empty()) return std::nullopt;
  const Array& array = *access.array;
  std::int64_t total = 0;
  std::int64_t weight = 1; // elements from one index of the dimension to the next
  for (std::size_t d = access.subscripts.size(); d-- > 0;) {
    const auto slope = slope_of(access.subscripts[d], loop);
    std::int64_t part = 0;
    if (!slope || __builtin_mul_overflow(*slope, weight, &part) ||
        __builtin_mul_overflow(part, loop.step, &part) || __builtin_add_overflow(total, part, &total))
      return std::nullopt;
    if (d == 0 || array.extents.empty()) break;
    const auto extent = value_at(array.extents[d], values_);
    if (!extent || __builtin_mul_overflow(weight, *extent, &weight)) return std::nullopt;
  }
  return total;
}

MTMC_INLINE std::optional<std::int64_t> FunctionAtSize::slope_of(const Polynomial& subscript,
                                                                 const LoopInfo& loop) const {
  if (!subscript.defined()) return std::nullopt;
  bool moves = false;
  for (const auto& term : subscript.terms())
    for (std::size_t i = 0; i < term.degree; ++i) {
      const Symbol& symbol = *term.factors[i];
      if (&symbol == loop.symbol)
        moves = true;
      else if (symbol.kind != Symbol::Kind::loop_variable && symbol.loop != nullptr &&
               symbol.loop->inside(&loop))
        return std::nullopt;
    }
  if (!moves) return 0;
  if (subscript.degree_in(loop.symbol) > 1) return std::nullopt;
  return value_at(subscript.coefficient_of(loop.symbol), values_);
}

MTMC_INLINE bool Piece::holds(const LoopInfo* loop) const noexcept {
  if (members.empty()) return true;
  return std::any_of(members.begin(), members.end(),
                     [loop](const LoopInfo* member) { return loop != nullptr && loop->inside(member); });
}

MTMC_INLINE RegionFacts FactsBuilder::run() {
  choose_loops();
  for (const LoopInfo* loop : loops_) facts_.loops.push_back(loop_facts(*loop));
  add_accesses();
  add_work();
  add_calls();
  add_directives();
  if (piece_.members.size() == 1) nest_facts();
  add_reductions();
  if (at_size_.grid() != nullptr) add_threads(*at_size_.grid());
  return std::move(facts_);
}

MTMC_INLINE void FactsBuilder::choose_loops() {
  if (piece_.members.size() == 1) {
    nest_ = nest_of(*piece_.members.front());
    for (const NestLevel& level : nest_.levels) loops_.push_back(level.loop);
  } else if (piece_.members.empty()) {
    for (const LoopInfo& loop : function_.loops)
      if (loop.parent == nullptr) loops_.push_back(&loop);
  } else {
    loops_ = piece_.members;
  }
}

MTMC_INLINE LoopFacts FactsBuilder::loop_facts(const LoopInfo& loop) const {
  LoopFacts result = at_size_.facts(loop);
  for (std::size_t level = 0; level + 1 < nest_.levels.size(); ++level)
    if (nest_.levels[level].loop == &loop) result.perfect = nest_.perfect(level, level + 1);
  return result;
}

MTMC_INLINE std::string FactsBuilder::buffer_of(const Array& array) const {
  const auto found = context_.buffers.find(array.name);
  return found == context_.buffers.end() ? array.name : found->second;
}

MTMC_INLINE std::optional<std::int64_t> FactsBuilder::stride(const Access& access, std::size_t index,
                                                             const LoopInfo& loop) const {
  if (access.loop != nullptr && access.loop->inside(&loop))
    return at_size_.movement(index).strides[static_cast<std::size_t>(loop.depth)];
  if (piece_.members.size() == 1) return 0;
  return std::nullopt;
}

MTMC_INLINE double FactsBuilder::elements_touched(const Access& access, std::size_t index) const {
  double count = at_size_.grid() == nullptr ? 1 : at_size_.grid()->moving_threads(access);
  for (const LoopInfo* loop = access.loop; loop != nullptr && piece_.holds(loop); loop = loop->parent) {
    const auto step = at_size_.movement(index).strides[static_cast<std::size_t>(loop->depth)];
    if (step && *step == 0) continue;
    count *= at_size_.trips(*loop) ? static_cast<double>(*at_size_.trips(*loop)) : 1;
  }
  const auto known = context_.elements.find(access.array->name);
  return known == context_.elements.end() ? count : std::min(count, known->second);
}

MTMC_INLINE void FactsBuilder::insert_once(std::vector<std::string>& list, const std::string& name,
                                           Names& known) {
  if (known.insert(name).second) list.push_back(name);
}

MTMC_INLINE void FactsBuilder::add_accesses() {
  std::unordered_set<std::string> seen;
  std::vector<std::pair<const Array*, double>> touched;
  std::unordered_map<const Array*, std::size_t> position; // in `touched`
  double requests = 0;
  double bytes = 0;
  for_accesses([&](std::size_t index) {
    const Access& access = function_.accesses[index];
    const Array& array = *access.array;
    const std::string name = array.unknown && array.variable == nullptr ? std::string("*") : buffer_of(array);
    facts_.indirect = facts_.indirect || access.indirect;
    if (!array.local && array.place != ArrayPlace::block)
      insert_once(access.write ? facts_.writes : facts_.reads, name,
                  access.write ? known_.writes : known_.reads);
    if (at_size_.grid() == nullptr || array.place == ArrayPlace::common) {
      const double executions = at_size_.executions(access.loop);
      requests += executions;
      bytes += executions * array.element_size;
      const auto [entry, fresh] = position.emplace(&array, touched.size());
      if (fresh) touched.emplace_back(&array, 0.0);
      double& count = touched[entry->second].second;
      count = std::max(count, elements_touched(access, index));
    }
    if (facts_.accesses.size() >= max_accesses) return;
    const std::string& subscript = at_size_.movement(index).subscript;
    if (!seen.insert(name + (access.write ? '<' : '>') + subscript).second) return;
    AccessFacts fact;
    fact.array = name;
    fact.subscript = subscript;
    fact.write = access.write;
    for (const LoopInfo* loop : loops_) fact.strides.push_back(stride(access, index, *loop));
    fact.lanes = at_size_.movement(index).lanes;
    facts_.accesses.push_back(std::move(fact));
  });
  if (bytes == bytes) facts_.bytes = bytes; // not where a trip count is missing
  // Elements touched are counted for one run of the piece, requests for all of them.
  const double runs = piece_.members.empty() ? 1
                                             : at_size_.executions(piece_.members.front()->parent) /
                                                   at_size_.executions(nullptr);
  double distinct = 0;
  for (const auto& [array, count] : touched) distinct += count * runs;
  if (distinct > 0 && requests == requests) facts_.reuse = std::max(1.0, requests / distinct);
}

MTMC_INLINE void FactsBuilder::add_work() {
  double flops = piece_.members.empty() ? function_.flops * at_size_.executions(nullptr) : 0;
  facts_.branches = piece_.members.empty() && function_.branches;
  for_loops([&](const LoopInfo& loop) {
    if (loop.flops > 0) flops += loop.flops * at_size_.executions(&loop);
    facts_.branches = facts_.branches || loop.branches;
  });
  if (flops == flops) facts_.flops = flops;
  facts_.opaque = piece_.members.empty() && !function_.opaque.empty();
  for (const LoopInfo* member : piece_.members) facts_.opaque = facts_.opaque || !member->understood;
}

MTMC_INLINE void FactsBuilder::add_calls() {
  const auto add = [this](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      insert_once(facts_.calls, function_.calls[i].name, known_.calls);
      facts_.transcendental = facts_.transcendental || function_.calls[i].transcendental;
    }
  };
  if (piece_.members.empty()) add(0, function_.calls.size());
  for (const LoopInfo* member : piece_.members) add(member->calls.first, member->calls.last);
}

MTMC_INLINE void FactsBuilder::add_directives() {
  const auto add = [this](const LoopInfo& loop) {
    for (const std::string& directive : loop.directives)
      insert_once(facts_.directives, directive, known_.directives);
  };
  for (const LoopInfo* member : piece_.members)
    for (const LoopInfo* loop = member->parent; loop != nullptr; loop = loop->parent) add(*loop);
  for_loops(add);
}

MTMC_INLINE void FactsBuilder::nest_facts() {
  for (std::size_t level = 0; level + 1 < nest_.size(); ++level) {
    facts_.interchangeable = facts_.interchangeable || interchange_legal(nest_, level, level + 1).legal;
    facts_.tileable = facts_.tileable || band_is_permutable(nest_, level, level + 1).legal;
  }
  const LoopInfo& last = *loops_.back();
  facts_.vectorizable = last.innermost() && vectorization_legal(last).legal;
  add_dependences();
  add_scalar_dependences();
}

MTMC_INLINE void FactsBuilder::add_reductions() {
  if (at_size_.grid() == nullptr) return;
  for_loops([&](const LoopInfo& loop) {
    if (!loop.canonical) return;
    for (const ScalarFacts& scalar : classify_scalars(loop))
      if (scalar.role == ScalarRole::reduction)
        insert_once(facts_.reductions, scalar.variable->name + ' ' + std::string(to_string(scalar.operation)),
                    known_.reductions);
  });
}

MTMC_INLINE void FactsBuilder::add_threads(const ThreadGrid& grid) {
  facts_.threads = grid.axes();
  facts_.shared_bytes = grid.shared_bytes();
  const auto add = [this](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i)
      ++(function_.barriers[i].scope == Synchronization::block ? facts_.block_barriers
                                                               : facts_.warp_exchanges);
  };
  if (piece_.members.empty()) add(0, function_.barriers.size());
  for (const LoopInfo* member : piece_.members) add(member->barriers.first, member->barriers.last);
  facts_.staged = piece_.members.size() == 1 && stages_a_tile(*piece_.members.front());
}

MTMC_INLINE bool FactsBuilder::stages_a_tile(const LoopInfo& loop) const {
  bool loads = false;
  std::size_t filled = 0;
  for (std::size_t i = loop.accesses.first; i < loop.accesses.last; ++i) {
    const Access& access = function_.accesses[i];
    loads = loads || (!access.write && access.array->place == ArrayPlace::common);
    if (access.write && access.array->place == ArrayPlace::block && filled == 0) filled = access.order + 1;
  }
  if (!loads || filled == 0) return false;
  for (std::size_t b = loop.barriers.first; b < loop.barriers.last; ++b) {
    const Barrier& barrier = function_.barriers[b];
    if (barrier.loop != &loop || barrier.scope != Synchronization::block || barrier.order < filled) continue;
    for (std::size_t i = loop.accesses.first; i < loop.accesses.last; ++i) {
      const Access& access = function_.accesses[i];
      if (!access.write && access.array->place == ArrayPlace::block && access.order > barrier.order)
        return true;
    }
  }
  return false;
}

MTMC_INLINE char FactsBuilder::symbol_of(Directions set) noexcept {
  if (set == Directions::less) return '<';
  if (set == Directions::equal) return '=';
  if (set == Directions::greater) return '>';
  return '*';
}

MTMC_INLINE void FactsBuilder::enter(DependenceFacts fact) {
  if (facts_.dependences.size() < max_dependences &&
      std::find(facts_.dependences.begin(), facts_.dependences.end(), fact) == facts_.dependences.end())
    facts_.dependences.push_back(std::move(fact));
}

MTMC_INLINE void FactsBuilder::add_dependences() {
  const LoopInfo& outermost = *loops_.front();
  for (const Dependence& dependence : dependences_in(outermost)) {
    const std::size_t begin = position_in(dependence, outermost);
    bool here = true;
    for (std::size_t p = 0; p < begin; ++p) here = here && has(dependence.directions[p], Directions::equal);
    if (!here) continue;
    DependenceFacts fact;
    fact.kind = dependence.kind;
    fact.variable = buffer_of(*dependence.source->array);
    fact.reduction = dependence.reduction;
    for (const LoopInfo* loop : loops_) {
      const std::size_t p = position_in(dependence, *loop);
      const bool common = p < dependence.loops.size();
      fact.direction += common ? symbol_of(dependence.directions[p]) : '*';
      fact.distance.push_back(common ? dependence.distances[p] : std::nullopt);
    }
    enter(std::move(fact));
  }
}

MTMC_INLINE void FactsBuilder::add_scalar_dependences() {
  for (std::size_t level = 0; level < loops_.size(); ++level) {
    if (!loops_[level]->canonical) continue;
    for (const ScalarFacts& scalar : classify_scalars(*loops_[level])) {
      if (scalar.role == ScalarRole::invariant || scalar.role == ScalarRole::privatizable) continue;
      DependenceFacts fact;
      fact.variable = scalar.variable->name;
      fact.reduction = scalar.role == ScalarRole::reduction;
      fact.direction.assign(loops_.size(), '*');
      fact.distance.assign(loops_.size(), std::nullopt);
      for (std::size_t outer = 0; outer < level; ++outer) {
        fact.direction[outer] = '=';
        fact.distance[outer] = 0;
      }
      fact.direction[level] = '<';
      enter(std::move(fact));
    }
  }
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE RegionFacts region_facts(const FunctionAnalysis& function, std::vector<const LoopInfo*> members,
                                     const CallContext& context, const detail::FunctionAtSize& at_size) {
  const detail::Piece piece{&function, std::move(members)};
  return detail::FactsBuilder(piece, context, at_size).run();
}

} // namespace mtmc
