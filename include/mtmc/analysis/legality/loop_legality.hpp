#pragma once

#include <mtmc/analysis/kernel_analysis.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// What single loops allow: parallel execution, reductions, vector instructions. See legality.hpp.

namespace mtmc::inline MTMC_ABI {

/// Yes, or no and why.
struct Legality {
  /// Whether the transformation keeps the meaning.
  bool legal = false;
  /// One sentence without full stop, fit for a decline: "iterations of i depend on each other through A".
  /// Empty if legal.
  std::string reason{};
  /// Scalars private to an iteration that have to be expanded to arrays (see above).
  std::vector<const Variable*> expanded_scalars{};
  /// Those of them that are declared with a value that may as well be computed anew where it is used: the
  /// declaration is their only definition, and nothing it reads is written in the nest.
  std::vector<const Variable*> recomputable{};
  /// The nest is imperfect between the loops in question: statements before and after the inner loops must be
  /// distributed into loops of their own.
  bool needs_distribution = false;
  /// The same as `legal`.
  explicit operator bool() const noexcept { return legal; }
};

/// A reduction that a loop carries.
struct Reduction {
  /// The operation that combines the values.
  ReductionOperation operation = ReductionOperation::none;
  /// The scalar, or null.
  const Variable* scalar = nullptr;
  /// Else the array whose elements are updated, and one such write.
  const Array* array = nullptr;
  /// One write of the updated element; null for a scalar.
  const Access* access = nullptr;
  /// The type of what is reduced ("float").
  std::string type{};
};

namespace detail {

[[nodiscard]] Legality declined(std::string reason);
[[nodiscard]] Legality allowed();

[[nodiscard]] std::string shown(const LoopInfo& loop);

/// Nothing can be said of a loop that is not canonical or does what is not understood.
[[nodiscard]] Legality analysable(const LoopInfo& loop);

/// A dependence that is in the way, as a sentence.
[[nodiscard]] std::string depends(const LoopInfo& loop, const Dependence& dependence);

[[nodiscard]] std::string depends(const LoopInfo& loop, const Variable& variable);

} // namespace detail

/// Iterations may run at once, in any order: no dependence is carried by the loop, not even of a reduction.
/// Scalars that are declared outside but private to an iteration (`classify_scalars`) must be made private.
[[nodiscard]] Legality loop_is_parallel(const LoopInfo& loop);

/// The reductions a loop carries.
[[nodiscard]] std::vector<Reduction> reductions_of(const LoopInfo& loop);

/// Everything the loop carries is a recognised reduction, and there is at least one.
[[nodiscard]] Legality loop_is_reduction(const LoopInfo& loop);

/// The innermost loop may be executed by vector instructions: what it carries are reductions of scalars (or
/// of an element that stays the same), or dependences from a statement to a later one, which whole vectors
/// respect. The reductions are those of `reductions_of`.
[[nodiscard]] Legality vectorization_legal(const LoopInfo& loop);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/legality/loop_legality_inl.hpp>
#endif
