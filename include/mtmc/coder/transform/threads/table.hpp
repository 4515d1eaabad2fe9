#pragma once
/// The transformations of the offline coder for launches of threads on a GPU: one row an optimisation type.

#include <mtmc/coder/transform/threads/coarsening.hpp>
#include <mtmc/coder/transform/threads/rows.hpp>
#include <mtmc/coder/transform/threads/tiles.hpp>
#include <mtmc/coder/transform/threads/transposition.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/unrolling.hpp>
#include <mtmc/core/kernel.hpp>

#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether the action is about the threads of a launch, not about a loop of one thread.
[[nodiscard]] inline bool is_about_threads(const TransformRequest& request) {
  return request.action.region.find("/threads:") != std::string::npos;
}

/// A block reads a tile in one order and writes it in another (`transpose_threads`), or makes a tile of
/// results from tiles of the operands in shared memory (`ResultTiler`).
[[nodiscard]] inline SyntaxNode tile_threads(const TransformRequest& request) {
  return is_about_threads(request) ? transpose_threads(request) : ResultTiler(request).write();
}

/// Threads are given several results each (`coarsen_threads`); loops of one thread are unrolled as anywhere.
[[nodiscard]] inline SyntaxNode unroll_threads(const TransformRequest& request) {
  return is_about_threads(request) ? coarsen_threads(request) : apply_unrolling(request);
}

/// The rows for CUDA C++, which come before those for every C-like language.
[[nodiscard]] inline std::vector<TransformationEntry> thread_transformations() {
  const std::string cuda{languages::cuda.name};
  return {{"tiling", tile_threads, cuda},
          {"unrolling", unroll_threads, cuda},
          {"parallelization", spread_rows, cuda}};
}

} // namespace mtmc::detail
