#pragma once

#include <mtmc/analysis/threads/thread_grid.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// The addresses that the 32 threads of a warp touch in one access: computed thread by thread at the main
/// size, so that `/` and `%` in a subscript count as they are.

namespace mtmc::inline MTMC_ABI::detail {

/// Computes `LaneFacts` of the accesses of one function.
class WarpAccess {
public:
  WarpAccess(const FunctionAnalysis& function, const ThreadGrid& grid, const Symbols& values)
      : geometry_(grid.geometry()), values_(values) {
    for (const Symbol& symbol : function.symbols) {
      Known known;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        if (symbol.name == thread_index_names[axis]) known.thread_axis = static_cast<int>(axis);
        if (symbol.name == block_index_names[axis]) known.block_axis = static_cast<int>(axis);
      }
      if (symbol.kind == Symbol::Kind::variable)
        if (const auto found = values.find(symbol.name); found != values.end()) known.value = found->second;
      known_.push_back(known);
    }
    for (std::size_t axis = 3; axis-- > 0;)
      if (geometry_.block[axis] > 1) lane_axis_ = axis;
  }

  /// `strides`: elements by which the access moves per iteration of the loops around it.
  [[nodiscard]] LaneFacts facts(const Access& access,
                                std::span<const std::optional<std::int64_t>> strides) const {
    LaneFacts result;
    result.shared_memory = access.array->place == ArrayPlace::block;
    result.stride = stride_text(access);
    sharing(access, result);
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (geometry_.grid[axis] * geometry_.block[axis] > 1) result.axes.push_back(distance(access, axis));
    const auto lanes = lane_addresses(access, {});
    if (lanes.empty()) return result;
    classify(lanes, result);
    if (result.shared_memory) {
      result.bank_ways = bank_ways(lanes, access.array->element_size);
    } else {
      count_sectors(access, lanes, result);
      result.window = !access.write && is_window(access, strides);
    }
    return result;
  }

private:
  static constexpr std::int64_t warp_size = 32;
  static constexpr std::int64_t sector_bytes = 32;
  static constexpr std::int64_t banks = 32;
  static constexpr std::int64_t bank_bytes = 4;

  /// What is known of a symbol, by `Symbol::index` - 1.
  struct Known {
    int thread_axis = -1;
    int block_axis = -1;
    std::optional<std::int64_t> value{};
  };
  using Index = std::array<std::int64_t, 3>;
  /// One thread in the first iteration of all loops.
  struct Point {
    Index thread{};
    Index block{};
  };
  struct ValueOf {
    const WarpAccess& self;
    const Point& point;

    std::optional<std::int64_t> operator()(const Symbol& symbol) const {
      const Known& known = self.known_[symbol.index - 1];
      if (known.thread_axis >= 0) return point.thread[static_cast<std::size_t>(known.thread_axis)];
      if (known.block_axis >= 0) return point.block[static_cast<std::size_t>(known.block_axis)];
      switch (symbol.kind) {
      case Symbol::Kind::derived:
        return evaluate_derived(symbol, *this);
      case Symbol::Kind::loop_variable:
        return symbol.loop->start.evaluate(*this);
      case Symbol::Kind::unknown:
        return symbol.operation == "iteration" ? std::optional<std::int64_t>(0) : std::nullopt;
      case Symbol::Kind::variable:
        break;
      }
      return known.value;
    }
  };

  /// Elements from the start of the array.
  [[nodiscard]] std::optional<std::int64_t> address(const Access& access, const Point& point) const {
    std::int64_t total = 0;
    std::int64_t weight = 1; // elements from one index of the dimension to the next
    if (access.subscripts.empty()) return std::nullopt;
    for (std::size_t d = access.subscripts.size(); d-- > 0;) {
      const auto part = access.subscripts[d].evaluate(ValueOf{*this, point});
      std::int64_t product = 0;
      if (!part || __builtin_mul_overflow(*part, weight, &product) ||
          __builtin_add_overflow(total, product, &total))
        return std::nullopt;
      if (d == 0) break;
      const auto extent = value_at(access.array->extents[d], values_);
      if (!extent || __builtin_mul_overflow(weight, *extent, &weight)) return std::nullopt;
    }
    return total;
  }

  /// The thread of the first warp with that number; x counts fastest.
  [[nodiscard]] Point thread_of(std::int64_t lane, const Index& block) const {
    const auto& extent = geometry_.block;
    return {{lane % extent[0], lane / extent[0] % extent[1], lane / (extent[0] * extent[1])}, block};
  }

  /// From the first thread to the next one along an axis, which may be in another block.
  [[nodiscard]] std::optional<std::int64_t> distance(const Access& access, std::size_t axis) const {
    Point next;
    (geometry_.block[axis] > 1 ? next.thread : next.block)[axis] = 1;
    const auto here = address(access, {});
    const auto there = address(access, next);
    return here && there ? std::optional(*there - *here) : std::nullopt;
  }

