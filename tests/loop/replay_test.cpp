// Whole runs by replay: hand-made steps through the real compiler and judge, and a recorded run once more.

#include <mtmc/actions/replay_file.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/coder/replay.hpp>
#include <mtmc/cpu_evaluator.hpp>
#include <mtmc/loop/journal_replay.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/policy/replay.hpp>

#include <doctest/doctest.h>

#include "toy_game.hpp"

using namespace mtmc;

namespace {

Result replay(const ReplaySequence& sequence, const Task& task, AnyEvaluator evaluator) {
  LoopOptions options;
  options.max_steps = 8;
  options.repairs = 0;
  options.minimum_gain = 0.5; // what is asked here is that every step is taken
  options.action_space = action_space_of(sequence);
  Loop loop{ReplayPolicy{sequence}, ReplayCoder{sequence}, AstRegionFinder{}, std::move(evaluator), options};
  return loop.optimize(task);
}

} // namespace

TEST_CASE("a hand-made sequence runs through compiler, judge and search without a model") {
  const std::string repository = MTMC_REPOSITORY;
  auto task = load_task(repository + "/examples/tasks/cpu/softmax.json");
  task.sizes.front().symbols = {{"M", 256}, {"N", 256}}; // quick
  const auto sequence = load_replay_sequence(repository + "/tests/data/sequences/cpu");
  const auto result = replay(sequence, task, CpuEvaluator{});
  CHECK(result.stop_reason == StopReason::stop_action);
  REQUIRE(result.history.size() == 3);
  CHECK(result.history[0].action_key == "vectorization|softmax/i/j#2");
  CHECK(result.history[0].verdict == Verdict::wrong_result);
  CHECK_FALSE(result.history[0].kept);
  CHECK(result.history[1].action_key == "vectorization|softmax");
  CHECK(result.history[1].verdict == Verdict::correct);
  CHECK(result.history[1].kept);
  CHECK(result.history[2].verdict == Verdict::correct);
  CHECK(result.trajectory[2].parent == sequence.steps[2].parent);
  CHECK(result.trajectory[2].distribution.rationale == "One division a row serves all of its elements.");
  CHECK(result.usage.tokens() == 0);
  CHECK_FALSE(result.error);
}

TEST_CASE("a recorded run is a sequence: it takes the same way again, failures and repairs included") {
  // Runs with one and several samples, with and without repairs.
  for (const std::uint64_t world : {1U, 3U, 9U, 12U}) {
    CAPTURE(world);
    const TemporaryFolder folder;
    toy::Game game{world};
    game.options.beam = 1;
    const auto recorded = game.play(folder.path());
    const auto runs = read_journal(journal_path(recorded.folder));
    REQUIRE(runs.size() == 1);
    const auto sequence = replay_of(runs.front());

    toy::Evaluator evaluator;
    evaluator.seed = world;
    auto options = game.options;
    options.output.clear();
    options.action_space = toy::space();
    Loop loop{ReplayPolicy{sequence}, ReplayCoder{sequence}, toy::Finder{}, evaluator, options};
    const auto again = loop.optimize(toy::task());
    CHECK(again.best == recorded.best);
    CHECK(again.speed_up.value == recorded.speed_up.value);
    REQUIRE(again.history.size() == recorded.history.size());
    for (std::size_t i = 0; i < again.history.size(); ++i) {
      CHECK(again.history[i].action_key == recorded.history[i].action_key);
      CHECK(again.history[i].verdict == recorded.history[i].verdict);
      CHECK(again.history[i].draft_failure == recorded.history[i].draft_failure);
    }
    CHECK(again.usage.cost == 0);
  }
}
