#pragma once

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/loop_legality.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
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

/// \file
/// Whether consecutive launches on a grid may be one kernel: which thread makes each element of a buffer that
/// one launch hands to the next, and which threads need it.
///
/// Two ways are recognised, for every size of the task:
/// - `FusionScope::thread`: both launches go through all elements of the buffer in row-major order, each
/// element
///   made at one point and needed at one point.
/// - `FusionScope::block`: the buffer is rows of one length, and in both launches the threads that make or
/// need
///   elements of a row are those with the row's number; a block that owns whole rows can do both.

namespace mtmc {

namespace detail {

/// Polynomials over the task's symbols, which several functions share.
class TaskSizes {
public:
  explicit TaskSizes(const Task* task) : task_(task) {}

  /// An expression of a shape or a launch line; undefined where it is no polynomial.
  [[nodiscard]] Polynomial read(const std::string& text) {
    const Argument* argument = task_ == nullptr ? nullptr : task_->find_argument(text);
    const std::string& shown = argument != nullptr && !argument->value.empty() ? argument->value : text;
    const auto value_of = [this](const std::string& name) { return symbol(name); };
    return SizeReader(shown, value_of).read();
  }

  /// The number of elements of a buffer of the task or of a scratch line; undefined if it is not known.
  [[nodiscard]] Polynomial elements(const std::string& buffer, std::span<const ScratchText> scratch) {
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

  /// A polynomial over the parameters of a launched function; undefined if anything else occurs in it.
  [[nodiscard]] Polynomial translate(const Polynomial& polynomial, const FunctionAnalysis& function,
                                     const LaunchText& launch) {
    Polynomial result = expanded(polynomial);
    if (!result.defined()) return result;
    const auto given = parameters(*function.node);
    for (const Symbol* own : result.symbols()) {
      const auto at = std::find_if(given.begin(), given.end(), [own](const SyntaxNode& parameter) {
        return parameter.text == own->name;
      });
      const auto index = static_cast<std::size_t>(at - given.begin());
      if (own->kind != Symbol::Kind::variable || at == given.end() || index >= launch.arguments.size())
        return Polynomial::undefined();
      result = result.substitute(own, read(launch.arguments[index]));
    }
    return result;
  }

private:
  [[nodiscard]] Polynomial symbol(const std::string& name) {
    auto& entry = symbols_[name];
    if (entry == nullptr) {
      storage_.push_back({});
      storage_.back().name = name;
      storage_.back().index = static_cast<std::uint32_t>(storage_.size());
      entry = &storage_.back();
    }
    return Polynomial(entry);
  }

  const Task* task_;
  std::deque<Symbol> storage_;
  std::map<std::string, const Symbol*, std::less<>> symbols_;
};

/// A launch on a grid as fusion looks at it.
struct GridLaunch {
  const LaunchText* launch = nullptr;
  const FunctionAnalysis* function = nullptr;
  LaunchGeometry geometry{};
  /// Accesses to memory that all threads see, by the buffer behind their array.
  std::map<std::string, std::vector<const Access*>, std::less<>> accesses{};
  /// The launch line gives a buffer for each array that all threads see.
  bool buffers_known = true;

  GridLaunch(const LaunchText& line, const FunctionAnalysis& entry, const LaunchGeometry& grid)
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

  /// The accesses to a buffer.
  [[nodiscard]] std::span<const Access* const> accesses_to(const std::string& buffer) const {
    const auto found = accesses.find(buffer);
    return found == accesses.end() ? std::span<const Access* const>{} : std::span(found->second);
  }
  [[nodiscard]] bool touches(const std::string& buffer, bool write) const {
    const auto all = accesses_to(buffer);
    return std::any_of(all.begin(), all.end(), [write](const Access* one) { return one->write == write; });
  }
};

/// An index that numbers a launch's threads or a loop's iterations from 0 upwards, without holes.
struct GridIndex {
  const Symbol* symbol = nullptr;
  bool thread = false;
  /// Number of its values, over the task's symbols.
  Polynomial extent{};
};

/// One access taken apart into indices and what they are multiplied with (over the task's symbols), smallest
/// first.
struct IndexedAccess {
  struct Part {
    GridIndex index;
    Polynomial factor;
  };
  std::vector<Part> parts;
  Polynomial constant{};
};

/// Decides for two launches on grids.
class GridFusion {
public:
  GridFusion(const KernelAnalysis& analysis, const GridLaunch& first, const GridLaunch& second,
             const Task* task)
      : analysis_(analysis), first_(first), second_(second), sizes_(task) {}

