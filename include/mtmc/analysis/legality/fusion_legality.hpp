#pragma once

#include <mtmc/analysis/legality/loop_legality.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// \file
/// When two neighbouring loops may become one.

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What a loop reads and writes, for the question whether something behind it may as well come before it.
class UsedInLoop {
public:
  explicit UsedInLoop(const LoopInfo& loop);

  [[nodiscard]] bool needs_order(const Access& access) const;
  [[nodiscard]] bool needs_order(const ScalarUse& use) const;

private:
  struct Uses {
    bool read = false;
    bool written = false;
  };
  static void note(Uses& uses, bool write) { (write ? uses.written : uses.read) = true; }
  [[nodiscard]] static bool conflicts(const Uses& uses, bool write);

  std::unordered_map<const Array*, Uses> arrays_;
  std::unordered_map<const Variable*, Uses> scalars_;
  /// Through pointers of unknown origin, and of memory that these may point to.
  Uses through_unknown_;
  Uses shared_;
};

/// The statements between two loops may as well stand before the first one.
[[nodiscard]] Legality movable_before(const LoopInfo& first, const LoopInfo& second,
                                      std::span<const SyntaxNode> between);

/// No element goes from an iteration of the first loop to an earlier one of the second.
[[nodiscard]] Legality accesses_allow_fusion(const LoopInfo& first, const LoopInfo& second);

/// `fusion_legal` for loops whose surroundings are known: `between` stands between them in one block.
[[nodiscard]] Legality fusion_legal_between(const LoopInfo& first, const LoopInfo& second,
                                            std::span<const SyntaxNode> between);

} // namespace detail

/// Two loops that stand one after the other in one block (with nothing but declarations, assignments,
/// comments and directives between them) may become one loop with the bodies one after the other: the
/// iteration spaces are provably equal and no iteration of the second needs something from a later iteration
/// of the first. What stands between them must be movable before the first loop, which is checked.
[[nodiscard]] Legality fusion_legal(const LoopInfo& first, const LoopInfo& second);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/legality/fusion_legality_inl.hpp>
#endif
