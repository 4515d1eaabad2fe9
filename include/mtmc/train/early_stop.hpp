#pragma once
/// When training may as well end, and whether it ended well.

#include <mtmc/core/error.hpp>
#include <mtmc/policy/action_network.hpp>
#include <mtmc/train/best_network.hpp>
#include <mtmc/train/ppo.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// When training ends before its steps are taken.
struct EarlyStopOptions {
  int every = 10;        ///< updates between scores, above 0
  int patience = 5;      ///< scores in a row that may be no better than the best, above 0
  double least_gain = 0; ///< by which a score is better, 0 or more
};

/// How good a network was.
struct NetworkScore {
  std::size_t steps = 0; ///< taken in training so far
  double score = 0;      ///< the higher the better
};

/// The best network of a training, and how it came to be.
struct EarlyStopResult {
  ActionNetwork network{};             ///< the one with the highest score
  std::vector<PpoProgress> progress{}; ///< one an update
  std::vector<NetworkScore> scores{};  ///< before the first update, between updates, and behind the last
  bool diverged = false;               ///< a weight was not finite any more: training has ended
};

/// Trains until all steps are taken or scores say that nothing more is gained; `score` is a network's in
/// trees that training does not see, such as a ratio of `ratios_of`. The network that training begins with is
/// scored, too: where all of training makes it worse, it stays. `observe` as in `train_ppo`.
[[nodiscard]] inline EarlyStopResult
train_until_no_gain(PpoTrainer& trainer, const std::function<double(const ActionNetwork& network)>& score,
                    const EarlyStopOptions& options = {},
                    const std::function<bool(const PpoProgress&)>& observe = {}) {
  EarlyStopResult result;
  BestNetwork best;
  const auto try_network = [&] {
    result.scores.push_back({trainer.steps(), score(trainer.network())});
    best.offer(result.scores.back().score, trainer.network(), options.least_gain);
  };
  try_network();
  for (bool goes_on = true; goes_on && !trainer.finished() && best.since() < options.patience;) {
    const PpoProgress progress = trainer.update();
    result.diverged = !trainer.is_finite();
    if (result.diverged) break;
    result.progress.push_back(progress);
    goes_on = !observe || observe(progress);
    const bool last = !goes_on || trainer.finished();
    if (last || result.progress.size() % static_cast<std::size_t>(options.every) == 0) try_network();
  }
  result.network = best.network();
  return result;
}

/// The result of a training (`PpoResult`, `EarlyStopResult`, `ImitationResult`) that ended well. Throws
/// `Error` (`mtmc.train.002`) where it diverged.
template <class Result> [[nodiscard]] Result require_trained(Result result) {
  if (result.diverged)
    throw Error(error_id::train_diverged,
                "training diverged after " + std::to_string(result.progress.size()) + " updates",
                "Use lower learning rates, and features and rewards of the order of 1");
  return result;
}

} // namespace mtmc
