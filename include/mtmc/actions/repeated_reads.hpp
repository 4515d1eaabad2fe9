#pragma once
/// Whether several loops, one after the other, read the same array.

#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The loops that stand one after the other in a region: the members of a sequence, or the outermost loops of
/// what a thread executes.
[[nodiscard]] inline std::vector<const Region*> loops_in_turn(const Region& region,
                                                              const Structure& structure) {
  const std::string_view path = region.path;
  const auto parent = path.substr(0, path.rfind('/') + 1);
  std::vector<const Region*> loops;
  for (const auto& one : structure.regions)
    if (one.kind == RegionKind::loop && one.path.starts_with(parent) &&
        one.path.find('/', parent.size()) == std::string::npos && one.first_line >= region.first_line &&
        one.last_line <= region.last_line)
      loops.push_back(&one);
  return loops;
}

/// The loop reads elements of the array from memory that all threads see, another one in each turn.
[[nodiscard]] inline bool reads_along(const Region& loop, std::string_view array) {
  return std::any_of(loop.facts.accesses.begin(), loop.facts.accesses.end(), [&](const AccessFacts& access) {
    const bool on_chip = access.lanes && access.lanes->shared_memory;
    return !access.write && !on_chip && access.array == array && !access.strides.empty() &&
           access.strides.front() && *access.strides.front() != 0;
  });
}

/// Those of the loops that read an array which another one of them reads, too.
[[nodiscard]] inline std::vector<const Region*> repeated_readers(const std::vector<const Region*>& loops) {
  std::vector<const Region*> readers;
  for (const auto* loop : loops)
    if (std::any_of(loops.begin(), loops.end(), [loop](const Region* other) {
          return other != loop && std::any_of(loop->facts.reads.begin(), loop->facts.reads.end(),
                                              [&](const std::string& array) {
                                                return reads_along(*loop, array) &&
                                                       reads_along(*other, array);
                                              });
        }))
      readers.push_back(loop);
  return readers;
}

} // namespace mtmc::detail
