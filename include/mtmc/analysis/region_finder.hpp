#pragma once
/// Where something could be done: regions of C-family text with their facts.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/core/task.hpp>

#include <string>

namespace mtmc::inline MTMC_ABI {

/// Finds the regions of kernels in languages of the C family: functions, loops, neighbouring loops, launches
/// and sequences of them, with all facts. Never throws for what a kernel's text may be: what is not
/// understood is counted and noted, and no transformation is claimed legal around it. A kernel in another
/// family gives a structure without regions and a note that says so. Stateless; linear in the text but for
/// accesses to one and the same array.
class AstRegionFinder {
public:
  /// The structure of the kernel, its facts for the task's main size.
  [[nodiscard]] Structure find(const Task& task, const Kernel& kernel) const;

  /// Names the finder and its version, for cache keys.
  [[nodiscard]] std::string identity() const { return "ast 3"; }
};

static_assert(check_region_finder<AstRegionFinder>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/region_finder_inl.hpp>
#endif
