#pragma once
/// Definitions of analysis/legality/grid_fusion.hpp.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/element_match.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/legality/loop_legality.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/core/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE Polynomial TaskSizes::read(const std::string& text) {
  const Argument* argument = task_ == nullptr ? nullptr : task_->find_argument(text);
  const std::string& shown = argument != nullptr && !argument->value.empty() ? argument->value : text;
  const auto value_of = [this](const std::string& name) { return symbol(name); };
  return SizeReader(shown, value_of).read();
}

MTMC_INLINE Polynomial TaskSizes::elements(const std::string& buffer, std::span<const ScratchText> scratch) {
  const std::vector<std::string>* shape = nullptr;
  if (const Argument* argument = task_ == nullptr ? nullptr : task_->find_argument(buffer))
    shape = &argument->shape;
  for (const ScratchText& line : scratch)
    if (line.name == buffer) shape = &line.extents;
  if (shape == nullptr || shape->empty()) return Polynomial::undefined();
  Polynomial product{1};
  for (const std::string& extent : *shape) product = product * read(extent);
  return product;
}

MTMC_INLINE Polynomial TaskSizes::translate(const Polynomial& polynomial, const FunctionAnalysis& function,
                                            const LaunchText& launch) {
  Polynomial result = expanded(polynomial);
  if (!result.defined()) return result;
  const auto given = parameters(*function.node);
  for (const Symbol* own : result.symbols()) {
    const auto at = std::find_if(given.begin(), given.end(),
                                 [own](const SyntaxNode& parameter) { return parameter.text == own->name; });
    const auto index = static_cast<std::size_t>(at - given.begin());
    if (own->kind != Symbol::Kind::variable || at == given.end() || index >= launch.arguments.size())
      return Polynomial::undefined();
    result = result.substitute(own, read(launch.arguments[index]));
  }
  return result;
}

MTMC_INLINE Polynomial TaskSizes::symbol(const std::string& name) {
  auto& entry = symbols_[name];
  if (entry == nullptr) {
    storage_.push_back({});
    storage_.back().name = name;
    storage_.back().index = static_cast<std::uint32_t>(storage_.size());
    entry = &storage_.back();
  }
  return Polynomial(entry);
}

MTMC_INLINE GridLaunch::GridLaunch(const LaunchText& line, const FunctionAnalysis& entry,
                                   const LaunchGeometry& grid)
    : launch(&line), function(&entry), geometry(grid) {
  std::map<std::string_view, std::string_view> buffers;
  const auto given = parameters(*entry.node);
  for (std::size_t i = 0; i < given.size() && i < line.arguments.size(); ++i)
    buffers.emplace(given[i].text, line.arguments[i]);
  for (const Array& array : entry.arrays)
    buffers_known = buffers_known && (array.place != ArrayPlace::common || buffers.contains(array.name));
  for (const Access& access : entry.accesses)
    if (const auto found = buffers.find(access.array->name);
        found != buffers.end() && access.array->place == ArrayPlace::common)
      accesses[std::string(found->second)].push_back(&access);
}

MTMC_INLINE std::span<const Access* const> GridLaunch::accesses_to(const std::string& buffer) const {
  const auto found = accesses.find(buffer);
  return found == accesses.end() ? std::span<const Access* const>{} : std::span(found->second);
}

MTMC_INLINE bool GridLaunch::touches(const std::string& buffer, bool write) const {
  const auto all = accesses_to(buffer);
  return std::any_of(all.begin(), all.end(), [write](const Access* one) { return one->write == write; });
}

MTMC_INLINE GridFusion::GridFusion(const KernelAnalysis& analysis, const GridLaunch& first,
                                   const GridLaunch& second, const Task* task)
    : analysis_(analysis), first_(first), second_(second), task_(task), sizes_(task) {}

MTMC_INLINE FusionScope GridFusion::run() {
  if (!understood(first_) || !understood(second_)) return FusionScope::none;
  if (!analysis_.budget().spend(cost(first_) + cost(second_))) return FusionScope::none;
  FusionScope scope = FusionScope::none;
  for (const auto& [buffer, accesses] : first_.accesses) {
    const bool made = first_.touches(buffer, true);
    const bool needed = second_.touches(buffer, false);
    const bool changed = second_.touches(buffer, true);
    if (!made && !changed) continue;                   // both only read it
    if (second_.accesses_to(buffer).empty()) continue; // a result that it has nothing to do with
    if (!made || !needed) return FusionScope::none;
    const bool by_element = pointwise(buffer) || stored_once(buffer);
    const FusionScope own = by_element        ? FusionScope::thread
                            : by_rows(buffer) ? FusionScope::block
                                              : FusionScope::none;
    if (own == FusionScope::none) return own;
    scope = std::max(scope, own);
  }
  return scope;
}

MTMC_INLINE bool GridFusion::understood(const GridLaunch& launch) {
  const FunctionAnalysis& function = *launch.function;
  return function.opaque.empty() && launch.buffers_known &&
         std::none_of(function.arrays.begin(), function.arrays.end(),
                      [](const Array& array) { return array.unknown; });
}

