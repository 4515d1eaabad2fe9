#pragma once
/// The transformations of the offline coder for texts with Triton kernels: one row an optimisation type.

#include <mtmc/coder/transform/programs/fusion.hpp>
#include <mtmc/coder/transform/programs/pipeline.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>
#include <mtmc/coder/transform/programs/reordering.hpp>
#include <mtmc/coder/transform/programs/tiling.hpp>

#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The table of `TransformCoder{}` for such texts. A host adds rows of its own, or puts one before these to
/// replace it: the first row of an optimisation and a language counts.
[[nodiscard]] inline std::vector<ProgramTransformationEntry> default_program_transformations() {
  return {{"tiling", tile_programs},
          {"fusion", fuse_programs},
          {"pipeline", pipeline_loads},
          {"reordering", reorder_programs}};
}

} // namespace mtmc
