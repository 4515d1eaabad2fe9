#pragma once
/// The uniform policy: the baseline that every other one must beat (paper: ablation of the action space).

#include <mtmc/core/concepts.hpp>

#include <algorithm>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Gives every legal action the same probability, `stop` a probability of its own. With
/// `LoopOptions::selection` set to sampling, the loop's seed decides what is drawn; the policy itself holds
/// no state.
class RandomPolicy {
public:
  /// `stop_probability` of ending at each step, in [0, 1]; the rest is shared equally by the other legal
  /// actions.
  explicit RandomPolicy(double stop_probability = 0.0) : stop_probability_(stop_probability) {}

  /// Equal shares for all legal actions but `stop`.
  [[nodiscard]] ActionDistribution distribution(const Observation&, std::span<const Action> legal,
                                                std::stop_token) {
    ActionDistribution answer;
    answer.exact = true;
    const auto stops = static_cast<double>(std::count_if(
        legal.begin(), legal.end(), [](const Action& action) { return action.kind == Action::Kind::stop; }));
    const double others = static_cast<double>(legal.size()) - stops;
    for (const auto& action : legal) {
      const bool is_stop = action.kind == Action::Kind::stop;
      const double stop_share = others > 0 ? stop_probability_ : 1.0;
      answer.probabilities.push_back(is_stop ? stop_share / stops
                                             : (1.0 - (stops > 0 ? stop_share : 0.0)) / others);
    }
    answer.rationale = "every legal action alike";
    return answer;
  }

  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const { return "random, stop " + std::to_string(stop_probability_); }

private:
  double stop_probability_;
};

static_assert(check_policy<RandomPolicy>());

} // namespace mtmc
