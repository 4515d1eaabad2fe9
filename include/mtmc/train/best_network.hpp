#pragma once
/// Which of several networks is kept.

#include <mtmc/policy/action_network.hpp>

#include <limits>

namespace mtmc::inline MTMC_ABI {

/// The best of networks that were tried one after the other.
class BestNetwork {
public:
  /// Tries a network with that score, which is better the higher it is; whether it is the best so far: better
  /// than those before by more than `least_gain`. One whose score is no number is not.
  bool offer(double score, const ActionNetwork& network, double least_gain = 0) {
    ++since_;
    if (!(score > score_ + least_gain)) return false;
    score_ = score;
    network_ = network;
    since_ = 0;
    return true;
  }

  /// The best one; without weights where there was none.
  [[nodiscard]] const ActionNetwork& network() const noexcept { return network_; }
  /// Its score; minus infinity where there was none.
  [[nodiscard]] double score() const noexcept { return score_; }
  /// How many were tried after it.
  [[nodiscard]] int since() const noexcept { return since_; }

private:
  ActionNetwork network_{};
  double score_ = -std::numeric_limits<double>::infinity();
  int since_ = 0;
};

} // namespace mtmc