  [[nodiscard]] FusionScope run() {
    if (!understood(first_) || !understood(second_)) return FusionScope::none;
    if (!analysis_.budget().spend(cost(first_) + cost(second_))) return FusionScope::none;
    FusionScope scope = FusionScope::none;
    for (const auto& [buffer, accesses] : first_.accesses) {
      const bool made = first_.touches(buffer, true);
      const bool needed = second_.touches(buffer, false);
      const bool changed = second_.touches(buffer, true);
      if (!made && !changed) continue; // both only read it
      if (!made || !needed) return FusionScope::none;
      const FusionScope own = pointwise(buffer) ? FusionScope::thread
                              : by_rows(buffer) ? FusionScope::block
                                                : FusionScope::none;
      if (own == FusionScope::none) return own;
      scope = std::max(scope, own);
    }
    return scope;
  }

private:
  [[nodiscard]] static bool understood(const GridLaunch& launch) {
    const FunctionAnalysis& function = *launch.function;
    return function.opaque.empty() && launch.buffers_known &&
           std::none_of(function.arrays.begin(), function.arrays.end(),
                        [](const Array& array) { return array.unknown; });
  }

  /// Steps of the budget: each access is compared with each guard.
  [[nodiscard]] static std::int64_t cost(const GridLaunch& launch) noexcept {
    const FunctionAnalysis& function = *launch.function;
    return static_cast<std::int64_t>(function.accesses.size() * (20 + 10 * function.guard_bounds.size()));
  }

  // --- indices