MTMC_INLINE std::int64_t GridFusion::cost(const GridLaunch& launch) noexcept {
  const FunctionAnalysis& function = *launch.function;
  return static_cast<std::int64_t>(function.accesses.size() * (20 + 10 * function.guard_bounds.size()));
}

MTMC_INLINE bool GridFusion::is_launched(const Polynomial& extent, std::size_t axis,
                                         const GridLaunch& at) const {
  if (task_ == nullptr || task_->main_size() == nullptr) return true;
  const auto needed = extent.evaluate_at(task_->main_size()->symbols);
  return !needed || at.geometry.grid[axis] * at.geometry.block[axis] >= *needed;
}

MTMC_INLINE std::optional<GridIndex> GridFusion::index_of(const Symbol& symbol, const Access& access,
                                                          const GridLaunch& at) {
  GridIndex result;
  result.symbol = &symbol;
  if (symbol.kind == Symbol::Kind::loop_variable) {
    const LoopInfo& loop = *symbol.loop;
    const auto start = loop.start.constant();
    if (loop.step != 1 || !start || *start < 0 || loop.limits.size() != 1) return std::nullopt;
    result.extent = sizes_.translate(loop.limits.front(), *at.function, *at.launch);
    return result.extent.defined() ? std::optional(result) : std::nullopt;
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!is_global_index(Polynomial(&symbol), axis, at.geometry)) continue;
    result.thread = true;
    for (const GuardBound& bound : at.function->guard_bounds)
      if (is_global_index(bound.below, axis, at.geometry) && access.order >= bound.first &&
          access.order < bound.last)
        result.extent = sizes_.translate(bound.limit, *at.function, *at.launch);
    // Without a guard the launch alone bounds it, exactly where a block has but one thread.
    if (result.extent.is_zero() && at.geometry.block[axis] == 1 && at.geometry.constant[axis])
      result.extent = axis < at.launch->grid.size() ? sizes_.read(at.launch->grid[axis]) : Polynomial(1);
    if (result.extent.defined() && !result.extent.is_zero() && is_launched(result.extent, axis, at))
      return result;
    return std::nullopt;
  }
  return std::nullopt;
}

MTMC_INLINE Polynomial GridFusion::opened(const Access& access, const GridLaunch& at) {
  Polynomial result = access.subscripts.front();
  while (result.defined()) {
    // As in `expanded`: from the last name on, each is replaced once.
    const Symbol* last = nullptr;
    for (const Symbol* symbol : result.symbols()) {
      const bool is_name = symbol->kind == Symbol::Kind::derived && symbol->operation == "=";
      if (is_name && !index_of(*symbol, access, at) && (last == nullptr || symbol->index > last->index))
        last = symbol;
    }
    if (last == nullptr) break;
    result = result.substitute(last, last->operands[0]);
  }
  return result;
}

MTMC_INLINE std::optional<IndexedAccess> GridFusion::taken_apart(const Access& access, const GridLaunch& at) {
  if (access.subscripts.size() != 1 || !access.subscripts.front().defined()) return std::nullopt;
  const Polynomial subscript = opened(access, at);
  if (!subscript.defined()) return std::nullopt;
  Polynomial rest = subscript;
  IndexedAccess result;
  for (const Symbol* symbol : subscript.symbols()) {
    auto index = index_of(*symbol, access, at);
    if (!index) continue; // a parameter: part of some factor
    if (rest.degree_in(symbol) > 1) return std::nullopt;
    Polynomial factor = sizes_.translate(rest.coefficient_of(symbol), *at.function, *at.launch);
    if (!factor.defined()) return std::nullopt;
    rest = rest.without(symbol);
    result.parts.push_back({std::move(*index), std::move(factor)});
  }
  result.constant = sizes_.translate(rest, *at.function, *at.launch);
  if (!result.constant.defined()) return std::nullopt;
  return result;
}

MTMC_INLINE bool GridFusion::row_major(std::vector<IndexedAccess::Part> parts, Polynomial unit,
                                       Polynomial& total) {
  while (!parts.empty()) {
    const auto next = std::find_if(parts.begin(), parts.end(),
                                   [&unit](const IndexedAccess::Part& part) { return part.factor == unit; });
    if (next == parts.end()) return false;
    unit = unit * next->index.extent;
    parts.erase(next);
  }
  total = std::move(unit);
  return true;
}

