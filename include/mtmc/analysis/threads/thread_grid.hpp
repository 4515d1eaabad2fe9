#pragma once

#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/flow/loop_nest.hpp>
#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/flow/updates.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The threads of a launch as parallel loops: their number from the launch line, their bounds from the guards
/// in the text.

namespace mtmc::inline MTMC_ABI::detail {

/// A launch line's grid and block at one size.
struct LaunchGeometry {
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{1, 1, 1};
  /// The extent of the block is written as a number.
  std::array<bool, 3> constant{true, true, true};
  std::int64_t dynamic_shared_bytes = 0;

  [[nodiscard]] std::int64_t threads_per_block() const noexcept { return block[0] * block[1] * block[2]; }
};

/// The geometry of a launch; `evaluate(text)` gives the value of an expression at the size, if it has one.
/// Nothing for a launch without a grid, or one whose extents cannot be evaluated or are no extents.
template <class Evaluate>
[[nodiscard]] std::optional<LaunchGeometry> geometry_of(const LaunchText& launch, const Evaluate& evaluate) {
  constexpr std::int64_t max_threads = 1024;
  constexpr std::int64_t max_blocks = (std::int64_t{1} << 31) - 1;
  if (launch.grid.empty() || launch.block.empty()) return std::nullopt;
  LaunchGeometry result;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (axis < launch.grid.size()) {
      const std::optional<std::int64_t> blocks = evaluate(launch.grid[axis]);
      if (!blocks || *blocks < 1 || *blocks > max_blocks) return std::nullopt;
      result.grid[axis] = *blocks;
    }
    if (axis < launch.block.size()) {
      const std::optional<std::int64_t> threads = evaluate(launch.block[axis]);
      if (!threads || *threads < 1 || *threads > max_threads) return std::nullopt;
      result.block[axis] = *threads;
      result.constant[axis] = integer_literal(launch.block[axis]).has_value();
    }
  }
  if (result.threads_per_block() > max_threads) return std::nullopt;
  if (!launch.shared_bytes.empty())
    result.dynamic_shared_bytes = std::optional<std::int64_t>(evaluate(launch.shared_bytes)).value_or(0);
  return result;
}

/// Gives the names of the launch their values: extents as they are, indices those of the first thread of the
/// middle block, which stands for all where loops end with the number of the thread.
inline void add_launch_values(const LaunchGeometry& geometry, Symbols& values) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    values[std::string(block_extent_names[axis])] = geometry.block[axis];
    values[std::string(grid_extent_names[axis])] = geometry.grid[axis];
    values[std::string(thread_index_names[axis])] = 0;
    values[std::string(block_index_names[axis])] = (geometry.grid[axis] - 1) / 2;
  }
}

/// Whether the value of the polynomial follows from a symbol for which `is(symbol)` holds: directly, through
/// derived symbols, or through the first value of a loop's variable.
template <class Is> [[nodiscard]] bool depends_on(const Polynomial& polynomial, const Is& is) {
  for (const auto& term : polynomial.terms())
    for (std::size_t i = 0; i < term.degree; ++i) {
      const Symbol& symbol = *term.factors[i];
      if (is(symbol)) return true;
      for (const Polynomial& operand : symbol.operands)
        if (depends_on(operand, is)) return true;
      if (symbol.kind == Symbol::Kind::loop_variable && depends_on(symbol.loop->start, is)) return true;
    }
  return false;
}

/// The index of all threads along an axis, numbered through the blocks: `blockIdx.x * blockDim.x +
/// threadIdx.x`, or the only index where there is but one block, or one thread of a block.
[[nodiscard]] inline bool is_global_index(const Polynomial& polynomial, std::size_t axis,
                                          const LaunchGeometry& geometry) {
  const Polynomial whole = expanded(polynomial);
  if (!whole.defined()) return false;
  bool thread = geometry.block[axis] == 1;
  bool block = geometry.grid[axis] == 1;
  for (const auto& term : whole.terms()) {
    if (term.degree == 1 && term.coefficient == 1 && term.factors[0]->name == thread_index_names[axis]) {
      thread = true;
      continue;
    }
    bool names_block = false;
    std::int64_t extent = term.coefficient;
    for (std::size_t i = 0; i < term.degree; ++i) {
      const std::string& name = term.factors[i]->name;
      if (name == block_index_names[axis] && !names_block)
        names_block = true;
      else if (name == block_extent_names[axis])
        extent *= geometry.block[axis];
      else
        return false;
    }
    if (!names_block || extent != geometry.block[axis]) return false;
    block = true;
  }
  return thread && block && !whole.terms().empty();
}

