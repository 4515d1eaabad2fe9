// Episodes in a tree: what is on offer, what comes of it, when they end.

#include <mtmc/train/tree_environment.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Approx;

namespace {
/// The number of an action among the choices.
std::size_t number_of(const TreeEnvironment& environment, const std::string& action) {
  for (std::size_t i = 0; i < environment.actions().size(); ++i)
    if (*environment.actions()[i].action == action) return i;
  return environment.choices();
}
} // namespace

TEST_CASE("what was tried is on offer; stopping is from the second step on") {
  KernelTree tree = toy::three_ways();
  TreeEnvironment environment(tree, {});
  REQUIRE(environment.actions().size() == 2);
  CHECK(*environment.actions()[0].action == "a");
  CHECK(environment.choices() == 2);
  const TreeStep step = environment.step(number_of(environment, "b"));
  CHECK(step.reward == Approx(0.03 + 0.2630344));
  CHECK_FALSE(step.ended);
  CHECK(*environment.actions()[0].action == "c");
  CHECK(environment.choices() == 2); // and to stop
  CHECK(environment.step(1).ended);
  CHECK(environment.ended());
  CHECK(environment.choices() == 0);
}

TEST_CASE("outcomes come as often as they were seen") {
  KernelTree tree = toy::three_ways();
  TreeEnvironment environment(tree, {.seed = 7});
  int right = 0;
  constexpr int episodes = 3000;
  for (int i = 0; i < episodes; ++i) {
    environment.reset();
    if (environment.step(0).outcome == StepStage::correct) ++right;
  }
  CHECK(right > episodes * 2 / 3 - 100);
  CHECK(right < episodes * 2 / 3 + 100);
}

TEST_CASE("the best or the first outcome, where that is asked for") {
  KernelTree tree = toy::three_ways();
  tree.nodes[0].edges[0].outcomes = {{StepStage::wrong, -1, 5}, {StepStage::correct, 1, 1}};
  TreeEnvironment best(tree, {.children = TreeChildren::best});
  CHECK(best.step(0).outcome == StepStage::correct);
  TreeEnvironment first(tree, {.children = TreeChildren::first});
  CHECK(first.step(0).outcome == StepStage::wrong);
}

TEST_CASE("a failed step leaves the kernel as it was, or ends the episode") {
  KernelTree tree = toy::three_ways();
  tree.nodes[0].edges[0].outcomes = {{StepStage::wrong, -1, 1}};
  TreeEnvironment going_on(tree, {});
  CHECK_FALSE(going_on.step(0).ended);
  CHECK(going_on.state().node == 0);
  CHECK(going_on.state().reward.step == 1);
  TreeEnvironment ending(tree, {.failure = TreeFailure::terminate});
  CHECK(ending.step(0).ended);
}

TEST_CASE("an episode ends after its steps, and where nothing is left to do") {
  KernelTree tree = toy::three_ways();
  tree.nodes[0].edges[0].outcomes = {{StepStage::wrong, -1, 1}};
  TreeEnvironment environment(tree, {.reward = {.step_limit = 3}});
  CHECK_FALSE(environment.step(0).ended);
  CHECK_FALSE(environment.step(0).ended);
  CHECK(environment.step(0).ended);
  KernelTree leaf;
  leaf.nodes = {{"start"}};
  CHECK(TreeEnvironment(leaf, {}).ended());
}

TEST_CASE("actions that were never tried are left out, do not compile, or are carried out and remembered") {
  KernelTree tree = toy::three_ways();
  CHECK(number_of(TreeEnvironment(tree, {}), "d") == 2); // not there
  TreeEnvironment penalising(tree, {.unknown = UnknownActions::penalise});
  const std::size_t d = number_of(penalising, "d");
  REQUIRE(d == 2);
  CHECK(penalising.step(d).reward == Approx(-0.1));

  int asked = 0;
  TreeOptions options{.unknown = UnknownActions::live};
  options.live = [&](KernelTree& growing, int node, const std::string& action) {
    ++asked;
    CHECK(node == 0);
    CHECK(action == "d");
    growing.nodes.push_back({"new", 2});
    return TreeOutcome{StepStage::correct, static_cast<int>(growing.nodes.size()) - 1};
  };
  TreeEnvironment living(tree, options);
  CHECK(living.step(number_of(living, "d")).reward == Approx(2.03));
  CHECK(living.state().node == 4);
  living.reset();
  CHECK(living.step(number_of(living, "d")).reward == Approx(2.03));
  CHECK(asked == 1);
  CHECK(tree.nodes[0].edge("d")->count() == 1);
}

