// Policies of trees: networks, priors and chance, and what playing by them returns.

#include <mtmc/train/network_gradient.hpp>
#include <mtmc/train/tree_policy.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "toy_features.hpp"
#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Approx;
using toy::ByName;

namespace {
/// A network that scores all choices alike.
ActionNetwork without_opinion(const NetworkShape& shape) {
  ActionNetwork network = make_network(shape, 1);
  const NetworkLayers layers(shape);
  for (std::size_t i = 0; i < layers.score.size(); ++i) network.weights[layers.score.first + i] = 0;
  return network;
}
} // namespace

TEST_CASE("priors are what a network without an opinion plays by; without priors that is chance") {
  std::vector<KernelTree> trees{toy::three_ways()};
  const ByName features(trees);
  const TreeEncoder leaning = [&](const TreeEnvironment& environment, EncodedState& encoded) {
    features(environment, encoded);
    encoded.priors.assign(environment.choices(), -7); // whatever is common to all
    encoded.priors.back() = -7 + std::log(3.0);       // as likely as three others
  };
  const ActionNetwork network = without_opinion(features.shape());
  const TreeEnvironment start(trees[0], {});
  std::vector<double> by_network, by_prior, by_chance;
  network_policy(network, leaning)(start, by_network);
  prior_policy(leaning)(start, by_prior);
  CHECK(by_network == by_prior);
  CHECK(by_prior[1] == Approx(0.75));
  network_policy(network, features)(start, by_network);
  prior_policy(features)(start, by_prior);
  uniform_policy()(start, by_chance);
  CHECK(by_network == by_chance);
  CHECK(by_prior == by_chance);
}

TEST_CASE("priors and scores of a network add up") {
  std::vector<KernelTree> trees{toy::three_ways()};
  const ByName features(trees);
  ActionNetwork network = make_network(features.shape(), 2);
  const NetworkLayers layers(network.shape);
  for (std::size_t i = 0; i < layers.score.size(); ++i) network.weights[layers.score.first + i] *= 100;
  const TreeEnvironment start(trees[0], {});
  EncodedState encoded;
  NetworkActivations seen;
  features(start, encoded);
  network.evaluate(encoded.state, encoded.actions, seen);
  REQUIRE(std::abs(seen.scores[0] - seen.scores[1]) > 0.05);
  const TreeEncoder against = [&](const TreeEnvironment& environment, EncodedState& written) {
    features(environment, written);
    written.priors = {-seen.scores[0], -seen.scores[1]};
  };
  std::vector<double> probabilities;
  network_policy(network, against)(start, probabilities);
  CHECK(probabilities[0] == Approx(0.5));
  CHECK(std::accumulate(probabilities.begin(), probabilities.end(), 0.0) == Approx(1));
}

TEST_CASE("as many priors as choices, or none") {
  std::vector<KernelTree> trees{toy::three_ways()};
  const ByName features(trees);
  const TreeEncoder wrong = [&](const TreeEnvironment& environment, EncodedState& encoded) {
    features(environment, encoded);
    encoded.priors.assign(1, 0);
  };
  CHECK_THROWS_WITH_AS((void)mean_return(make_network(features.shape(), 1), trees[0], {}, wrong, 1, true),
                       doctest::Contains("1 priors for 2 choices"), Error);
}

TEST_CASE("mean returns: greedy takes the likeliest choice, else choices are drawn, by seed") {
  KernelTree tree = toy::three_ways();
  const TreeOptions once{.reward = {.step_limit = 1}};
  const TreePolicy mostly_b = [](const TreeEnvironment&, std::vector<double>& probabilities) {
    probabilities = {0.4, 0.6};
  };
  const double b = 0.03 + 0.2630344, a = (2 * 1.03 - 0.1) / 3;
  CHECK(mean_return(mostly_b, tree, once, 10, true) == Approx(b));
  CHECK(mean_return(mostly_b, tree, once, 4000, false) == Approx(0.4 * a + 0.6 * b).epsilon(0.05));
  CHECK(mean_return(mostly_b, tree, once, 50, false, 1) == mean_return(mostly_b, tree, once, 50, false, 1));
  CHECK(mean_return(mostly_b, tree, once, 50, false, 1) != mean_return(mostly_b, tree, once, 50, false, 2));
}