  /// What a symbol of a subscript counts, or nothing if its values are not all numbers below a known extent.
  [[nodiscard]] std::optional<GridIndex> index_of(const Symbol& symbol, const Access& access,
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
      if (result.extent.defined() && !result.extent.is_zero()) return result;
      return std::nullopt;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<IndexedAccess> taken_apart(const Access& access, const GridLaunch& at) {
    if (access.subscripts.size() != 1 || !access.subscripts.front().defined()) return std::nullopt;
    Polynomial rest = access.subscripts.front();
    IndexedAccess result;
    for (const Symbol* symbol : access.subscripts.front().symbols()) {
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

  /// Puts the parts into the order in which each factor is the one before times its extent, starting at
  /// `unit`; false if there is no such order. `total` is what the last one leads to.
  [[nodiscard]] static bool row_major(std::vector<IndexedAccess::Part> parts, Polynomial unit,
                                      Polynomial& total) {
    while (!parts.empty()) {
      const auto next = std::find_if(parts.begin(), parts.end(), [&unit](const IndexedAccess::Part& part) {
        return part.factor == unit;
      });
      if (next == parts.end()) return false;
      unit = unit * next->index.extent;
      parts.erase(next);
    }
    total = std::move(unit);
    return true;
  }

  // --- element by element

  /// Each element is touched at one point: in all accesses, in row-major order.
  [[nodiscard]] bool once_each(const GridLaunch& at, const std::string& buffer, bool needs) {
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

  [[nodiscard]] bool pointwise(const std::string& buffer) {
    return second_.function->barriers.empty() && writes_once(first_, buffer) &&
           once_each(first_, buffer, false) && once_each(second_, buffer, true);
  }
  [[nodiscard]] static bool writes_once(const GridLaunch& at, const std::string& buffer) {
    const auto all = at.accesses_to(buffer);
    return all.size() == 1 && all.front()->write;
  }

  // --- row by row

  /// The length of the rows in which the second launch goes through the buffer.
  [[nodiscard]] Polynomial row_length(const std::string& buffer) {
    for (const Access* access : second_.accesses_to(buffer))
      if (const auto parts = taken_apart(*access, second_))
        for (const IndexedAccess::Part& part : parts->parts)
          if (part.factor == Polynomial(1)) return part.index.extent;
    return Polynomial::undefined();
  }

  /// All accesses stay in the row whose number the thread has, and the threads' numbers go through all rows.
  [[nodiscard]] bool stays_in_row(const GridLaunch& at, const std::string& buffer, const Polynomial& length) {
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
      const bool same =
          std::all_of(kept.back().parts.begin(), kept.back().parts.end(), [&](const auto& part) {
            return std::any_of(rows->begin(), rows->end(), [&part](const auto& other) {
              return other.index.symbol == part.index.symbol && other.factor == part.factor;
            });
          });
      if (!same) return false;
    }
    return true;
  }

  [[nodiscard]] bool by_rows(const std::string& buffer) {
    const Polynomial length = row_length(buffer);
    return length.defined() && stays_in_row(first_, buffer, length) && stays_in_row(second_, buffer, length);
  }

  const KernelAnalysis& analysis_;
  const GridLaunch& first_;
  const GridLaunch& second_;
  TaskSizes sizes_;
};

/// The geometry with an extent that is 1 only where the launch line says so, and not just at one size.
[[nodiscard]] inline LaunchGeometry for_all_sizes(const LaunchText& launch, LaunchGeometry geometry) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const bool constant = axis >= launch.grid.size() || integer_literal(launch.grid[axis]);
    if (!constant) geometry.grid[axis] = std::max<std::int64_t>(2, geometry.grid[axis]);
    if (!geometry.constant[axis]) geometry.block[axis] = std::max<std::int64_t>(2, geometry.block[axis]);
  }
  return geometry;
}

/// Something that one of two launches writes is touched by the other.
[[nodiscard]] inline bool share_results(const GridLaunch& first, const GridLaunch& second) {
  return std::any_of(first.accesses.begin(), first.accesses.end(), [&](const auto& entry) {
    const auto& [buffer, accesses] = entry;
    return (first.touches(buffer, true) && !second.accesses_to(buffer).empty()) ||
           second.touches(buffer, true);
  });
}

} // namespace detail

/// How consecutive launches on grids may become one kernel; `none` where that is not proved.
/// `geometry_of_launch` gives the grid of a launch (`detail::geometry_of`). Of three and more, neighbours
/// must all go together in one way, and those further apart must not share what one of them writes, unless
/// they go together too.
template <class GeometryOf>
[[nodiscard]] FusionScope grid_fusion_scope(const KernelAnalysis& analysis,
                                            std::span<const LaunchText> launches, const Task* task,
                                            const GeometryOf& geometry_of_launch) {
  std::vector<detail::GridLaunch> grids;
  for (const LaunchText& launch : launches) {
    const FunctionAnalysis* function = analysis.find_function(launch.entry);
    const std::optional<detail::LaunchGeometry> geometry = geometry_of_launch(launch);
    if (function == nullptr || !geometry) return FusionScope::none;
    grids.emplace_back(launch, *function, detail::for_all_sizes(launch, *geometry));
  }
  FusionScope scope = FusionScope::none;
  for (std::size_t a = 0; a < grids.size(); ++a)
    for (std::size_t b = a + 1; b < grids.size(); ++b) {
      const bool neighbours = b == a + 1;
      if (!neighbours && !detail::share_results(grids[a], grids[b])) continue;
      const FusionScope own = detail::GridFusion(analysis, grids[a], grids[b], task).run();
      if (own == FusionScope::none || (scope != FusionScope::none && own != scope)) return FusionScope::none;
      scope = own;
    }
  return scope;
}

} // namespace mtmc