TEST_CASE("environments on one tree see what each other's steps make it grow by") {
  KernelTree tree = toy::three_ways();
  int asked = 0;
  TreeOptions options{.unknown = UnknownActions::live};
  options.live = [&](KernelTree& growing, int, const std::string&) {
    ++asked;
    growing.nodes.push_back({"new", 2});
    return TreeOutcome{StepStage::correct, static_cast<int>(growing.nodes.size()) - 1};
  };
  TreeEnvironment first(tree, options), second(tree, options);
  const std::size_t of_second = number_of(second, "d");
  CHECK(first.step(number_of(first, "d")).reward == Approx(2.03));
  CHECK(*second.actions()[of_second].action == "d"); // a choice stays what it was
  CHECK(second.step(of_second).reward == Approx(2.03));
  CHECK(asked == 1);
  CHECK(tree.nodes[0].edges.size() == 3);
}

TEST_CASE("one seed, one course") {
  KernelTree tree = toy::random_tree(3, 60);
  const auto course = [&](std::uint64_t seed) {
    TreeEnvironment environment(tree, {.seed = seed});
    PhiloxEngine player{9};
    std::vector<double> rewards;
    for (int i = 0; i < 200; ++i) {
      if (environment.ended()) environment.reset();
      const auto choice =
          static_cast<std::size_t>(player.uniform() * static_cast<double>(environment.choices()));
      rewards.push_back(environment.step(choice).reward);
    }
    return rewards;
  };
  CHECK(course(1) == course(1));
  CHECK(course(1) != course(2));
}

TEST_CASE("a copy made in the middle of an episode goes on by itself, also when the first one is gone") {
  KernelTree tree = toy::three_ways();
  for (const auto unknown : {UnknownActions::mask, UnknownActions::live}) {
    auto first = std::make_unique<TreeEnvironment>(
        tree, TreeOptions{.children = TreeChildren::first, .unknown = unknown});
    first->step(number_of(*first, "b"));
    TreeEnvironment copy(*first);
    first->reset();
    first.reset();
    REQUIRE(copy.past().size() == 1);
    CHECK(copy.past()[0].action == "b");
    CHECK(copy.state().node == 2);
    copy.step(number_of(copy, "c"));
    CHECK(copy.past()[1].action == "c");
  }
}

TEST_CASE("with a least gain, an episode goes on from what is faster, and only from that") {
  KernelTree tree = toy::three_ways();
  TreeEnvironment environment(tree, {.children = TreeChildren::best, .minimum_gain = 1.5});
  TreeStep step = environment.step(number_of(environment, "b")); // 1.2 times
  CHECK_FALSE(step.kept);
  CHECK(step.log2_gain == Approx(0.2630344));
  CHECK(environment.state().node == 0);
  CHECK(environment.state().best == 2); // it counts as the result all the same
  CHECK(environment.state().reward.previous == 0);
  step = environment.step(number_of(environment, "a")); // twice
  CHECK(step.kept);
  CHECK(environment.state().node == 1);
}

TEST_CASE(
    "where actions are offered once, what was tried on a kernel is gone there, until the next episode") {
  KernelTree tree = toy::three_ways();
  TreeEnvironment environment(tree, {.children = TreeChildren::best, .minimum_gain = 1.5, .once = true});
  environment.step(number_of(environment, "b"));
  REQUIRE(environment.actions().size() == 1);
  CHECK(*environment.actions()[0].action == "a");
  environment.reset();
  CHECK(environment.actions().size() == 2);
}

TEST_CASE("an environment tells the way that its episode took") {
  KernelTree tree = toy::three_ways();
  TreeEnvironment environment(tree, {.children = TreeChildren::first});
  CHECK(environment.past().empty());
  environment.step(number_of(environment, "b"));
  environment.step(number_of(environment, "c"));
  REQUIRE(environment.past().size() == 2);
  CHECK(environment.past()[0].action == "b");
  CHECK(environment.past()[0].kept);
  CHECK(environment.past()[1].action == "c");
  CHECK(environment.past()[1].correct);
  CHECK(environment.past()[1].log2_gain == Approx(3 - 0.2630344));
  environment.reset();
  CHECK(environment.past().empty());
}
