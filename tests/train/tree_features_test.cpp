// What a network sees of an environment: recorded features, those of the episode, and the rules as priors.

#include <mtmc/train/trajectory.hpp>
#include <mtmc/train/tree_features.hpp>

#include <doctest/doctest.h>

#include "../loop/toy_game.hpp"

using namespace mtmc;
using doctest::Approx;

namespace {
DataSet played() {
  const TemporaryFolder folder;
  toy::Game game{4};
  TreeCollector collector;
  collector.add_journal(journal_path(game.play(folder.path()).folder));
  return make_data_set(collector);
}
} // namespace

TEST_CASE("an encoder writes features for the state and each choice, stop included") {
  DataSet set = played();
  keep_featured(set);
  TreeEnvironment environment(set.trees.front(), {});
  EncodedState encoded;
  const NetworkShape shape = feature_shape();
  const auto encode = feature_encoder(2);
  for (bool first = true; !environment.ended(); first = false) {
    encode(environment, encoded);
    CHECK(encoded.state.size() == shape.state);
    CHECK(encoded.actions.size() == environment.choices() * shape.action);
    REQUIRE(encoded.priors.size() == environment.choices());
    CHECK((environment.choices() > environment.actions().size()) == !first);
    const auto features =
        environment.tree().nodes[static_cast<std::size_t>(environment.state().node)].features_of(
            *environment.actions()[0].action);
    CHECK(encoded.priors[0] == Approx(2 * rules_score(features)));
    environment.step(0);
  }
}

TEST_CASE("data without features of this version is refused, single kernels without them are left out") {
  DataSet set = played();
  set.trees.front().nodes.front().features.pop_back();
  CHECK_THROWS_AS(keep_featured(set), Error); // the start kernel: nothing is left
  set = played();
  ++set.card.features;
  CHECK_THROWS_AS(keep_featured(set), Error);
  set = played();
  for (TreeNode& node : set.trees.front().nodes)
    if (node.kernel != set.trees.front().nodes.front().kernel) node.action_features.clear();
  keep_featured(set);
  for (std::size_t i = 1; i < set.trees.front().nodes.size(); ++i)
    CHECK(set.trees.front().nodes[i].edges.empty());
  CHECK_FALSE(set.trees.front().nodes.front().edges.empty());
  set.trees.push_back(set.trees.front());
  set.trees.back().nodes.front().action_features.clear();
  keep_featured(set);
  CHECK(set.trees.size() == 1);
  CHECK(set.card.trees == 1);
}
