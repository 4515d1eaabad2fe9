// Proximal policy optimisation on fixed trees: near the best that can be done, the same bits for the same
// seed.

#include <mtmc/train/exact_values.hpp>
#include <mtmc/train/ppo.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Approx;

namespace {
/// Features of trees whose every kernel and every action of it is known by name.
class ByName {
public:
  explicit ByName(const std::vector<KernelTree>& trees) {
    for (const KernelTree& tree : trees)
      for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        nodes_.emplace(name(tree, i), nodes_.size());
        for (const TreeEdge& edge : tree.nodes[i].edges)
          actions_.emplace(name(tree, i) + edge.action, actions_.size());
      }
  }
  [[nodiscard]] NetworkShape shape() const { return {nodes_.size() + 2, actions_.size() + 1, 32}; }
  void operator()(const TreeEnvironment& environment, EncodedState& encoded) const {
    const TreeState& state = environment.state();
    const std::string here = name(environment.tree(), static_cast<std::size_t>(state.node));
    encoded.state.assign(nodes_.size() + 2, 0);
    encoded.state[nodes_.at(here)] = 1;
    encoded.state[nodes_.size()] = state.reward.step / 8.0;
    encoded.state[nodes_.size() + 1] = state.reward.best - state.reward.previous;
    const std::size_t each = actions_.size() + 1;
    encoded.actions.assign(environment.choices() * each, 0);
    for (std::size_t k = 0; k < environment.choices(); ++k) {
      const bool stop = k == environment.actions().size();
      encoded.actions[k * each + (stop ? each - 1 : actions_.at(here + *environment.actions()[k].action))] =
          1;
    }
  }

private:
  [[nodiscard]] static std::string name(const KernelTree& tree, std::size_t node) {
    return tree.task + ' ' + tree.nodes[node].kernel + ' ';
  }
  std::map<std::string, std::size_t> nodes_{}, actions_{};
};

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

TEST_CASE("trees in which nothing can be done teach nothing") {
  std::vector<KernelTree> trees(2);
  for (KernelTree& tree : trees) tree.nodes = {{"start"}};
  const PpoResult result = train_ppo(trees, {}, [](const TreeEnvironment&, EncodedState&) {}, {1, 1, 4}, {});
  CHECK(result.progress.empty());
}
