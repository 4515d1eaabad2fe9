#pragma once

#include <mtmc/analysis/legality/loop_legality.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// Scalars that a loop carries together: the place of the largest value, a sum relative to a running maximum,
/// mean and variance. No single one of them is a reduction, all of them are.

namespace mtmc::inline MTMC_ABI {

/// How the values that parts of the iterations leave in some scalars become those of all iterations.
enum class JointKind : std::uint8_t {
  /// `if (v > best) { best = v; at = j; }`: the leader is the extremum, the followers are taken where it is.
  place,
  /// `if (condition) found = true;`: one constant in all iterations that assign.
  constant,
  /// `s = s * exp(m - larger) + exp(x - larger); m = larger;`: sums relative to a running maximum, which
  /// leads.
  rescaled,
  /// `++n; d = x - mean; mean += d / n; m2 += d * (x - mean);`: the mean leads.
  moments
};

/// Scalars that are reduced together.
struct JointReduction {
  /// How.
  JointKind kind = JointKind::place;
  /// The scalar that the others depend on.
  const Variable* leader = nullptr;
  /// The others, in the order of the text. Of moments: the sum of squares, where there is one.
  std::vector<const Variable*> followers{};

  /// Of a place: the largest value is looked for, else the smallest.
  bool largest = true;
  /// Of a place: of equal values the first one counts, else the last one.
  bool first = true;
  /// Of a place: comparisons and the update of the leader treat a NaN as first value differently: its first
  /// value must be a number.
  bool starts_with_number = false;
  /// Of a place: the follower that is assigned the loop's variable, or null.
  const Variable* place = nullptr;
  /// Of a constant: the value.
  const SyntaxNode* value = nullptr;
  /// Of rescaled sums: the exponential function (`expf`).
  std::string exponential{};
  /// Of moments: the scalar that counts, or null where `counted` does.
  const Variable* count = nullptr;
  /// Of moments without a counter: the expression that is the number of values up to this iteration.
  const SyntaxNode* counted = nullptr;
};

/// What a loop carries, taken apart.
struct CarriedScalars {
  /// Everything is a reduction or part of a joint one; else the reason. A loop that carries nothing is legal.
  Legality legality{};
  /// Reductions of single scalars.
  std::vector<Reduction> single{};
  /// Reductions of several.
  std::vector<JointReduction> joint{};
};

/// Takes apart what a loop carries. Arrays that it accumulates into are not legal here.
[[nodiscard]] CarriedScalars carried_scalars(const LoopInfo& loop);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/legality/joint_reductions_inl.hpp>
#endif
