// Scores of policies in trees: ratios, intervals, means over seeds.

#include <mtmc/train/tree_scores.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "toy_features.hpp"
#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Approx;

namespace {
std::vector<KernelTree> forest(int count) {
  std::vector<KernelTree> trees;
  for (int i = 1; i <= count; ++i) trees.push_back(toy::random_tree(static_cast<std::uint64_t>(i), 30));
  return trees;
}
/// Takes what is best by the exact values.
TreePolicy best_policy(const TreeOptions& rules) {
  return [rules](const TreeEnvironment& environment, std::vector<double>& probabilities) {
    const auto values = ExactValues(environment.tree(), rules).values_of_choices(environment.state());
    probabilities.assign(values.size(), 0);
    probabilities[detail::likeliest(values)] = 1;
  };
}
} // namespace

TEST_CASE("the best policy has about 1, chance less, and a prior what it leans to") {
  std::vector<KernelTree> trees = forest(6);
  trees.emplace_back().nodes = {{"start"}}; // nothing can be done
  const TreeScoreOptions options{.episodes = 200};
  const auto best = score_trees(best_policy({}), trees, {}, options);
  REQUIRE(best.size() == 6);
  CHECK(best[2].task == "tree 3");
  CHECK(best[2].best == ExactValues(trees[2], {}).value({}));
  CHECK(ratios_of(best).greedy == Approx(1).epsilon(0.05));
  CHECK(ratios_of(best).sampled == Approx(1).epsilon(0.05));
  const auto chance = score_trees(uniform_policy(), trees, {}, options);
  CHECK(ratios_of(chance).sampled < 0.9);

  const TreeEncoder encode = [](const TreeEnvironment& environment, EncodedState& encoded) {
    encoded.priors = ExactValues(environment.tree(), {}).values_of_choices(environment.state());
    for (double& one : encoded.priors) one *= 3;
  };
  const auto prior = score_trees(prior_policy(encode), trees, {}, options);
  CHECK(ratios_of(prior).sampled > ratios_of(chance).sampled);
  CHECK(ratios_of(prior).greedy == Approx(ratios_of(best).greedy));
  CHECK(score_trees(prior_policy(encode), trees, {}, options) == prior); // one seed, one result
}

TEST_CASE("ratios are of sums: trees with much to gain count for more") {
  const std::vector<TreeScore> scores{{"large", "", 3, 3, 1.5}, {"small", "", 1, 0, 0.5}};
  CHECK(ratios_of(scores).greedy == Approx(0.75));
  CHECK(ratios_of(scores).sampled == Approx(0.5));
  CHECK(ratios_of({}).greedy == 0);
  CHECK(ratios_of(std::vector<TreeScore>{{"nothing to gain", "", 0, 0, -1}}).sampled == 0);
}

TEST_CASE("intervals hold the ratio, narrow with more trees, and are the same for the same seed") {
  const auto some = [](std::size_t count) {
    PhiloxEngine random{4};
    std::vector<TreeScore> scores(count);
    for (TreeScore& one : scores) {
      one.best = 1;
      one.greedy = random.uniform();
      one.sampled = 0.25;
    }
    return scores;
  };
  const auto [greedy, sampled] = score_intervals(some(12));
  CHECK(greedy.low < greedy.ratio);
  CHECK(greedy.ratio < greedy.high);
  CHECK(sampled.low == sampled.high); // all trees alike
  CHECK(sampled.low == Approx(0.25));
  const ScoreInterval many = score_intervals(some(1200)).first;
  CHECK((many.high - many.low) * 5 < greedy.high - greedy.low);
  // Of numbers uniform over [0, 1] the mean of 1200 deviates by 1 / sqrt(12 * 1200).
  CHECK(many.high - many.low == Approx(2 * 1.96 / std::sqrt(12.0 * 1200)).epsilon(0.15));
  CHECK(score_intervals(some(12)).first.low == greedy.low);
  CHECK(score_intervals(some(12), {.confidence = 0.5}).first.low > greedy.low);
  CHECK(score_intervals({}).first.high == 0);
}

TEST_CASE("means over seeds are tree by tree, and of the same trees only") {
  const std::vector<std::vector<TreeScore>> trainings{{{"a", "", 2, 1, 0}, {"b", "", 1, 1, 1}},
                                                      {{"a", "", 2, 2, 1}, {"b", "", 1, 0, 1}}};
  const auto means = mean_over_seeds(trainings);
  REQUIRE(means.size() == 2);
  CHECK(means[0] == TreeScore{"a", "", 2, 1.5, 0.5});
  CHECK(means[1] == TreeScore{"b", "", 1, 0.5, 1});
  CHECK(mean_over_seeds({}).empty());
  const std::vector<std::vector<TreeScore>> others{trainings[0], {trainings[1][0]}};
  CHECK_THROWS_WITH_AS((void)mean_over_seeds(others), doctest::Contains("different trees"), Error);
}
