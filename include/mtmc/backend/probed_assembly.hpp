#pragma once
/// An assembly text with stores that show which ways its branches go.

#include <mtmc/core/branch.hpp>

#include <string>
#include <string_view>
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

} // namespace mtmc::detail
