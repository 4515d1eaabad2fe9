#pragma once
/// Where loops could be rewritten around what they read, keep and recompute: predicates of the optimisation
/// types that are the same on every device.

#include <mtmc/actions/grid_applicability.hpp>
#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// The innermost loop of the region's nest moves the access by this many elements.
[[nodiscard]] inline bool innermost_moves_by(const AccessFacts& access, std::int64_t elements) {
  return !access.strides.empty() && access.strides.back() && *access.strides.back() == elements;
}

/// Some loop of the nest leaves the access where it is, while another one moves it.
[[nodiscard]] inline bool is_used_again(const AccessFacts& access) {
  bool fixed = false, moving = false;
  for (const auto& stride : access.strides)
    if (stride) (*stride == 0 ? fixed : moving) = true;
  return fixed && moving;
}

/// Some operand is read again and again, and each time with jumps: a copy of it in the order of its use pays.
[[nodiscard]] inline bool packing_applies(const Region& region) {
  const auto& facts = region.facts;
  return region.kind == RegionKind::loop && !facts.opaque && facts.loops.size() >= 2 &&
         std::any_of(facts.accesses.begin(), facts.accesses.end(), [](const AccessFacts& access) {
           return !access.write && is_used_again(access) && access.strides.back() &&
                  std::abs(*access.strides.back()) > 1;
         });
}

/// A function is called in an inner loop that leaves one of its reads where it is.
[[nodiscard]] inline bool hoisting_applies(const Region& region) {
  const auto& facts = region.facts;
  return region.kind == RegionKind::loop && !facts.opaque && facts.loops.size() == 2 &&
         facts.transcendental &&
         std::any_of(facts.accesses.begin(), facts.accesses.end(), [](const AccessFacts& access) {
           return !access.write && is_used_again(access) && innermost_moves_by(access, 0);
         });
}

/// An element is read and written again in each iteration of a loop.
[[nodiscard]] inline bool scalar_replacement_applies(const Region& region) {
  const auto& facts = region.facts;
  if (region.kind != RegionKind::loop || facts.opaque || facts.loops.size() != 1) return false;
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [&](const AccessFacts& written) {
    return written.write && innermost_moves_by(written, 0) &&
           std::any_of(facts.accesses.begin(), facts.accesses.end(), [&](const AccessFacts& read) {
             return !read.write && read.array == written.array && read.subscript == written.subscript;
           });
  });
}

/// One of several results of a loop needs the iteration before, and keeps the others from being computed in
/// vectors.
[[nodiscard]] inline bool fission_applies(const Region& region) {
  const auto& facts = region.facts;
  if (region.kind != RegionKind::loop || facts.opaque || facts.loops.size() != 1 || facts.vectorizable)
    return false;
  const auto is_carried = [&](std::string_view variable) {
    return std::any_of(facts.dependences.begin(), facts.dependences.end(),
                       [variable](const DependenceFacts& dependence) {
                         return !dependence.reduction && !dependence.direction.starts_with('=') &&
                                dependence.variable == variable;
                       });
  };
  const auto carried = std::count_if(facts.writes.begin(), facts.writes.end(), is_carried);
  return carried > 0 && carried < static_cast<std::ptrdiff_t>(facts.writes.size());
}

/// One function or launch makes what the next one reads, by no loop of its own, and the two cannot be merged
/// as they are: who reads a value could compute it.
[[nodiscard]] inline bool recomputation_applies(const Region& region, const Structure& structure) {
  const auto& facts = region.facts;
  if (region.kind != RegionKind::launch_sequence || facts.fusable || facts.intermediates.size() != 1)
    return false;
  const auto& buffer = facts.intermediates.front();
  return std::any_of(structure.regions.begin(), structure.regions.end(), [&](const Region& producer) {
    // On a CPU the loop over the elements is the launch's own.
    const std::size_t own_loops = on_grid(producer.facts) ? 0 : 1;
    return producer.kind == RegionKind::launch && producer.first_line == region.first_line &&
           !producer.facts.opaque && producer.facts.loops.size() <= own_loops &&
           std::find(producer.facts.writes.begin(), producer.facts.writes.end(), buffer) !=
               producer.facts.writes.end();
  });
}

} // namespace mtmc::detail
