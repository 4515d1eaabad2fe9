#pragma once
/// How good a policy is in trees: what it returns as a part of the best that can be done, with intervals.

#include <mtmc/core/error.hpp>
#include <mtmc/support/bootstrap.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/train/exact_values.hpp>
#include <mtmc/train/tree_policy.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Returns in one tree, without discount.
struct TreeScore {
  std::string task{};   ///< the tree's task
  std::string device{}; ///< the tree's device
  double best = 0;      ///< V* of its start kernel: the most that any policy returns in the mean
  double greedy = 0;    ///< mean return where the likeliest choices are taken
  double sampled = 0;   ///< mean return where choices are drawn

  friend bool operator==(const TreeScore&, const TreeScore&) = default; ///< member by member
};

/// How trees are played for scores.
struct TreeScoreOptions {
  int episodes = 500;     ///< a tree and way to choose, above 0
  std::uint64_t seed = 0; ///< of everything that is drawn
};

/// Plays each tree by a policy, greedily and by drawing. Trees in which nothing can be done are left out.
[[nodiscard]] inline std::vector<TreeScore> score_trees(const TreePolicy& policy, std::span<KernelTree> trees,
                                                        const TreeOptions& rules,
                                                        const TreeScoreOptions& options = {}) {
  std::vector<TreeScore> scores;
  for (KernelTree& tree : trees) {
    if (TreeEnvironment(tree, rules).ended()) continue;
    TreeScore& score = scores.emplace_back();
    score.task = tree.task;
    score.device = tree.device;
    score.best = ExactValues(tree, rules).value({});
    score.greedy = mean_return(policy, tree, rules, options.episodes, true, options.seed);
    score.sampled = mean_return(policy, tree, rules, options.episodes, false, options.seed);
  }
  return scores;
}

/// Parts of the best returns that a policy reached: sums over trees, so that trees with much to gain count
/// for more.
struct ScoreRatios {
  double greedy = 0;  ///< where the likeliest choices are taken
  double sampled = 0; ///< where choices are drawn
};

/// Sum of returns over the sum of the best ones; 0 where that is not above 0.
[[nodiscard]] inline ScoreRatios ratios_of(std::span<const TreeScore> scores) {
  double best = 0;
  ScoreRatios ratios;
  for (const TreeScore& score : scores) {
    best += score.best;
    ratios.greedy += score.greedy;
    ratios.sampled += score.sampled;
  }
  return best > 0 ? ScoreRatios{ratios.greedy / best, ratios.sampled / best} : ScoreRatios{};
}

/// A ratio, and the interval in which it lies for most other choices of such trees.
struct ScoreInterval {
  double ratio = 0; ///< of the trees as they are
  double low = 0;   ///< lower end
  double high = 0;  ///< upper end
};

/// How intervals are made.
struct IntervalOptions {
  int draws = 2000;         ///< of as many trees as there are, with repetition; above 0
  double confidence = 0.95; ///< part of the draws inside of the interval, (0, 1)
  std::uint64_t seed = 0;   ///< of the draws
};

/// Intervals of the greedy and of the sampled ratio, in this order, by the percentiles of a bootstrap over
/// trees (Efron, 1979). It knows of other trees only what these tell: with fewer than about ten of them it is
/// too narrow.
[[nodiscard]] inline std::pair<ScoreInterval, ScoreInterval>
score_intervals(std::span<const TreeScore> scores, const IntervalOptions& options = {}) {
  const ScoreRatios all = ratios_of(scores);
  std::pair<ScoreInterval, ScoreInterval> intervals{{all.greedy, all.greedy, all.greedy},
                                                    {all.sampled, all.sampled, all.sampled}};
  if (scores.empty()) return intervals;
  std::vector<TreeScore> chosen(scores.size());
  const auto ends =
      detail::bootstrap_intervals(scores.size(), options.draws, options.confidence,
                                  PhiloxEngine{options.seed, 3}, [&](std::span<const std::size_t> drawn) {
                                    for (std::size_t i = 0; i < drawn.size(); ++i)
                                      chosen[i] = scores[drawn[i]];
                                    const ScoreRatios ratios = ratios_of(chosen);
                                    return std::array<double, 2>{ratios.greedy, ratios.sampled};
                                  });
  if (ends.empty()) return intervals;
  std::tie(intervals.first.low, intervals.first.high) = ends[0];
  std::tie(intervals.second.low, intervals.second.high) = ends[1];
  return intervals;
}

/// Scores of several trainings of one kind, which differ in their seeds, tree by tree: means of what they
/// returned. Throws `Error` (`mtmc.train.001`) where they are not of the same trees in the same order.
[[nodiscard]] inline std::vector<TreeScore>
mean_over_seeds(std::span<const std::vector<TreeScore>> trainings) {
  if (trainings.empty()) return {};
  std::vector<TreeScore> means = trainings.front();
  const auto count = static_cast<double>(trainings.size());
  for (std::size_t i = 0; i < means.size(); ++i) {
    means[i].greedy = means[i].sampled = 0;
    for (const auto& scores : trainings) {
      if (scores.size() != means.size() || scores[i].task != means[i].task ||
          scores[i].device != means[i].device)
        throw Error(error_id::train_data, "the trainings were scored on different trees",
                    "Score each of them on the same trees");
      means[i].greedy += scores[i].greedy / count;
      means[i].sampled += scores[i].sampled / count;
    }
  }
  return means;
}

} // namespace mtmc
