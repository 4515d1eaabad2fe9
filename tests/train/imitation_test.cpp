// Supervised training: near the best in trees by soft labels, other policies cloned, ended in time, the same
// bits for the same seed.

#include <mtmc/train/imitation.hpp>
#include <mtmc/train/ppo.hpp>
#include <mtmc/train/tree_scores.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "toy_features.hpp"
#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Approx;
using toy::ByName;

namespace {
std::vector<KernelTree> forest() {
  return {toy::random_tree(1, 20), toy::random_tree(2, 20), toy::random_tree(3, 20)};
}
/// All trees are learnt from: features by name say nothing of others.
ImitationOptions short_training() {
  return {.rounds = 2,
          .states = 1000,
          .epochs = 15,
          .policy_rate = 1e-2,
          .value_rate = 1e-2,
          .held_out = 0,
          .seed = 1};
}
} // namespace

TEST_CASE("by soft labels of the exact values the policy comes near the best, and the value near V*") {
  std::vector<KernelTree> trees = forest();
  const ByName features(trees);
  const ImitationResult result = imitate(make_network(features.shape(), 1), trees, {}, features,
                                         exact_teacher({}, 0.05), short_training());
  CHECK_FALSE(result.diverged);
  REQUIRE(result.progress.size() == 30);
  const ImitationProgress &first = result.progress.front(), &last = result.progress.back();
  CHECK(first.states == 1000);
  CHECK(first.round == 1);
  CHECK(last.states == 2000);
  CHECK(last.round == 2);
  CHECK(last.epoch == 30);
  CHECK(last.training.divergence < 0.3 * first.training.divergence);
  CHECK(last.training.value_error < 0.5 * first.training.value_error);
  CHECK(last.training.agreement > 0.9);
  const ScoreRatios before =
      ratios_of(score_trees(network_policy(make_network(features.shape(), 1), features), trees, {}));
  const ScoreRatios ratios = ratios_of(score_trees(network_policy(result.network, features), trees, {}));
  CHECK(before.sampled < 0.85);
  CHECK(ratios.greedy > 0.95);
  CHECK(ratios.sampled > 0.9);
}

TEST_CASE("any policy can be cloned; its values are not learnt") {
  std::vector<KernelTree> trees = forest();
  const ByName features(trees);
  const TreePolicy mostly_last = [](const TreeEnvironment& environment, std::vector<double>& probabilities) {
    const auto count = static_cast<double>(environment.choices());
    probabilities.assign(environment.choices(), count == 1 ? 1 : 0.2 / (count - 1));
    if (count > 1) probabilities.back() = 0.8;
  };
  const ActionNetwork start = make_network(features.shape(), 1);
  const ImitationResult result =
      imitate(start, trees, {}, features, cloning_teacher(mostly_last), short_training());
  std::vector<double> wanted, got;
  for (KernelTree& tree : trees) {
    const TreeEnvironment environment(tree, {});
    mostly_last(environment, wanted);
    network_policy(result.network, features)(environment, got);
    for (std::size_t k = 0; k < wanted.size(); ++k) CHECK(got[k] == Approx(wanted[k]).epsilon(0.15));
  }
  for (std::size_t i = NetworkLayers(start.shape).first_of_value(); i < start.weights.size(); ++i)
    CHECK(result.network.weights[i] == start.weights[i]);
  CHECK(result.progress.back().training.value_error == 0);
}

TEST_CASE("with priors the network learns what they lack") {
  std::vector<KernelTree> trees{toy::three_ways()};
  const ByName features(trees);
  const TreeEncoder leaning = [&](const TreeEnvironment& environment, EncodedState& encoded) {
    features(environment, encoded);
    encoded.priors.assign(environment.choices(), 0);
    encoded.priors.front() = 2;
  };
  const ImitationResult result = imitate(make_network(features.shape(), 1), trees, {}, leaning,
                                         cloning_teacher(uniform_policy()), short_training());
  std::vector<double> probabilities;
  network_policy(result.network, leaning)(TreeEnvironment(trees[0], {}), probabilities);
  CHECK(probabilities[0] == Approx(0.5).epsilon(0.1));
}

TEST_CASE("trees that are held out end the training where nothing more is gained, and the best is kept") {
  std::vector<KernelTree> trees = forest();
  const ByName features(trees); // of the tree held out nothing can be learnt
  ImitationOptions options = short_training();
  options.held_out = 0.34;
  options.patience = 4;
  const ImitationResult result =
      imitate(make_network(features.shape(), 1), trees, {}, features, exact_teacher({}), options);
  REQUIRE(result.progress.size() < 30);
  std::size_t best = 0;
  for (std::size_t i = 0; i < result.progress.size(); ++i)
    if (result.progress[i].held_out.divergence < result.progress[best].held_out.divergence) best = i;
  CHECK(best + 5 == result.progress.size());
  CHECK(result.progress[best].held_out.divergence > result.progress.back().training.divergence);
  const auto until_best = [&](const ImitationProgress& one) {
    return one.epoch < static_cast<int>(best) + 1;
  };
  CHECK(result.network.weights == imitate(make_network(features.shape(), 1), trees, {}, features,
                                          exact_teacher({}), options, until_best)
                                      .network.weights);
}

TEST_CASE("the same seed gives the same weights, another one others; wild training ends with finite ones") {
  std::vector<KernelTree> trees = forest();
  const ByName features(trees);
  ImitationOptions options{.rounds = 2, .states = 200, .epochs = 3, .seed = 5};
  const auto weights = [&] {
    return imitate(make_network(features.shape(), 1), trees, {}, features, exact_teacher({}), options)
        .network.weights;
  };
  const auto first = weights();
  CHECK(first == weights());
  options.seed = 6;
  CHECK(first != weights());
  options.policy_rate = std::numeric_limits<double>::infinity();
  const ImitationResult broken =
      imitate(make_network(features.shape(), 1), trees, {}, features, exact_teacher({}), options);
  CHECK(broken.diverged);
  for (const double weight : broken.network.weights) CHECK(std::isfinite(weight));
}

TEST_CASE("reinforcement goes on from where imitation ended, and does not lose it") {
  std::vector<KernelTree> trees = forest();
  const ByName features(trees);
  const ImitationResult start = imitate(make_network(features.shape(), 1), trees, {}, features,
                                        exact_teacher({}, 0.05), short_training());
  const PpoResult result = train_ppo(start.network, trees, {}, features, {.steps = 8192, .discount = 1});
  CHECK(result.progress.front().explained_variance > 0.3);
  CHECK(ratios_of(score_trees(network_policy(result.network, features), trees, {})).greedy > 0.95);
}

TEST_CASE("a teacher who speaks of other choices is refused; trees without choices teach nothing") {
  std::vector<KernelTree> trees = forest();
  const ByName features(trees);
  const TreeTeacher wrong = [](const TreeEnvironment&, TreeLesson& lesson) { lesson.probabilities = {1}; };
  CHECK_THROWS_WITH_AS((void)imitate(make_network(features.shape(), 1), trees, {}, features, wrong, {}),
                       doctest::Contains("mtmc.train.001"), Error);
  std::vector<KernelTree> leaves(2);
  for (KernelTree& tree : leaves) tree.nodes = {{"start"}};
  const ActionNetwork start = make_network(features.shape(), 1);
  const ImitationResult result = imitate(start, leaves, {}, features, exact_teacher({}), {});
  CHECK(result.progress.empty());
  CHECK(result.network.weights == start.weights);
}