  /// By how much an index of a thread moves a polynomial, per axis; nothing where that is not the same
  /// everywhere (`/`, `%`, a product of indices).
  [[nodiscard]] std::optional<Index> slopes(const Polynomial& polynomial) const {
    Index total{};
    for (const auto& term : polynomial.terms()) {
      std::int64_t factor = term.coefficient;
      std::optional<Index> moving;
      for (std::size_t i = 0; i < term.degree; ++i) {
        const auto own = slopes(*term.factors[i]);
        if (!own) return std::nullopt;
        if (*own != Index{}) {
          if (moving) return std::nullopt;
          moving = own;
          continue;
        }
        const auto value = ValueOf{*this, Point{}}(*term.factors[i]);
        if (!value || __builtin_mul_overflow(factor, *value, &factor)) return std::nullopt;
      }
      for (std::size_t axis = 0; moving && axis < 3; ++axis) {
        std::int64_t part = 0;
        if (__builtin_mul_overflow((*moving)[axis], factor, &part) ||
            __builtin_add_overflow(total[axis], part, &total[axis]))
          return std::nullopt;
      }
    }
    return total;
  }
  [[nodiscard]] std::optional<Index> slopes(const Symbol& symbol) const {
    Index result{};
    if (const int axis = known_[symbol.index - 1].thread_axis; axis >= 0)
      result[static_cast<std::size_t>(axis)] = 1;
    else if (symbol.kind == Symbol::Kind::loop_variable)
      return slopes(symbol.loop->start);
    else if (symbol.operation == "=")
      return slopes(symbol.operands.front());
    else
      for (const Polynomial& operand : symbol.operands)
        if (const auto own = slopes(operand); !own || *own != Index{}) return std::nullopt;
    return result;
  }

