#pragma once

#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/legality/loop_legality.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Which orders of the loops of a nest the dependences allow, imperfect nests included (see legality.hpp for
/// what expanding and distributing mean).

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The loops of a nest at levels `first` to `last`, about to be reordered or tiled.
class Band {
public:
  Band(const LoopNest& nest, std::size_t first, std::size_t last) : nest_(nest), first_(first), last_(last) {}

  [[nodiscard]] const LoopInfo& loop(std::size_t level) const { return nest_.loop(level); }
  [[nodiscard]] bool perfect() const { return nest_.perfect(first_, last_); }

  /// What can be asked at all.
  [[nodiscard]] Legality check() const;

  /// Statements by where they stand: those before the inner loop of the outermost level first, the innermost
  /// body in the middle, those behind the outermost inner loop last.
  [[nodiscard]] std::size_t group_of(const LoopInfo* loop_around, std::size_t order) const;
  [[nodiscard]] std::size_t body_group() const noexcept { return last_ - first_; }
  [[nodiscard]] std::size_t group_of(const Access& access) const;

  /// The directions of a dependence in the band (those of levels its ends have in common); nothing if it is
  /// between different iterations of a loop around the band.
  [[nodiscard]] std::optional<std::span<const Directions>> directions_of(const Dependence& dependence) const;

  /// The level whose variable (or a value computed in its body) the bounds of `level` depend on, if it is in
  /// the band; `strict` tells whether the value itself is computed in the body.
  struct BoundDependence {
    std::size_t level = 0;
    bool computed = false;
  };
  [[nodiscard]] std::vector<BoundDependence> bounds_depend_on(std::size_t level) const;

  /// A private scalar that several groups of statements use.
  struct ExpandedScalar {
    const Variable* variable = nullptr;
    /// Directions of the dependences through it within the innermost body, where they are no reduction.
    std::vector<std::vector<Directions>> directions;
  };

  /// Looks at the scalars of the band: fills `legality` with those to expand, or with the reason why one is
  /// in the way. `dependences`: what the expanded ones mean for the order of iterations.
  void inspect_scalars(Legality& legality, std::vector<std::vector<Directions>>& dependences) const;

  /// Looks at the arrays declared in the band: one that several groups of statements use would have to be
  /// expanded, which is not done.
  void inspect_arrays(Legality& legality) const;

private:
  [[nodiscard]] bool controls_band(const Variable& variable) const;

  void inspect_private(const Variable& variable, Legality& legality,
                       std::vector<std::vector<Directions>>& dependences) const;

  [[nodiscard]] static std::pair<ScalarRole, ReductionOperation> role_in(const LoopInfo& loop,
                                                                         const Variable& variable);

  /// The value the variable is declared with reads nothing that the band writes.
  [[nodiscard]] bool recomputable(const Variable& variable) const;
  [[nodiscard]] bool reads_only_constants(const SyntaxNode& node) const;

  const LoopNest& nest_;
  std::size_t first_;
  std::size_t last_;
};

} // namespace detail

/// The loops of the nest at levels `first` to `last` (included) may be put into the order `order`, a
/// permutation of first..last: position `first + p` gets the loop of level `order[p]`. In an imperfect nest
/// the statements around the inner loops are then distributed into loops of their own, which keep their
/// order.
[[nodiscard]] Legality permutation_legal(const LoopNest& nest, std::size_t first,
                                         const std::vector<std::size_t>& order);

/// The loops at levels `a` and `b` of the nest may change places (those in between stay).
[[nodiscard]] Legality interchange_legal(const LoopNest& nest, std::size_t a, std::size_t b);

/// Every order of the loops at levels `first` to `last` (included) is legal, and so is tiling them together.
/// In an imperfect nest the statements around the inner loops are then distributed within each tile.
[[nodiscard]] Legality band_is_permutable(const LoopNest& nest, std::size_t first, std::size_t last);

/// The loop at `level` may be unrolled and the copies of its body merged: statement by statement, the copies
/// of the loops inside becoming one. At the innermost level it is plain unrolling.
[[nodiscard]] Legality unroll_and_jam_legal(const LoopNest& nest, std::size_t level);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/legality/nest_legality_inl.hpp>
#endif
