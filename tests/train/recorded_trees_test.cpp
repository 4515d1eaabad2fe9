// Training on real trees: what a policy makes of recorded searches of 16 C++ and 9 CUDA tasks, by features.

#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/train.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;

namespace {

DataSet recorded() {
  DataSet set = read_data_set(std::string(MTMC_REPOSITORY) + "/tests/data/trees/recorded.jsonl");
  keep_featured(set);
  return set;
}
/// As the loop searches: on from what is faster, and nothing twice.
const TreeOptions rules{.minimum_gain = 1.02, .once = true};
constexpr TreeScoreOptions played{.episodes = 20};

} // namespace

TEST_CASE("recorded trees: PPO over the rules reaches 95 % of the best return, rules and chance less") {
  DataSet set = recorded();
  const auto encode = feature_encoder(1);
  const auto result = require_trained(
      train_ppo(set.trees, rules, encode, feature_shape(),
                {.environments = 16, .steps = 40 * 1024, .discount = 1, .policy_rate = 1e-3, .seed = 1}));
  const double learnt =
      ratios_of(score_trees(network_policy(result.network, encode), set.trees, rules, played)).greedy;
  const double by_rules = ratios_of(score_trees(prior_policy(encode), set.trees, rules, played)).greedy;
  const double by_chance = ratios_of(score_trees(uniform_policy(), set.trees, rules, played)).sampled;
  CAPTURE(learnt);
  CAPTURE(by_rules);
  CAPTURE(by_chance);
  CHECK(learnt >= 0.95);
  CHECK(learnt > by_rules);
  CHECK(by_rules > by_chance);
}

TEST_CASE("recorded trees: the weights that come with the library choose better than chance") {
  DataSet set = recorded();
  const auto& weights = built_in_policy_weights();
  const auto encode = feature_encoder(weights.card.prior_weight);
  const double built_in =
      ratios_of(score_trees(network_policy(weights.network, encode), set.trees, rules, played)).greedy;
  const double by_chance = ratios_of(score_trees(uniform_policy(), set.trees, rules, played)).sampled;
  CAPTURE(built_in);
  CAPTURE(by_chance);
  CHECK(built_in > by_chance);
}
