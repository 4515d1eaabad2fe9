// Data sets of shards and machines become one: trees by task, device and evaluator, times by how well they
// are known.

#include <mtmc/train/merge_data_sets.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Approx;

namespace {
DataSet with(std::vector<KernelTree> trees) {
  DataSet set;
  set.trees = std::move(trees);
  set.card.sequences = 10;
  set.card.hours = 0.5;
  detail::count_trees(set.trees, set.card);
  return set;
}
KernelTree of_task(const std::string& name) {
  KernelTree tree = toy::three_ways();
  tree.task = tree.task_digest = name;
  return tree;
}
} // namespace

TEST_CASE("trees of other tasks or devices stay apart; the card counts all") {
  KernelTree elsewhere = of_task("a");
  elsewhere.device = elsewhere.device_digest = "other";
  const DataSet merged = merge_data_sets(std::vector{with({of_task("a")}), with({of_task("b"), elsewhere})});
  CHECK(merged.trees.size() == 3);
  CHECK(merged.card.trees == 3);
  CHECK(merged.card.tasks == 2);
  CHECK(merged.card.sequences == 20);
  CHECK(merged.card.hours == 1);
  CHECK(merged.card.devices.size() == 2);
}

TEST_CASE("a tree merged with itself has each outcome twice and nothing new") {
  const KernelTree tree = of_task("a");
  const DataSet merged = merge_data_sets(std::vector{with({tree}), with({tree})});
  REQUIRE(merged.trees.size() == 1);
  const KernelTree& both = merged.trees.front();
  REQUIRE(both.nodes.size() == tree.nodes.size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    CHECK(both.nodes[i].kernel == tree.nodes[i].kernel);
    CHECK(both.nodes[i].log2_speed_up == Approx(tree.nodes[i].log2_speed_up));
    CHECK(both.nodes[i].legal == tree.nodes[i].legal);
    REQUIRE(both.nodes[i].edges.size() == tree.nodes[i].edges.size());
    for (std::size_t k = 0; k < tree.nodes[i].edges.size(); ++k)
      CHECK(both.nodes[i].edges[k].count() == 2 * tree.nodes[i].edges[k].count());
  }
}

TEST_CASE("kernels that only one of two trees knows keep their edges, whatever their numbers") {
  KernelTree small = of_task("a"); // start --b--> little, in another order
  small.nodes = {small.nodes[0], small.nodes[2]};
  small.nodes[0].edges = {{"b", {{StepStage::correct, 1, 1}}}};
  small.nodes[1].edges.clear();
  const DataSet merged = merge_data_sets(std::vector{with({small}), with({of_task("a")})});
  const KernelTree& tree = merged.trees.front();
  CHECK(tree.nodes.size() == 4);
  const int little = tree.find("little"), eight = tree.find("eight");
  CHECK(tree.nodes[0].edge("b")->outcomes == std::vector<TreeOutcome>{{StepStage::correct, little, 2}});
  CHECK(tree.nodes[static_cast<std::size_t>(little)].edge("c")->outcomes.front().child == eight);
}

TEST_CASE("of two times the better known one counts for more, and together they are better known") {
  KernelTree first = of_task("a"), second = of_task("a");
  first.nodes[1].log2_speed_up = 1;
  first.nodes[1].deviation = 0.01;
  second.nodes[1].log2_speed_up = 2;
  second.nodes[1].deviation = 0.03;
  const DataSet merged = merge_data_sets(std::vector{with({first}), with({second})});
  CHECK(merged.trees.front().nodes[1].log2_speed_up == Approx(1.1));
  CHECK(merged.trees.front().nodes[1].deviation < 0.01);
}

TEST_CASE("features of actions go along; data with features of different versions is refused") {
  KernelTree first = of_task("a"), second = of_task("a");
  second.nodes[0].features = {1};
  second.nodes[0].legal = {"b", "e"};
  second.nodes[0].action_features = {{2}, {3}};
  const DataSet merged = merge_data_sets(std::vector{with({first}), with({second})});
  const TreeNode& start = merged.trees.front().nodes[0];
  CHECK(start.features == std::vector<double>{1});
  CHECK(start.features_of("b").front() == 2);
  CHECK(start.features_of("e").front() == 3);
  CHECK(start.features_of("a").empty());
  DataSet newer = with({of_task("b")});
  newer.card.features = 99;
  CHECK_THROWS_AS((void)merge_data_sets(std::vector{with({first}), newer}), Error);
  CHECK_THROWS_AS((void)merge_data_sets({}), Error);
}
