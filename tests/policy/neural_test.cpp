// The learnt policy in use: what its scores, its card and the policy beneath it make of an observation.

#include <mtmc/policy/neural.hpp>
#include <mtmc/policy/random.hpp>
#include <mtmc/policy/rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "observations.hpp"

using namespace mtmc;
using doctest::Approx;
using observed::action;

namespace {

/// A network that likes actions by one of their features alone.
PolicyWeights that_likes(const std::string& feature, double weight, double prior_weight = 1) {
  PolicyWeights weights;
  weights.card = {.features = feature_version,
                  .languages = {"cpp"},
                  .devices = {"cpu"},
                  .optimizations = {"tiling", "vectorization"},
                  .prior_weight = prior_weight};
  auto& network = weights.network;
  network.shape = {state_feature_names().size(), action_feature_names().size(), 2};
  const NetworkLayers layers(network.shape);
  network.weights.assign(layers.size(), 0);
  const auto& names = action_feature_names();
  const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), feature) - names.begin());
  REQUIRE(place < names.size());
  network.weights[layers.join.input(place)] = 1;
  network.weights[layers.score.input(0)] = weight;
  return weights;
}

Observation on_cpu() {
  auto seen = observed::with_seconds(1e-3);
  seen.device.kind = "cpu";
  seen.kernel = {languages::cpp, "void f() {}", {}};
  seen.structure.regions = {observed::loop("f/i"), observed::loop("f/j")};
  seen.structure.flops = 2e9;
  return seen;
}

const std::vector<Action> legal{action("tiling", "f/i"), action("vectorization", "f/j"), Action::stop()};

/// A policy that gives one probability, whatever is legal.
struct Forgetful {
  [[nodiscard]] static ActionDistribution distribution(const Observation&, std::span<const Action>,
                                                       const std::stop_token&) {
    return {.probabilities = {1}};
  }
  [[nodiscard]] static std::string identity() { return "forgetful"; }
};

std::string favourite(const ActionDistribution& answer, const std::vector<Action>& actions = legal) {
  const auto& all = answer.probabilities;
  return actions[static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin())].key();
}

} // namespace

TEST_CASE("learnt policy: a network of zeros over the rules chooses as the rules do") {
  const auto seen = on_cpu();
  const auto rules = RulesPolicy{}.distribution(seen, legal, {});
  const auto learnt = NeuralPolicy{that_likes("stop", 0)}.distribution(seen, legal, {});
  for (std::size_t i = 0; i < legal.size(); ++i)
    CHECK(learnt.probabilities[i] == Approx(std::max(rules.probabilities[i], 1e-4)).epsilon(1e-3));
  CHECK(learnt.exact);
  CHECK(learnt.value == 0);
}

TEST_CASE("learnt policy: scores move probabilities, and the rationale names the features that did") {
  const auto answer = NeuralPolicy{that_likes("type tiling", 12)}.distribution(on_cpu(), legal, {});
  CHECK(favourite(answer) == "tiling|f/i");
  CHECK(std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0) == Approx(1));
  CHECK(answer.rationale.find("type tiling +12.00") != std::string::npos);
  CHECK(answer.rationale.find("the rules preferred") != std::string::npos);
}

TEST_CASE("learnt policy: on other languages and devices it answers as the rules do, and says so") {
  auto seen = on_cpu();
  seen.kernel.language = languages::cuda;
  NeuralPolicy policy{that_likes("type tiling", 12)};
  const auto answer = policy.distribution(seen, legal, {});
  CHECK(answer.probabilities == RulesPolicy{}.distribution(seen, legal, {}).probabilities);
  CHECK(answer.rationale.starts_with("the learnt policy is not for cuda on a cpu: "));
  seen = on_cpu();
  seen.device.kind = "gpu";
  CHECK(policy.distribution(seen, legal, {}).rationale.find("cpp on a gpu") != std::string::npos);
}

TEST_CASE("learnt policy: what it has not learnt stands to the likeliest of the rest as by the rules") {
  const std::vector<Action> wider{action("tiling", "f/i"), action("a host's own", "f/i"), Action::stop()};
  const auto seen = on_cpu();
  const auto odds = [](const ActionDistribution& answer) {
    return answer.probabilities[1] / std::max(answer.probabilities[0], answer.probabilities[2]);
  };
  const double by_rules = odds(RulesPolicy{}.distribution(seen, wider, {}));
  for (const double prior_weight : {0.0, 1.0})
    for (const auto& liked : {"type tiling", "stop"}) {
      CAPTURE(prior_weight);
      CAPTURE(liked);
      const auto answer = NeuralPolicy{that_likes(liked, 12, prior_weight)}.distribution(seen, wider, {});
      CHECK(odds(answer) == Approx(by_rules));
      CHECK((answer.probabilities[0] > answer.probabilities[2]) ==
            (std::string_view{liked} == "type tiling"));
      CHECK(std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0) == Approx(1));
    }
}

TEST_CASE("learnt policy: of no actions it says nothing") {
  CHECK(NeuralPolicy{that_likes("stop", 1)}.distribution(on_cpu(), {}, {}).probabilities.empty());
}

TEST_CASE("learnt policy: over another policy it is a residual head") {
  const auto seen = on_cpu();
  NeuralPolicy over_random{that_likes("stop", 0), RandomPolicy{0.2}};
  const auto answer = over_random.distribution(seen, legal, {});
  CHECK(answer.probabilities[0] == Approx(0.4));
  CHECK(answer.probabilities[2] == Approx(0.2));
  CHECK(over_random.identity() != NeuralPolicy{that_likes("stop", 0)}.identity());
  CHECK(over_random.identity() != NeuralPolicy{that_likes("stop", 1), RandomPolicy{0.2}}.identity());
}

TEST_CASE("learnt policy: another policy that forgets an action is a broken part, named with its counts") {
  const auto seen = on_cpu();
  NeuralPolicy over_forgetful{that_likes("stop", 0), Forgetful{}};
  CHECK_THROWS_WITH_AS((void)over_forgetful.distribution(seen, legal, {}),
                       doctest::Contains("1 probabilities for 3 actions"), Error);
}