  /// The lanes of the first warp of a block from the first one's address, where the index moves them evenly;
  /// otherwise empty.
  [[nodiscard]] std::vector<std::int64_t> even_lanes(const Access& access, const Index& block,
                                                     std::int64_t lanes) const {
    if (access.subscripts.size() != 1) return {};
    const auto slope = slopes(access.subscripts.front());
    const auto first = address(access, {{}, block});
    if (!slope || !first) return {};
    std::vector<std::int64_t> result;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const Point at = thread_of(lane, block);
      std::int64_t total = *first;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        std::int64_t part = 0;
        if (__builtin_mul_overflow((*slope)[axis], at.thread[axis], &part) ||
            __builtin_add_overflow(total, part, &total))
          return {};
      }
      result.push_back(total);
    }
    return result;
  }

  /// Of the first warp of a block; empty if one of them is not known.
  [[nodiscard]] std::vector<std::int64_t> lane_addresses(const Access& access, const Index& block) const {
    const std::int64_t lanes = std::min(warp_size, geometry_.threads_per_block());
    std::vector<std::int64_t> result = even_lanes(access, block, lanes);
    if (!result.empty()) return result;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const auto at = address(access, thread_of(lane, block));
      if (!at) return {};
      result.push_back(*at);
    }
    return result;
  }

  void classify(const std::vector<std::int64_t>& lanes, LaneFacts& result) const {
    std::optional<std::int64_t> step;
    const std::int64_t row = geometry_.block[lane_axis_];
    for (std::size_t lane = 0; lane + 1 < lanes.size(); ++lane) {
      if (static_cast<std::int64_t>(lane + 1) % row == 0) continue; // the next one is in another row
      const std::int64_t distance = lanes[lane + 1] - lanes[lane];
      if (step && *step != distance) return; // irregular
      step = distance;
    }
    result.elements = step.value_or(0);
    result.pattern = *result.elements == 0                             ? LanePattern::broadcast
                     : *result.elements == 1 || *result.elements == -1 ? LanePattern::coalesced
                                                                       : LanePattern::strided;
  }

  void count_sectors(const Access& access, const std::vector<std::int64_t>& lanes, LaneFacts& result) const {
    const std::int64_t size = access.array->element_size;
    result.sectors = sectors_of(lanes, size);
    Index inner{};
    for (std::size_t axis = 0; axis < 3; ++axis) inner[axis] = geometry_.grid[axis] > 2 ? 1 : 0;
    if (const auto others = lane_addresses(access, inner); !others.empty())
      result.sectors = std::max(result.sectors, sectors_of(others, size));
    std::vector<std::int64_t> distinct = lanes;
    std::sort(distinct.begin(), distinct.end());
    const auto count = std::unique(distinct.begin(), distinct.end()) - distinct.begin();
    result.least_sectors = static_cast<int>((count * size + sector_bytes - 1) / sector_bytes);
  }

  [[nodiscard]] static int sectors_of(const std::vector<std::int64_t>& lanes, std::int64_t size) {
    std::vector<std::int64_t> sectors;
    for (const std::int64_t lane : lanes)
      for (std::int64_t at = lane * size / sector_bytes; at <= (lane * size + size - 1) / sector_bytes; ++at)
        sectors.push_back(at);
    std::sort(sectors.begin(), sectors.end());
    return static_cast<int>(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
  }

  /// Largest number of different words of one bank; elements of 8 and 16 bytes go in two and four requests.
  [[nodiscard]] static int bank_ways(const std::vector<std::int64_t>& lanes, std::int64_t size) {
    const std::int64_t words = std::max<std::int64_t>(1, size / bank_bytes);
    const auto together = static_cast<std::size_t>(std::max<std::int64_t>(1, warp_size / words));
    int worst = 1;
    for (std::size_t first = 0; first < lanes.size(); first += together) {
      std::vector<std::int64_t> touched;
      for (std::size_t lane = first; lane < std::min(lanes.size(), first + together); ++lane)
        for (std::int64_t word = 0; word < words; ++word)
          touched.push_back(lanes[lane] * size / bank_bytes + word);
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      std::array<int, banks> ways{};
      for (const std::int64_t word : touched)
        worst = std::max(worst, ++ways[static_cast<std::size_t>(((word % banks) + banks) % banks)]);
    }
    return worst;
  }

  /// "K", "1", "0"; "?" where the index is taken apart by `/` or `%`, or the subscript is not understood.
  [[nodiscard]] std::string stride_text(const Access& access) const {
    Polynomial total;
    Polynomial weight{1};
    for (std::size_t d = access.subscripts.size(); d-- > 0;) {
      const Polynomial whole = expanded(access.subscripts[d]);
      if (!whole.defined()) return "?";
      Polynomial slope;
      for (const Symbol* symbol : whole.symbols()) {
        if (symbol->name == thread_index_names[lane_axis_]) {
          if (whole.degree_in(symbol) > 1) return "?";
          slope += whole.coefficient_of(symbol);
        } else if (symbol->kind == Symbol::Kind::loop_variable) {
          const Polynomial first = expanded(symbol->loop->start);
          if (!first.defined() || whole.degree_in(symbol) > 1) return "?";
          for (const Symbol* own : first.symbols())
            if (own->name == thread_index_names[lane_axis_])
              slope += whole.coefficient_of(symbol) * first.coefficient_of(own);
            else if (hides_index(*own))
              return "?";
        } else if (hides_index(*symbol)) {
          return "?";
        }
      }
      total += slope * weight;
      if (d > 0) weight = weight * access.array->extents[d];
    }
    return total.text();
  }

  /// Neighbouring threads may see different values of the symbol, and it is not known by how much they
  /// differ.
  [[nodiscard]] bool hides_index(const Symbol& symbol) const {
    if (symbol.kind == Symbol::Kind::unknown) return symbol.operation != "iteration";
    return symbol.kind == Symbol::Kind::derived && along(Polynomial(&symbol), lane_axis_);
  }

  [[nodiscard]] static bool along(const Polynomial& polynomial, std::size_t axis) {
    return depends_on(polynomial,
                      [axis](const Symbol& symbol) { return symbol.name == thread_index_names[axis]; });
  }

  void sharing(const Access& access, LaneFacts& result) const {
    for (const Polynomial& subscript : access.subscripts)
      if (!subscript.defined() || depends_on(subscript, [](const Symbol& symbol) {
            return symbol.kind == Symbol::Kind::unknown && symbol.operation != "iteration";
          }))
        return;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (geometry_.block[axis] == 1) continue;
      const bool moves = std::any_of(access.subscripts.begin(), access.subscripts.end(),
                                     [axis](const Polynomial& subscript) { return along(subscript, axis); });
      if (moves) continue;
      result.same_along += axis_names[axis];
      result.sharers *= geometry_.block[axis];
    }
  }

  /// A neighbour along some axis of the block touches in this iteration what this thread does in the next
  /// one.
  [[nodiscard]] bool is_window(const Access& access,
                               std::span<const std::optional<std::int64_t>> strides) const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (geometry_.block[axis] == 1) continue;
      const auto step = distance(access, axis);
      if (!step || *step == 0) continue;
      if (std::find(strides.begin(), strides.end(), step) != strides.end()) return true;
    }
    return false;
  }

  const LaunchGeometry& geometry_;
  const Symbols& values_;
  std::vector<Known> known_;
  /// The axis along which neighbouring lanes lie.
  std::size_t lane_axis_ = 0;
};

} // namespace mtmc::detail
