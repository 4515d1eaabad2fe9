#pragma once

#include <mtmc/analysis/function_analysis.hpp>
#include <mtmc/analysis/scalars.hpp>

#include <cstddef>
#include <string>
#include <vector>

/// \file
/// Which transformations the dependences allow. Every answer holds for all sizes. "No" may mean "not proved".
///
/// Dependences of recognised reductions are never in the way: reordering them changes rounding only.
/// Reordering and tiling (`interchange_legal`, `band_is_permutable`) also cover imperfect nests such as the
/// naive matrix product: `for i for j { float sum = 0; for k sum += ...; C[..] = sum; }`. The answer then
/// lists the scalars to expand: replace each by an array with one element per iteration of the loops that are
/// moved across it (or of a tile of them), and split the statements before and after the inner loop off into
/// loops of their own; the answer is only "yes" if that is legal too.

namespace mtmc {

/// Yes, or no and why.
struct Legality {
  bool legal = false;
  /// One sentence without full stop, fit for a decline: "iterations of i depend on each other through A".
  /// Empty if legal.
  std::string reason{};
  /// Scalars private to an iteration that have to be expanded to arrays (see above).
  std::vector<const Variable*> expanded_scalars{};
  /// The nest is imperfect between the loops in question: statements before and after the inner loops must be
  /// distributed into loops of their own.
  bool needs_distribution = false;
  explicit operator bool() const noexcept { return legal; }
};

/// A reduction that a loop carries.
struct Reduction {
  ReductionOperation operation = ReductionOperation::none;
  /// The scalar, or null.
  const Variable* scalar = nullptr;
  /// Else the array whose elements are updated, and one such write.
  const Array* array = nullptr;
  const Access* access = nullptr;
  /// The type of what is reduced ("float").
  std::string type{};
};

/// Iterations may run at once, in any order: no dependence is carried by the loop, not even of a reduction.
/// Scalars that are declared outside but private to an iteration (`classify_scalars`) must be made private.
[[nodiscard]] Legality loop_is_parallel(const Loop& loop);

/// Everything the loop carries is a recognised reduction, and there is at least one.
[[nodiscard]] Legality loop_is_reduction(const Loop& loop);

/// The reductions a loop carries.
[[nodiscard]] std::vector<Reduction> reductions_of(const Loop& loop);

/// The loops at levels `a` and `b` of the nest may change places (those in between stay).
[[nodiscard]] Legality interchange_legal(const LoopNest& nest, std::size_t a, std::size_t b);

/// The loops of the nest at levels `first` to `last` (included) may be put into the order `order`, a
/// permutation of first..last: position `first + p` gets the loop of level `order[p]`.
[[nodiscard]] Legality permutation_legal(const LoopNest& nest, std::size_t first,
                                         const std::vector<std::size_t>& order);

/// Every order of the loops at levels `first` to `last` (included) is legal, and so is tiling them together.
[[nodiscard]] Legality band_is_permutable(const LoopNest& nest, std::size_t first, std::size_t last);

/// The loop at `level` may be unrolled and the copies jammed into the loops inside it.
[[nodiscard]] Legality unroll_and_jam_legal(const LoopNest& nest, std::size_t level);

/// Two loops that stand one after the other in one block (with nothing but declarations, comments and
/// directives between them) may become one loop with the bodies one after the other: the iteration spaces are
/// provably equal and no iteration of the second needs something from a later iteration of the first.
/// Declarations between them must be movable before the first loop, which is checked.
[[nodiscard]] Legality fusion_legal(const Loop& first, const Loop& second);

/// The innermost loop may be executed by vector instructions; reductions are those of `reductions_of`.
[[nodiscard]] Legality vectorization_legal(const Loop& loop);

} // namespace mtmc
