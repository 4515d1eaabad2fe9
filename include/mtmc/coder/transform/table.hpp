#pragma once
/// The transformations of the offline coder: one row an optimisation type.

#include <mtmc/coder/transform/launch_fusion.hpp>
#include <mtmc/coder/transform/parallelization.hpp>
#include <mtmc/coder/transform/reordering.hpp>
#include <mtmc/coder/transform/threads/table.hpp>
#include <mtmc/coder/transform/tiling.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/unrolling.hpp>
#include <mtmc/coder/transform/vectorization.hpp>
#include <mtmc/core/kernel.hpp>

#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The table of `TransformCoder{}`. A host adds rows of its own, or puts one before these to replace it: the
/// first row of an optimisation counts that is for the kernel's language, or for all.
[[nodiscard]] inline std::vector<TransformationEntry> default_transformations() {
  auto table = detail::thread_transformations();
  // OpenCL C is put into CUDA's words for a step (`OpenClWords`).
  for (TransformationEntry row : detail::thread_transformations()) {
    row.language = languages::opencl.name;
    table.push_back(std::move(row));
  }
  const std::vector<TransformationEntry> loops{{"fusion", apply_fusion},
                                               {"reordering", apply_reordering},
                                               {"tiling", apply_tiling},
                                               {"unrolling", apply_unrolling},
                                               {"vectorization", apply_vectorization},
                                               {"parallelization", apply_parallelization}};
  table.insert(table.end(), loops.begin(), loops.end());
  return table;
}

} // namespace mtmc
