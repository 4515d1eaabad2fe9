#pragma once
/// An assembly text with stores that show which ways its branches go.

#include <mtmc/core/branch.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The table that the stores go to.
inline constexpr std::string_view branch_table = "mtmc_branches";

/// An assembly text with probes, and what they stand for: of branch `i` the bytes `2 i` and `2 i + 1` of the
/// table are 1 once it has gone the one and the other way.
struct ProbedAssembly {
  std::string text;
  std::vector<Branch> branches;
};

/// Branches with what the table holds about them.
[[nodiscard]] inline std::vector<Branch> with_ways(std::vector<Branch> branches,
                                                   std::span<const std::byte> table) {
  for (std::size_t i = 0; i < branches.size() && 2 * i + 1 < table.size(); ++i) {
    branches[i].one_way = table[2 * i] != std::byte{0};
    branches[i].other_way = table[2 * i + 1] != std::byte{0};
  }
  return branches;
}

} // namespace mtmc::detail
