// Trees from journals: kernels by content, times by pairs, what came of actions, and what is left out.

#include <mtmc/train/trajectory.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "../loop/toy_game.hpp"

using namespace mtmc;
using doctest::Approx;

namespace {
/// The journal of a run in the toy world with that seed.
std::string played(std::uint64_t seed, const std::string& folder) {
  toy::Game game{seed};
  return journal_path(game.play(folder).folder);
}
JournalRun only_run(const std::string& path) { return read_journal(path).front(); }
} // namespace

TEST_CASE("a run becomes a tree whose kernels have the times of the world") {
  const TemporaryFolder folder;
  const std::string path = played(4, folder.path());
  TreeCollector collector;
  collector.add_journal(path);
  REQUIRE(collector.trees().size() == 1);
  const KernelTree& tree = collector.trees().front();
  CHECK(tree.task == "toy");
  CHECK(tree.device == "toy machine");
  CHECK(tree.language == "cpp");
  CHECK(tree.nodes.front().kernel == toy::task().kernel.id());
  CHECK(tree.nodes.front().log2_speed_up == 0);
  CHECK(tree.nodes.size() > 5);

  toy::Evaluator world;
  world.seed = 4;
  const JournalRun run = only_run(path);
  for (const TreeNode& node : tree.nodes) {
    const double truth = -std::log2(world.seconds(run.kernels.at(node.kernel)));
    CHECK(node.log2_speed_up == Approx(truth).epsilon(0.05));
  }
}

TEST_CASE("each judged draft of a finished step is counted on its edge") {
  const TemporaryFolder folder;
  const std::string path = played(5, folder.path());
  TreeCollector collector;
  collector.add_journal(path);
  const KernelTree& tree = collector.trees().front();
  int counted = 0, failed = 0;
  for (const TreeNode& node : tree.nodes)
    for (const TreeEdge& edge : node.edges) {
      CHECK_FALSE(node.legal.empty());
      counted += edge.count();
      for (const TreeOutcome& one : edge.outcomes) {
        CHECK((one.child >= 0) == (one.outcome == StepStage::correct));
        if (one.child < 0) failed += one.count;
      }
    }
  CHECK(counted == static_cast<int>(collector.sources().steps));
  CHECK(failed > 0);
  CHECK(coverage_of(tree).share() > 0);
  CHECK(coverage_of(tree).share() <= 1);
}

TEST_CASE("runs of one task, device and evaluator share a tree; a run counts once") {
  const TemporaryFolder first, second, other;
  TreeCollector collector;
  collector.add_journal(played(4, first.path()));
  const std::size_t kernels = collector.trees().front().nodes.size();
  collector.add_journal(played(4, first.path() + "/again"));
  CHECK(collector.trees().size() == 1);
  CHECK(collector.trees().front().nodes.size() == kernels); // the same kernels
  CHECK(collector.sources().runs == 2);
  const std::string path = played(5, other.path()); // another evaluator
  collector.add_journal(path);
  collector.add_journal(path);
  CHECK(collector.trees().size() == 2);
  CHECK(collector.sources().runs == 3);
}

TEST_CASE("an evaluator that remembers measures a kernel once, however many runs it is asked in") {
  const TemporaryFolder folder;
  toy::Evaluator world;
  RememberingEvaluator memory{std::ref(world)};
  TreeCollector collector;
  std::vector<double> deviations;
  for (const char* run : {"/one", "/two", "/three"}) {
    LoopOptions options{.selection = Selection::sample, .seed = 3, .minimum_gain = 0.5};
    options.action_space = toy::space();
    options.output = folder.path() + run;
    Loop loop{toy::Policy{}, toy::Coder{}, toy::Finder{}, memory, options};
    collector.add_journal(journal_path(loop.optimize(toy::task()).folder));
    deviations.push_back(collector.trees().front().nodes.back().deviation);
  }
  CHECK(collector.sources().runs == 3);
  CHECK(deviations.front() > 0);
  CHECK(deviations.back() == deviations.front());
}

TEST_CASE("a damaged line is left out and named, the other runs stay") {
  const TemporaryFolder folder;
  const std::string path = played(4, folder.path());
  const std::string whole = toy::read(path);
  const std::size_t second = whole.find('\n') + 1;
  toy::write(path, whole.substr(0, second) + "{\"record\": 7}\n" + whole.substr(second));
  TreeCollector collector;
  collector.add_journal(path);
  REQUIRE(collector.sources().left_out.size() == 1);
  CHECK(collector.sources().left_out.front().find("line 2") != std::string::npos);
  CHECK(collector.trees().size() == 1);
  CHECK_THROWS_AS(TreeCollector{}.add_journal(folder.path() + "/none"), Error);
}

TEST_CASE("a speed-up that is no number adds nothing, and is named") {
  const TemporaryFolder folder;
  JournalRun run = only_run(played(4, folder.path()));
  TreeCollector whole, spoilt;
  whole.add(run);
  int broken = 0;
  for (auto& [key, record] : run.evaluations)
    if (record.evaluation.speed_up && broken < 2) {
      (broken == 0 ? record.evaluation.speed_up->value : record.evaluation.speed_up->high) =
          std::numeric_limits<double>::infinity();
      ++broken;
    }
  REQUIRE(broken == 2);
  spoilt.add(run);
  CHECK(whole.sources().left_out.empty());
  REQUIRE(!spoilt.sources().left_out.empty());
  CHECK(spoilt.sources().left_out.front().find("no number") != std::string::npos);
  for (const TreeNode& node : spoilt.trees().front().nodes) CHECK(std::isfinite(node.log2_speed_up));
}

TEST_CASE("kernels that were searched from have their features, and those of each legal action") {
  const TemporaryFolder folder;
  TreeCollector collector;
  const std::string path = played(4, folder.path());
  collector.add_journal(path);
  const JournalRun run = only_run(path);
  int featured = 0;
  for (const TreeNode& node : collector.trees().front().nodes) {
    if (node.legal.empty()) continue;
    ++featured;
    CHECK(node.features.size() == kernel_feature_count());
    REQUIRE(node.action_features.size() == node.legal.size());
    for (const std::string& action : node.legal)
      CHECK(node.features_of(action).size() == action_feature_count());
    CHECK(node.features_of("nobody offers this").empty());
  }
  CHECK(featured > 1);
  const DecisionRecord& first = run.decisions.front();
  const auto expected = kernel_features(observation_of(run, first), first.legal);
  const TreeNode& start = collector.trees().front().nodes.front();
  for (std::size_t i = 0; i < expected.kernel.size(); ++i)
    CHECK(start.features[i] == Approx(expected.kernel[i]).epsilon(1e-3));
}
