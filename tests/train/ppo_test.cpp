// Proximal policy optimisation on fixed trees: near the best that can be done, the same bits for the same
// seed.

#include <mtmc/train/exact_values.hpp>
#include <mtmc/train/ppo.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "toy_features.hpp"
#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Approx;
using toy::ByName;

namespace {
PpoResult trained(std::vector<KernelTree>& trees, const PpoOptions& options) {
  const ByName features(trees);
  return train_ppo(trees, {}, features, features.shape(), options);
}
} // namespace

TEST_CASE("on fixed trees the policy comes near the best that can be done") {
  std::vector<KernelTree> trees{toy::random_tree(1, 20), toy::random_tree(2, 20), toy::random_tree(3, 20)};
  const ByName features(trees);
  const PpoResult result = trained(trees, {.steps = 60000, .discount = 1, .policy_rate = 2e-3, .seed = 1});
  CHECK_FALSE(result.diverged);
  double got = 0, best = 0;
  for (KernelTree& tree : trees) {
    got += mean_return(result.network, tree, {}, features, 2000, true, 5);
    best += ExactValues(tree, {}).value({});
  }
  CAPTURE(got);
  CAPTURE(best);
  CHECK(got > 0.95 * best);
  CHECK(got < 1.03 * best);
  const PpoProgress& last = result.progress.back();
  CHECK(last.mean_return > result.progress.front().mean_return);
  CHECK(last.explained_variance > 0.3);
  for (const PpoProgress& one : result.progress) {
    CHECK(one.first_ratio_error < 1e-9);
    CHECK(one.entropy >= 0);
    CHECK(one.entropy <= 1.0001);
  }
}

TEST_CASE("the same seed gives the same weights, another one others") {
  std::vector<KernelTree> trees{toy::random_tree(4, 12)};
  const PpoOptions options{.rollout = 256, .minibatch = 64, .steps = 1024, .seed = 3};
  const auto weights = trained(trees, options).network.weights;
  CHECK(weights == trained(trees, options).network.weights);
  PpoOptions other = options;
  other.seed = 4;
  CHECK(weights != trained(trees, other).network.weights);
}

TEST_CASE(
    "training ends early where the observer says so, and early where it diverges, with finite weights") {
  std::vector<KernelTree> trees{toy::random_tree(4, 12)};
  const ByName features(trees);
  int updates = 0;
  const PpoResult stopped = train_ppo(trees, {}, features, features.shape(), {.rollout = 256, .steps = 10000},
                                      [&](const PpoProgress&) { return ++updates < 3; });
  CHECK(stopped.progress.size() == 3);
  PpoOptions wild{.rollout = 256, .steps = 10000};
  wild.policy_rate = std::numeric_limits<double>::infinity();
  const PpoResult broken = train_ppo(trees, {}, features, features.shape(), wild);
  CHECK(broken.diverged);
  for (const double weight : broken.network.weights) CHECK(std::isfinite(weight));
}

TEST_CASE("episodes have the step limits that are asked for, by turns, and the network is told which") {
  std::vector<KernelTree> trees{toy::random_tree(4, 12)};
  const ByName features(trees);
  std::map<int, int> begun;
  int most = 0; // steps beyond an episode's limit
  const TreeEncoder watching = [&](const TreeEnvironment& environment, EncodedState& encoded) {
    features(environment, encoded);
    if (environment.past().empty()) ++begun[environment.step_limit()];
    most = std::max(most, static_cast<int>(environment.past().size()) + 1 - environment.step_limit());
  };
  const TreeOptions rules{.reward = {.step_limit = 7}};
  (void)train_ppo(trees, rules, watching, features.shape(),
                  {.rollout = 256, .steps = 2048, .step_limits = {5, 2}, .seed = 3});
  REQUIRE(begun.size() == 2);
  CHECK(begun[5] > 100);
  CHECK(begun[2] > 100);
  CHECK(most == 0);
}

TEST_CASE("trees in which nothing can be done teach nothing") {
  std::vector<KernelTree> trees(2);
  for (KernelTree& tree : trees) tree.nodes = {{"start"}};
  const PpoResult result = train_ppo(trees, {}, [](const TreeEnvironment&, EncodedState&) {}, {1, 1, 4}, {});
  CHECK(result.progress.empty());
}

TEST_CASE("training goes on from priors of another policy, and the first ratios stay 1") {
  std::vector<KernelTree> trees{toy::three_ways()};
  const ByName features(trees);
  const TreeEncoder leaning = [&](const TreeEnvironment& environment, EncodedState& encoded) {
    features(environment, encoded);
    encoded.priors.assign(environment.choices(), 0);
    encoded.priors.back() = std::log(3.0); // as likely as three others
  };
  ActionNetwork network = make_network(features.shape(), 1);
  const NetworkLayers layers(network.shape);
  for (std::size_t i = 0; i < layers.score.size(); ++i) network.weights[layers.score.first + i] = 0;
  const PpoResult result =
      train_ppo(network, trees, {}, leaning,
                {.rollout = 256, .minibatch = 64, .steps = 4096, .policy_rate = 3e-3, .seed = 1});
  REQUIRE(result.progress.size() == 16);
  for (const PpoProgress& one : result.progress) CHECK(one.first_ratio_error < 1e-9);
  std::vector<double> before, after;
  const TreeEnvironment begin(trees[0], {});
  network_policy(network, leaning)(begin, before);
  network_policy(result.network, leaning)(begin, after);
  CHECK(before[1] == Approx(0.75));
  CHECK(after[1] > 0.8); // b is the better of the two
}

TEST_CASE("training goes on from a given network; at first the value alone learns where that is asked for") {
  std::vector<KernelTree> trees{toy::random_tree(4, 12)};
  const ByName features(trees);
  PpoOptions options{.rollout = 256, .minibatch = 64, .steps = 1024, .seed = 3};
  const ActionNetwork start = make_network(features.shape(), 3);
  CHECK(train_ppo(start, trees, {}, features, options).network.weights ==
        trained(trees, options).network.weights);

  options.value_updates = 2;
  PpoTrainer trainer(start, trees, {}, features, options);
  const auto policy_as_at_first = [&] {
    const std::size_t end = NetworkLayers(start.shape).first_of_value();
    return std::equal(start.weights.begin(), start.weights.begin() + static_cast<std::ptrdiff_t>(end),
                      trainer.network().weights.begin());
  };
  for (int i = 0; i < 2; ++i) {
    (void)trainer.update();
    CHECK(policy_as_at_first());
    CHECK(trainer.network().weights != start.weights);
  }
  (void)trainer.update();
  CHECK_FALSE(policy_as_at_first());
}
