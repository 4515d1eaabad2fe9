#pragma once
/// Whether several loops read the same array, each by itself.

#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <cstddef>

namespace mtmc::inline MTMC_ABI::detail {

/// The loop moves the access, which stands in it.
[[nodiscard]] inline bool is_moved_by(const AccessFacts& access, std::size_t loop) noexcept {
  return loop < access.strides.size() && access.strides[loop] && *access.strides[loop] != 0;
}

/// Both read one array in memory that all threads see, one moved by a loop that does not move the other.
[[nodiscard]] inline bool read_in_turn(const AccessFacts& first, const AccessFacts& second) {
  if (first.write || second.write || first.array != second.array) return false;
  if ((first.lanes && first.lanes->shared_memory) || (second.lanes && second.lanes->shared_memory)) return false;
  bool only_first = false, only_second = false;
  for (std::size_t loop = 0; loop < first.strides.size(); ++loop) {
    const bool moved = is_moved_by(first, loop);
    if (moved == is_moved_by(second, loop)) continue;
    (moved ? only_first : only_second) = true;
  }
  return only_first && only_second;
}

/// What one loop reads of an array, another one reads again.
[[nodiscard]] inline bool reads_again(const RegionFacts& facts) {
  for (std::size_t i = 0; i < facts.accesses.size(); ++i)
    for (std::size_t k = i + 1; k < facts.accesses.size(); ++k)
      if (read_in_turn(facts.accesses[i], facts.accesses[k])) return true;
  return false;
}

} // namespace mtmc::detail
