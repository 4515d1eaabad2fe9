// When training ends before its steps are taken, which network is kept, and the error for one that diverged.

#include <mtmc/train/early_stop.hpp>
#include <mtmc/train/imitation.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "toy_features.hpp"
#include "toy_trees.hpp"

using namespace mtmc;
using toy::ByName;

namespace {
struct Training {
  std::vector<KernelTree> trees{toy::random_tree(4, 12)};
  ByName features{trees};
  PpoTrainer trainer;

  explicit Training(const PpoOptions& options = {.rollout = 64, .minibatch = 32, .steps = 64 * 20, .seed = 1})
      : trainer(make_network(features.shape(), 1), trees, {}, features, options) {}
};
} // namespace

TEST_CASE("training ends when scores get no better, and the best network is kept") {
  Training training;
  const std::vector<double> course{0.1, 0.5, 0.4, 0.5, 0.45, 0.9};
  std::vector<std::vector<double>> weights;
  const auto score = [&](const ActionNetwork& network) {
    weights.push_back(network.weights);
    return course.at(weights.size() - 1);
  };
  const EarlyStopResult result = train_until_no_gain(training.trainer, score, {.every = 2, .patience = 3});
  CHECK(result.progress.size() == 8); // four scores after the first, two updates each
  REQUIRE(result.scores.size() == 5);
  CHECK(result.scores[1].score == 0.5);
  CHECK(result.scores[1].steps == 128);
  CHECK(result.network.weights == weights[1]);
}

TEST_CASE("a start that training only makes worse stays; all steps are taken where scores go on rising") {
  Training worse, better;
  double next = 0;
  const EarlyStopResult kept = train_until_no_gain(
      worse.trainer, [&](const ActionNetwork&) { return next -= 1; }, {.every = 1, .patience = 2});
  CHECK(kept.network.weights == make_network(worse.features.shape(), 1).weights);
  CHECK(kept.progress.size() == 2);
  const EarlyStopResult last = train_until_no_gain(
      better.trainer, [&](const ActionNetwork&) { return next += 1; }, {.every = 7, .patience = 2});
  CHECK(last.progress.size() == 20);
  CHECK(last.scores.size() == 4); // before, after 7, 14 and all 20
  CHECK(last.scores.back().steps == 64 * 20);
  CHECK(last.network.weights == better.trainer.network().weights);
}

TEST_CASE("whoever wants an exception for a training that diverged gets one") {
  PpoOptions wild{.rollout = 64, .steps = 640};
  wild.policy_rate = std::numeric_limits<double>::infinity();
  Training training(wild);
  const auto score = [](const ActionNetwork&) { return 1.0; };
  const EarlyStopResult broken = train_until_no_gain(training.trainer, score);
  CHECK(broken.diverged);
  CHECK(broken.network.weights == make_network(training.features.shape(), 1).weights);
  CHECK_THROWS_WITH_AS((void)require_trained(broken), doctest::Contains("mtmc.train.002"), Error);
  CHECK_THROWS_WITH_AS((void)require_trained(ImitationResult{{}, {}, true}),
                       doctest::Contains("mtmc.train.002"), Error);
  PpoResult good;
  good.progress.resize(3);
  CHECK(require_trained(good).progress.size() == 3);
}
