// Trainings that are stopped and go on: the same bits as in one go, and files that are refused.

#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/train/checkpoint.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "toy_features.hpp"
#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Contains;
using toy::ByName;

namespace {
/// Trees, features and a trainer of their own, as after a new start of the program.
struct Training {
  std::vector<KernelTree> trees{toy::random_tree(4, 12), toy::random_tree(5, 12)};
  ByName features{trees};
  /// What was done before is seen as well.
  TreeEncoder encode = [this](const TreeEnvironment& environment, EncodedState& encoded) {
    features(environment, encoded);
    for (const PastStep& step : environment.past())
      for (const char one : step.action) encoded.state.front() += static_cast<double>(one) / 1000;
  };
  PpoTrainer trainer;

  explicit Training(const PpoOptions& options =
                        {.environments = 5, .rollout = 250, .minibatch = 64, .steps = 2000, .seed = 3},
                    const TreeOptions& rules = {})
      : trainer(make_network(features.shape(), options.seed), trees, rules, encode, options) {}
};
} // namespace

TEST_CASE("two thousand steps in one go and with a stop after any update end in the same bits") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint.json";
  Training whole;
  std::vector<PpoProgress> progress;
  while (!whole.trainer.finished()) progress.push_back(whole.trainer.update());
  CHECK(progress.size() == 8);
  for (const std::size_t stop : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{7}}) {
    {
      Training first;
      for (std::size_t i = 0; i < stop; ++i) (void)first.trainer.update();
      write_checkpoint(first.trainer, path);
    }
    Training second;
    restore_checkpoint(second.trainer, path);
    CHECK(second.trainer.steps() == 250 * stop);
    for (std::size_t i = stop; i < 8; ++i) {
      const PpoProgress again = second.trainer.update();
      CHECK(again.mean_return == progress[i].mean_return);
      CHECK(again.explained_variance == progress[i].explained_variance);
    }
    CHECK(second.trainer.finished());
    CHECK(second.trainer.state() == whole.trainer.state());
  }
}

TEST_CASE("episodes stand in their middle between updates, and a file brings back every bit") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint.json";
  Training one, other;
  (void)one.trainer.update();
  bool amid = false;
  for (const PpoEpisode& episode : one.trainer.state().playing) amid = amid || !episode.choices.empty();
  CHECK(amid);
  write_checkpoint(one.trainer, path);
  restore_checkpoint(other.trainer, path);
  CHECK(other.trainer.state() == one.trainer.state());
}

TEST_CASE("a checkpoint of other trees, rules or options is refused, and the trainer stays as it was") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint.json";
  Training one;
  (void)one.trainer.update();
  write_checkpoint(one.trainer, path);
  PpoOptions options = one.trainer.options();
  options.entropy = 0.02;
  Training other_options(options);
  Training other_rules(one.trainer.options(), {.reward = RewardOptions::potential()});
  Training other_gain(one.trainer.options(), {.minimum_gain = 1.02});
  Training offered_once(one.trainer.options(), {.once = true});
  for (Training* other : {&other_options, &other_rules, &other_gain, &offered_once}) {
    const PpoState before = other->trainer.state();
    CHECK_THROWS_WITH_AS(restore_checkpoint(other->trainer, path), Contains("mtmc.train.003"), Error);
    CHECK(other->trainer.state() == before);
  }
  PpoState wrong = one.trainer.state();
  wrong.playing.front().choices.push_back(99);
  const PpoState before = one.trainer.state();
  CHECK_THROWS_WITH_AS(one.trainer.restore(wrong), Contains("another training"), Error);
  wrong = before;
  wrong.weights.front() = std::nan("");
  CHECK_THROWS_WITH_AS(one.trainer.restore(wrong), Contains("another training"), Error);
  CHECK(one.trainer.state() == before);
}

TEST_CASE("a file that is damaged, cut short, of a newer form or missing is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint.json";
  Training one;
  (void)one.trainer.update();
  write_checkpoint(one.trainer, path);
  const std::string whole = read_file(path);
  const auto refused = [&](const std::string& text, const char* reason) {
    write_file_atomic(path, text);
    CHECK_THROWS_WITH_AS(restore_checkpoint(one.trainer, path), Contains(reason), Error);
    CHECK_THROWS_WITH_AS(restore_checkpoint(one.trainer, path), Contains("mtmc.train.003"), Error);
  };
  refused("", "damaged");
  refused("[]", "no checkpoint");
  refused("{\"schema\": \"1\"}", "no checkpoint");
  refused("{\"schema\": 9, \"state\": {}}", "has form 9");
  refused("{\"schema\": 1, \"state\": {}, \"digest\": 5}", "damaged");
  for (std::size_t parts = 1; parts < 10; ++parts)
    refused(whole.substr(0, whole.size() * parts / 10), "damaged");
  std::string flipped = whole;
  const std::size_t digit = whole.find("\"weights\":[") + 14;
  flipped[digit] = flipped[digit] == '1' ? '2' : '1';
  refused(flipped, "damaged");
  CHECK_THROWS_WITH_AS(restore_checkpoint(one.trainer, folder.path() + "/none"), Contains("mtmc.train.004"),
                       Error);
}

TEST_CASE("what cannot go on is not written: weights that are not finite, trees that grow") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint.json";
  PpoOptions wild{.rollout = 250, .steps = 2000};
  wild.policy_rate = std::numeric_limits<double>::infinity();
  Training broken(wild);
  (void)broken.trainer.update();
  CHECK_THROWS_WITH_AS(write_checkpoint(broken.trainer, path), Contains("mtmc.train.002"), Error);
  const Training growing({}, {.unknown = UnknownActions::live});
  CHECK_THROWS_WITH_AS(write_checkpoint(growing.trainer, path), Contains("mtmc.train.003"), Error);
}
