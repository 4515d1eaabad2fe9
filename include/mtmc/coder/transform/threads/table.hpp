#pragma once
/// The transformations of the offline coder for launches of threads on a GPU: one row an optimisation type.

#include <mtmc/coder/transform/reordering.hpp>
#include <mtmc/coder/transform/threads/axis_order.hpp>
#include <mtmc/coder/transform/threads/block_numbers.hpp>
#include <mtmc/coder/transform/threads/coarsening.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/element_vectors.hpp>
#include <mtmc/coder/transform/threads/flat_loops.hpp>
#include <mtmc/coder/transform/threads/online.hpp>
#include <mtmc/coder/transform/threads/parallelization.hpp>
#include <mtmc/coder/transform/threads/partial_sums.hpp>
#include <mtmc/coder/transform/threads/pipelining.hpp>
#include <mtmc/coder/transform/threads/retention.hpp>
#include <mtmc/coder/transform/threads/row_vectors.hpp>
#include <mtmc/coder/transform/threads/rows.hpp>
#include <mtmc/coder/transform/threads/splitting.hpp>
#include <mtmc/coder/transform/threads/strength_reduction.hpp>
#include <mtmc/coder/transform/threads/tiles.hpp>
#include <mtmc/coder/transform/threads/transposition.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/unrolling.hpp>
#include <mtmc/coder/transform/vectorization.hpp>
#include <mtmc/core/kernel.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether the action is about the threads of a launch, not about a loop of one thread.
[[nodiscard]] inline bool is_about_threads(const TransformRequest& request) {
  return request.action.region.find("/threads:") != std::string::npos;
}

/// What a transformation makes of a kernel in which the threads of the action's function do not return early
/// but have a branch around their work, and numbers of blocks have names if `named`.
template <class Apply>
[[nodiscard]] SyntaxNode in_plain_form(const TransformRequest& request, const Apply& apply,
                                       bool named = true) {
  SyntaxNode tree = request.tree;
  SyntaxNode* const function = find_function(tree, function_of_region(request.action.region));
  if (function == nullptr) return apply(request);
  const bool nested = nest_early_returns(*function);
  if ((!named || !name_block_numbers(tree, *function)) && !nested) return apply(request);
  const KernelAnalysis analysis{tree, &request.task};
  return apply(TransformRequest{request.task, request.kernel, request.device, request.action, tree, analysis,
                                request.variant});
}

/// A block reads a tile in one order and writes it in another (`transpose_threads`), or makes a tile of
/// results from tiles of the operands in shared memory (`ResultTiler`).
[[nodiscard]] inline SyntaxNode tile_threads(const TransformRequest& request) {
  return in_plain_form(request, [](const TransformRequest& asked) {
    return is_about_threads(asked) ? transpose_threads(asked) : ResultTiler(asked).write();
  });
}

/// Threads are given several results each (`coarsen_threads`), or several elements (`coarsen_elements`);
/// loops of one thread are unrolled as anywhere.
[[nodiscard]] inline SyntaxNode unroll_threads(const TransformRequest& request) {
  if (!is_about_threads(request)) return apply_unrolling(request);
  const FunctionAnalysis* const function =
      request.analysis.find_function(function_of_region(request.action.region));
  const bool elements = function != nullptr && function->loops.empty();
  return elements ? in_plain_form(request, coarsen_elements, false) : in_plain_form(request, coarsen_threads);
}

/// Several elements are loaded and stored at once: of a row that threads share (`vectorize_rows`), or of
/// what each thread makes alone (`vectorize_elements`).
[[nodiscard]] inline SyntaxNode vectorize_threads(const TransformRequest& request) {
  const FunctionAnalysis* const function =
      request.analysis.find_function(function_of_region(request.action.region));
  const bool rows = !is_about_threads(request) || (function != nullptr && !function->loops.empty());
  return rows ? vectorize_rows(request) : vectorize_elements(request);
}

/// Threads are numbered along another axis (`reorder_axes`); loops of one thread change places as anywhere.
[[nodiscard]] inline SyntaxNode reorder_threads(const TransformRequest& request) {
  return is_about_threads(request) ? reorder_axes(request) : apply_reordering(request);
}

/// The sums of a contraction are split for tiles of its results (`PartialSums`); behind the ways to do that
/// come those to share a sum among threads (`split_reduction`), which are for all others.
[[nodiscard]] inline SyntaxNode split_sums(const TransformRequest& request) {
  TransformRequest others = request;
  bool split = false;
  const auto in_parts = [&](const TransformRequest& asked) {
    std::optional<PartialSums> sums;
    try {
      sums.emplace(asked);
    } catch (const TransformDeclined&) {
      return asked.tree; // it adds up in another way
    }
    const auto ways = sums->all();
    const auto count = static_cast<int>(ways.size());
    others.variant -= count;
    if (asked.variant >= count) return asked.tree;
    split = true;
    return sums->write(choose_variant(ways, asked.variant));
  };
  SyntaxNode tree = in_plain_form(request, in_parts);
  return split ? tree : split_reduction(others);
}

/// Gives more threads to what few do (`parallelize_threads`), neighbouring loops being one.
[[nodiscard]] inline SyntaxNode share_among_threads(const TransformRequest& request) {
  return with_flat_loops(request, parallelize_threads);
}

/// The rows for CUDA C++, which come before those for every C-like language.
[[nodiscard]] inline std::vector<TransformationEntry> thread_transformations() {
  const std::string cuda{languages::cuda.name};
  return {{"tiling", tile_threads, cuda},
          {"unrolling", unroll_threads, cuda},
          {"parallelization", share_among_threads, cuda},
          {"splitting", split_sums, cuda},
          {"retention", retain_rows, cuda},
          {"vectorization", vectorize_threads, cuda},
          {"reordering", reorder_threads, cuda},
          {"strength_reduction", reduce_strength, cuda},
          {"online", make_online, cuda},
          {"pipeline", pipeline_tiles, cuda},
          {"scanning", scan_rows, cuda}};
}

} // namespace mtmc::detail
