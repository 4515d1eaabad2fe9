#pragma once
/// How much an order of loops costs: what reordering and tiling choose by.

#include <mtmc/coder/transform/loop_edit.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Elements by which an access moves when a loop of step 1 advances, at the task's main size; nothing if that
/// is not known or not constant.
[[nodiscard]] inline std::optional<std::int64_t> stride_of(const Access& access, const LoopInfo& loop,
                                                           const Symbols& symbols) {
  if (access.subscripts.empty()) return std::nullopt;
  for (std::size_t i = 0; i + 1 < access.subscripts.size(); ++i) {
    // an outer dimension of a declared array: any move is a jump
    if (!access.subscripts[i].defined()) return std::nullopt;
    if (access.subscripts[i].degree_in(loop.symbol) > 0) return std::nullopt;
  }
  const Polynomial& last = access.subscripts.back();
  if (!last.defined() || last.degree_in(loop.symbol) > 1) return std::nullopt;
  const Polynomial coefficient = last.coefficient_of(loop.symbol);
  if (coefficient.is_zero()) return 0;
  const auto value = value_at(coefficient, symbols);
  if (!value) return std::nullopt;
  return *value * loop.step;
}

/// What one iteration of `loop` costs in memory accesses if it is the innermost one around the accesses of
/// the loops in `innermost`: a line for each that jumps, a part of a line for each that moves on by one
/// element, nothing for one that stays. Writes that jump cost `write_weight` lines.
[[nodiscard]] inline double access_cost(const LoopInfo& loop, const std::vector<const LoopInfo*>& innermost,
                                        const Symbols& symbols, double write_weight = 1) {
  double cost = 0;
  for (const Access& access : loop.function->accesses) {
    bool counts = false;
    for (const LoopInfo* candidate : innermost)
      counts = counts || (access.loop != nullptr && access.loop->inside(candidate));
    if (!counts) continue;
    const auto stride = stride_of(access, loop, symbols);
    const double line = 64.0 / access.array->element_size;
    double part = 1;
    if (stride) part = std::min(static_cast<double>(std::llabs(*stride)) / line, 1.0);
    cost += part * (access.write ? write_weight : 1);
  }
  return cost;
}

/// All loops at or below `loop` that contain no other.
inline void collect_innermost(const LoopInfo& loop, std::vector<const LoopInfo*>& result) {
  if (loop.innermost()) result.push_back(&loop);
  for (const LoopInfo* child : loop.children) collect_innermost(*child, result);
}

/// Cost of one iteration of a loop as the innermost one, with what a chain of dependent operations adds when
/// the loop carries a reduction (the compiler may not reassociate it).
[[nodiscard]] inline double
innermost_cost(const LoopInfo& loop, const std::vector<const LoopInfo*>& innermost, const Symbols& symbols) {
  constexpr double chain = 1.0; // as much as a cache line: no vector instructions, one latency an iteration
  return access_cost(loop, innermost, symbols) + (loop_is_parallel(loop).legal ? 0.0 : chain);
}

} // namespace mtmc::detail
