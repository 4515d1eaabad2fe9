#pragma once
/// One row of a rules policy's decision table.

#include <mtmc/core/structure.hpp>
#include <mtmc/policy/situation.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// One row of a rules policy's table: for an optimisation, in which situation, how much it is wanted and why.
struct Rule {
  /// Id of the optimisation type it speaks of.
  std::string_view optimization;
  /// Whether it speaks of this region in this situation.
  bool (*holds)(const Region& region, const Situation& situation);
  /// How much the action is wanted, relative to the others; 0 = forbidden.
  double weight;
  /// Why, in a few words.
  std::string_view reason;
  /// What length adds to the weight of a run of steps, so that of two runs the longer one is wanted more:
  /// nothing for one intermediate, half of this for two, two thirds for three.
  double by_length = 0;

  /// The weight for this region.
  [[nodiscard]] double weight_on(const Region& region) const noexcept {
    const auto intermediates = static_cast<double>(region.facts.intermediates.size());
    return intermediates > 1 ? weight + by_length * (1 - 1 / intermediates) : weight;
  }
};

} // namespace mtmc