/// A function's threads at one size.
class ThreadGrid {
public:
  ThreadGrid(const FunctionAnalysis& function, const LaunchGeometry& geometry, const Symbols& values)
      : geometry_(geometry) {
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (geometry.grid[axis] * geometry.block[axis] > 1) add_axis(function, axis, values);
    if (axes_.empty()) add_axis(function, 0, values); // one thread does everything
    shared_bytes_ = geometry.dynamic_shared_bytes;
    for (const Array& array : function.arrays) {
      if (array.place != ArrayPlace::block) continue;
      std::int64_t bytes = array.element_size;
      for (const Polynomial& extent : array.extents) bytes *= value_at(extent, values).value_or(0);
      shared_bytes_ += bytes; // of `extern __shared__ float tile[]` nothing: the launch line gives its size
    }
  }

  [[nodiscard]] const LaunchGeometry& geometry() const noexcept { return geometry_; }
  /// Those with several threads or blocks, x first; of a single thread that of x.
  [[nodiscard]] const std::vector<ThreadAxis>& axes() const noexcept { return axes_; }
  [[nodiscard]] std::int64_t shared_bytes() const noexcept { return shared_bytes_; }
  /// Threads that do work.
  [[nodiscard]] double working_threads() const noexcept {
    double product = 1;
    for (const ThreadAxis& axis : axes_) product *= static_cast<double>(axis.trip_count);
    return product;
  }
  /// The number of different index values by which the threads move the access.
  [[nodiscard]] double moving_threads(const Access& access) const {
    double product = 1;
    for (const ThreadAxis& axis : axes_) {
      const std::size_t at = static_cast<std::size_t>(axis.axis.front() - 'x');
      const auto moves = [&access](std::string_view name) {
        return std::any_of(access.subscripts.begin(), access.subscripts.end(), [name](const auto& subscript) {
          return !subscript.defined() ||
                 depends_on(subscript, [name](const Symbol& symbol) { return symbol.name == name; });
        });
      };
      const bool thread = moves(thread_index_names[at]);
      const bool block = moves(block_index_names[at]);
      product *= static_cast<double>(thread && block ? axis.trip_count
                                     : thread        ? axis.threads
                                     : block         ? axis.blocks
                                                     : 1);
    }
    return product;
  }

private:
  void add_axis(const FunctionAnalysis& function, std::size_t axis, const Symbols& values) {
    ThreadAxis result;
    result.axis = axis_names[axis];
    result.blocks = geometry_.grid[axis];
    result.threads = geometry_.block[axis];
    result.constant = geometry_.constant[axis];
    result.trip_count = result.blocks * result.threads;
    const auto named = [&function](std::string_view name) {
      return std::any_of(function.symbols.begin(), function.symbols.end(),
                         [name](const Symbol& symbol) { return symbol.name == name; });
    };
    const auto index =
        std::find_if(function.symbols.begin(), function.symbols.end(), [&](const Symbol& symbol) {
          return symbol.operation == "=" && is_global_index(Polynomial(&symbol), axis, geometry_);
        });
    if (index != function.symbols.end()) result.variable = index->name;
    for (const std::string_view name : {block_index_names[axis], thread_index_names[axis]})
      if (index == function.symbols.end() && named(name))
        (result.variable += result.variable.empty() ? "" : ", ") += name;
    const LoopInfo::Span results = results_of(function);
    for (const GuardBound& bound : function.guard_bounds) {
      const bool guards_all = bound.first <= results.first && results.last <= bound.last;
      if (!guards_all || !is_global_index(bound.below, axis, geometry_)) continue;
      const auto limit = value_at(bound.limit, values);
      if (!limit) continue;
      if (result.upper.empty() || *limit < result.trip_count) result.upper = bound.limit.text();
      result.trip_count = std::clamp<std::int64_t>(*limit, 1, result.trip_count);
    }
    axes_.push_back(std::move(result));
  }

  /// Between which orders everything is written that all threads see.
  [[nodiscard]] static LoopInfo::Span results_of(const FunctionAnalysis& function) {
    LoopInfo::Span span{std::numeric_limits<std::size_t>::max(), 0};
    for (const Access& access : function.accesses) {
      if (!access.write || access.array->place != ArrayPlace::common) continue;
      span.first = std::min(span.first, access.order);
      span.last = std::max(span.last, access.order + 1);
    }
    return span;
  }

  LaunchGeometry geometry_;
  std::vector<ThreadAxis> axes_;
  std::int64_t shared_bytes_ = 0;
};

} // namespace mtmc::detail
