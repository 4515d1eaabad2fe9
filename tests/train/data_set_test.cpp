// Data sets: the card, the file, what goes wrong with it, and the split by task.

#include <mtmc/train/data_set.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "../loop/toy_game.hpp"
#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Contains;

namespace {
DataSet collected(const std::string& folder, const DataSetOptions& options = {}) {
  TreeCollector collector;
  for (const std::uint64_t seed : {4U, 5U}) {
    toy::Game game{seed};
    collector.add_journal(journal_path(game.play(folder + '/' + std::to_string(seed)).folder));
  }
  return make_data_set(collector, options);
}
DataSet of_toys(int trees) {
  DataSet set;
  for (int i = 0; i < trees; ++i) {
    set.trees.push_back(toy::random_tree(static_cast<std::uint64_t>(i) + 1, 12));
    set.trees.back().task_digest = set.trees.back().task;
  }
  detail::count_trees(set.trees, set.card);
  return set;
}
} // namespace

TEST_CASE("the card says what the data are, and what they cannot teach") {
  const TemporaryFolder folder;
  const DataSet set = collected(folder.path(), {.licence = "MIT"});
  CHECK(set.card.runs == 2);
  CHECK(set.card.tasks == 1);
  CHECK(set.card.trees == 2); // two evaluators
  CHECK(set.card.devices == std::vector<std::string>{"toy machine"});
  CHECK(set.card.policies.size() == 2);
  CHECK(set.card.kernels == static_cast<std::int64_t>(set.trees[0].nodes.size() + set.trees[1].nodes.size()));
  CHECK(set.card.sequences == 2); // a run is one, from its first step to its last
  CHECK(set.card.coverage > 0);
  CHECK(set.card.licence == "MIT");
  REQUIRE(set.card.limits.size() >= 2);
  CHECK(set.card.limits[0] == "Only toy machine was measured on");
}

TEST_CASE("a data set is read as it was written") {
  const TemporaryFolder folder;
  const DataSet set = collected(folder.path());
  write_data_set(set, folder.path() + "/data.jsonl");
  CHECK(read_data_set(folder.path() + "/data.jsonl") == set);
}

TEST_CASE("tasks are left out by name or by their start kernel") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS((void)collected(folder.path(), {.excluded_tasks = {"toy"}}),
                       Contains("mtmc.train.001"), Error);
  CHECK_THROWS_AS(
      (void)collected(folder.path() + "/2",
                      {.excluded_code = {sha256_hex(normalised_code(toy::task().kernel.source))}}),
      Error);
}

TEST_CASE("with an excluded task go those that have its start kernel under another name") {
  DataSet set = of_toys(4);
  set.trees[1].code = set.trees[2].code = "the same";
  const auto left = without_excluded(set, {.excluded_tasks = {set.trees[1].task}});
  REQUIRE(left.trees.size() == 2);
  CHECK(left.trees[0] == set.trees[0]);
  CHECK(left.trees[1] == set.trees[3]);
  CHECK(left.card.excluded.size() == 2);
}

TEST_CASE("a file that is damaged, cut short, empty or of a newer form is refused with its place") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/data.jsonl";
  write_data_set(of_toys(3), path);
  const std::string whole = toy::read(path);
  const auto refused = [&](const std::string& text, const char* reason) {
    toy::write(path, text);
    CHECK_THROWS_WITH_AS((void)read_data_set(path), Contains(reason), Error);
  };
  const std::size_t second = whole.find('\n') + 1;
  refused(whole.substr(0, second) + "{\"task\": 3}\n", "line 2");
  refused(whole.substr(0, whole.find('\n', second) + 1), "1 trees, its card says 3");
  refused(whole.substr(0, whole.size() / 2), "damaged");
  refused("", "0 trees");
  refused("{\"schema\": 9, \"trees\": 1}\n", "has form 9");
}

TEST_CASE("a tree that cannot be played is refused when it is read, with what is wrong") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/data.jsonl";
  const auto refused = [&](const char* reason, const auto& spoil) {
    DataSet set = of_toys(2);
    TreeNode* node = nullptr;
    for (TreeNode& one : set.trees[1].nodes)
      if (node == nullptr && !one.edges.empty() && one.edges[0].outcomes[0].child >= 0) node = &one;
    REQUIRE(node != nullptr);
    spoil(set.trees[1], *node);
    write_data_set(set, path);
    CAPTURE(reason);
    CHECK_THROWS_WITH_AS((void)read_data_set(path), Contains(reason), Error);
    CHECK_THROWS_WITH_AS((void)read_data_set(path), Contains("line 3"), Error);
  };
  const auto outcome = [](TreeNode& node) -> TreeOutcome& { return node.edges[0].outcomes[0]; };
  refused("leads to no kernel", [&](KernelTree&, TreeNode& node) { outcome(node).child = 99999; });
  refused("leads to no kernel", [&](KernelTree&, TreeNode& node) { outcome(node).child = -1; });
  refused("leads to no kernel",
          [&](KernelTree&, TreeNode& node) { outcome(node).outcome = StepStage::not_compiled; });
  refused("never seen", [&](KernelTree&, TreeNode& node) { outcome(node).count = -4; });
  refused("too often", [&](KernelTree&, TreeNode& node) {
    outcome(node).count = std::numeric_limits<int>::max();
    node.edges[0].outcomes.push_back({StepStage::wrong});
  });
  refused("no outcome", [&](KernelTree&, TreeNode& node) { node.edges[0].outcomes.clear(); });
  refused("tried twice", [&](KernelTree&, TreeNode& node) { node.edges.push_back(node.edges[0]); });
  refused("twice", [&](KernelTree& tree, TreeNode&) { tree.nodes.push_back(tree.nodes[1]); });
  refused("no number", [&](KernelTree&, TreeNode& node) { node.deviation = -1; });
  refused("over itself", [&](KernelTree& tree, TreeNode&) { tree.nodes[0].log2_speed_up = 1; });
}

TEST_CASE("the same start kernel under two names goes to one side") {
  DataSet set = of_toys(40);
  for (std::size_t i = 0; i < 40; ++i) set.trees[i].code = "code " + std::to_string(i / 2);
  const auto [training, held_out] = split_by_task(set, 0.5, 1);
  CHECK(training.trees.size() > 5);
  CHECK(held_out.trees.size() > 5);
  for (const KernelTree& one : training.trees)
    for (const KernelTree& other : held_out.trees) CHECK(one.code != other.code);
}

TEST_CASE("a split has no task on both sides, and a task goes its way whatever others there are") {
  const auto [training, held_out] = split_by_task(of_toys(60), 0.3, 1);
  CHECK(training.trees.size() + held_out.trees.size() == 60);
  CHECK(held_out.trees.size() > 8);
  CHECK(held_out.trees.size() < 30);
  CHECK(training.card.trees == static_cast<std::int64_t>(training.trees.size()));
  const auto fewer = split_by_task(of_toys(20), 0.3, 1);
  for (const KernelTree& tree : fewer.second.trees)
    CHECK(std::any_of(held_out.trees.begin(), held_out.trees.end(),
                      [&](const KernelTree& other) { return other.task == tree.task; }));
}
