#pragma once
/// What a region's facts say to those who choose among optimisations: the order of its loops, what it shares,
/// how much work it does.

#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mtmc::inline MTMC_ABI::detail {

/// Least operations for which waking the other cores pays: about ten times the 10 us that a parallel region
/// costs.
inline constexpr double parallel_work = 1e5;

/// Accesses that jump in memory when loop `index` of the nest advances.
[[nodiscard]] inline int strided_accesses(const RegionFacts& facts, std::size_t index) {
  int count = 0;
  for (const auto& access : facts.accesses)
    if (index < access.strides.size() &&
        (!access.strides[index] || *access.strides[index] < -1 || *access.strides[index] > 1))
      ++count;
  return count;
}

/// Whether another loop of the nest would make a better innermost loop than the present one.
[[nodiscard]] inline bool order_is_poor(const RegionFacts& facts) {
  if (facts.loops.size() < 2) return false;
  const int present = strided_accesses(facts, facts.loops.size() - 1);
  for (std::size_t i = 0; i + 1 < facts.loops.size(); ++i)
    if (strided_accesses(facts, i) < present) return true;
  return false;
}

/// Whether the innermost loop adds up while a loop around it has independent iterations that all move by at
/// most one element: those fill vectors without reassociating a sum.
[[nodiscard]] inline bool sum_is_innermost(const RegionFacts& facts) {
  if (facts.loops.size() < 2 || !facts.loops.back().reduction) return false;
  for (std::size_t i = 0; i + 1 < facts.loops.size(); ++i) {
    const LoopFacts& loop = facts.loops[i];
    constexpr std::int64_t few = 16;
    if (loop.parallel && loop.trip_count.value_or(few) >= few && strided_accesses(facts, i) == 0) return true;
  }
  return false;
}

/// Whether the innermost loop is known to end before a vector is full.
[[nodiscard]] inline bool innermost_is_short(const RegionFacts& facts) {
  constexpr std::int64_t vector = 8;
  return !facts.loops.empty() && facts.loops.back().trip_count.value_or(vector) < vector;
}

/// Whether the region is the outermost loop of its function: "gemm/i", not "gemm/i/j".
[[nodiscard]] inline bool is_outermost(const Region& region) {
  return std::count(region.path.begin(), region.path.end(), '/') == 1;
}

/// Whether iterations of the region's loop read the same elements in the loops inside: unrolled and jammed,
/// they share them.
[[nodiscard]] inline bool shares_loads(const RegionFacts& facts) {
  if (facts.loops.empty() || facts.loops.front().innermost) return false;
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [](const AccessFacts& access) {
    return !access.write && !access.strides.empty() && access.strides.front() == 0;
  });
}

[[nodiscard]] inline bool is_small(const Region& region) {
  return region.facts.flops + region.facts.bytes / 4 < parallel_work;
}

/// Part of the kernel's operations or bytes that the region accounts for, in [0, 1]; 1 where neither is
/// known.
[[nodiscard]] inline double share_of_work(const Region& region, const Structure& structure) {
  if (region.kind == RegionKind::launch || region.kind == RegionKind::launch_sequence) return 1;
  double share = -1;
  if (structure.flops > 0) share = std::max(share, region.facts.flops / structure.flops);
  if (structure.bytes > 0) share = std::max(share, region.facts.bytes / structure.bytes);
  return share < 0 ? 1 : std::min(share, 1.0);
}

} // namespace mtmc::detail