MTMC_INLINE bool GridFusion::once_each(const GridLaunch& at, const std::string& buffer, bool needs) {
  const auto all = at.accesses_to(buffer);
  const Access& one = *all.front();
  for (const Access* other : all) {
    if (other->loop != one.loop || other->subscripts.size() != 1 || one.subscripts.size() != 1 ||
        !(other->subscripts.front() == one.subscripts.front()))
      return false;
  }
  // What needs an element must do so in a thread of its own, or in a loop whose iterations are independent.
  for (const LoopInfo* loop = one.loop; needs && loop != nullptr; loop = loop->parent)
    if (!loop_is_parallel(*loop).legal) return false;
  const auto parts = taken_apart(one, at);
  Polynomial total;
  if (!parts || !parts->constant.is_zero() || !row_major(parts->parts, Polynomial(1), total)) return false;
  for (const LoopInfo* loop = one.loop; loop != nullptr; loop = loop->parent) {
    const bool counts = std::any_of(parts->parts.begin(), parts->parts.end(), [loop](const auto& part) {
      return part.index.symbol == loop->symbol && loop->start.is_zero();
    });
    if (!counts) return false;
  }
  return total == sizes_.elements(buffer, analysis_.lines().scratch);
}

MTMC_INLINE bool GridFusion::pointwise(const std::string& buffer) {
  return second_.function->barriers.empty() && reads_own_results(second_) && writes_once(first_, buffer) &&
         once_each(first_, buffer, false) && once_each(second_, buffer, true);
}

MTMC_INLINE bool GridFusion::reads_own_results(const GridLaunch& launch) {
  return std::none_of(launch.accesses.begin(), launch.accesses.end(), [&](const auto& entry) {
    const auto& [buffer, accesses] = entry;
    return launch.touches(buffer, true) && launch.touches(buffer, false) && !are_to_one_element(accesses);
  });
}

MTMC_INLINE bool GridFusion::stored_once(const std::string& buffer) const {
  if (task_ == nullptr || !second_.function->barriers.empty() || !reads_own_results(second_)) return false;
  return match_elements({first_.function, first_.launch, first_.accesses_to(buffer)},
                        {second_.function, second_.launch, second_.accesses_to(buffer)},
                        *task_) != ElementMatch::none;
}

MTMC_INLINE bool GridFusion::writes_once(const GridLaunch& at, const std::string& buffer) {
  const auto all = at.accesses_to(buffer);
  return std::count_if(all.begin(), all.end(), [](const Access* one) { return one->write; }) == 1;
}

MTMC_INLINE Polynomial GridFusion::row_length(const std::string& buffer) {
  for (const Access* access : second_.accesses_to(buffer))
    if (const auto parts = taken_apart(*access, second_))
      for (const IndexedAccess::Part& part : parts->parts)
        if (part.factor == Polynomial(1)) return part.index.extent;
  return Polynomial::undefined();
}

MTMC_INLINE bool GridFusion::stays_in_row(const GridLaunch& at, const std::string& buffer,
                                          const Polynomial& length) {
  const Polynomial elements = sizes_.elements(buffer, analysis_.lines().scratch);
  const std::vector<IndexedAccess::Part>* rows = nullptr;
  std::vector<IndexedAccess> kept;
  const auto all = at.accesses_to(buffer);
  kept.reserve(all.size());
  for (const Access* access : all) {
    auto parts = taken_apart(*access, at);
    if (!parts || !parts->constant.is_zero()) return false;
    int columns = 0;
    std::erase_if(parts->parts, [&](const IndexedAccess::Part& part) {
      const bool column = part.factor == Polynomial(1) && part.index.extent == length;
      columns += column ? 1 : 0;
      return column;
    });
    if (columns > 1 || std::any_of(parts->parts.begin(), parts->parts.end(),
                                   [](const IndexedAccess::Part& part) { return !part.index.thread; }))
      return false;
    kept.push_back(std::move(*parts));
    Polynomial total;
    if (!row_major(kept.back().parts, length, total) || !(total == elements)) return false;
    if (rows == nullptr) rows = &kept.back().parts;
    const bool same = std::all_of(kept.back().parts.begin(), kept.back().parts.end(), [&](const auto& part) {
      return std::any_of(rows->begin(), rows->end(), [&part](const auto& other) {
        return other.index.symbol == part.index.symbol && other.factor == part.factor;
      });
    });
    if (!same) return false;
  }
  return true;
}

MTMC_INLINE bool GridFusion::by_rows(const std::string& buffer) {
  const Polynomial length = row_length(buffer);
  return length.defined() && stays_in_row(first_, buffer, length) && stays_in_row(second_, buffer, length);
}

MTMC_INLINE LaunchGeometry for_all_sizes(const LaunchText& launch, LaunchGeometry geometry) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const bool constant = axis >= launch.grid.size() || integer_literal(launch.grid[axis]);
    if (!constant) geometry.grid[axis] = std::max<std::int64_t>(2, geometry.grid[axis]);
    if (!geometry.constant[axis]) geometry.block[axis] = std::max<std::int64_t>(2, geometry.block[axis]);
  }
  return geometry;
}

MTMC_INLINE bool share_results(const GridLaunch& first, const GridLaunch& second) {
  return std::any_of(first.accesses.begin(), first.accesses.end(), [&](const auto& entry) {
    const auto& [buffer, accesses] = entry;
    return (first.touches(buffer, true) && !second.accesses_to(buffer).empty()) ||
           second.touches(buffer, true);
  });
}

} // namespace mtmc::detail
