// Files of metrics: lines as training goes, read as they were written, also after a stop.

#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/train/metrics.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "toy_features.hpp"
#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Contains;

TEST_CASE("each update and each epoch is a line, there as soon as it is over") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  std::vector<KernelTree> trees{toy::random_tree(4, 12)};
  const toy::ByName features(trees);
  MetricsFile file(path);
  const auto lines = [&] {
    const std::string text = read_file(path);
    return std::count(text.begin(), text.end(), '\n');
  };
  int written = 0;
  const auto observe = [&](const auto& progress) {
    file.append(progress);
    CHECK(lines() == ++written);
    return true;
  };
  const ImitationResult start = imitate(make_network(features.shape(), 1), trees, {}, features,
                                        exact_teacher({}), {.rounds = 1, .states = 50, .epochs = 3}, observe);
  const PpoResult result =
      train_ppo(start.network, trees, {}, features, {.rollout = 64, .steps = 256}, observe);
  const TrainingMetrics metrics = read_metrics(path);
  REQUIRE(metrics.imitation.size() == 3);
  CHECK(metrics.imitation[2].training.divergence == start.progress[2].training.divergence);
  CHECK(metrics.imitation[2].epoch == 3);
  REQUIRE(metrics.ppo.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(metrics.ppo[i].steps == result.progress[i].steps);
    CHECK(metrics.ppo[i].mean_return == result.progress[i].mean_return);
    CHECK(metrics.ppo[i].entropy == result.progress[i].entropy);
  }
  CHECK(read_file(path).find("\"kind\":\"ppo\"") != std::string::npos);
}

TEST_CASE("where training went on from a checkpoint, what it did again counts") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  {
    MetricsFile file(path);
    for (const std::size_t steps : {100U, 200U, 300U})
      file.append(PpoProgress{.steps = steps, .episodes = 1});
  }
  write_file_atomic(path, read_file(path) + "{\"kind\":\"ppo\",\"st"); // killed in the middle of a line
  CHECK(read_metrics(path).ppo.size() == 3);
  MetricsFile file(path);
  file.append(PpoProgress{.steps = 200, .episodes = 2});
  const auto progress = read_metrics(path).ppo;
  REQUIRE(progress.size() == 2);
  CHECK(progress[0].episodes == 1);
  CHECK(progress[1].steps == 200);
  CHECK(progress[1].episodes == 2);
}

TEST_CASE("a damaged line is named, and a file that cannot be opened is an error") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  {
    MetricsFile(path).append(PpoProgress{});
  }
  const std::string good = read_file(path);
  for (const char* bad : {"{\"kind\":\"other\"}", "{\"kind\":7}", "[]", "no JSON", "{\"kind\":\"ppo\"}"}) {
    write_file_atomic(path, good + bad + "\n");
    CHECK_THROWS_WITH_AS((void)read_metrics(path), Contains("line 2"), Error);
    CHECK_THROWS_WITH_AS((void)read_metrics(path), Contains("mtmc.train.001"), Error);
  }
  CHECK_THROWS_WITH_AS(MetricsFile(folder.path() + "/none/metrics.jsonl"), Contains("mtmc.train.004"), Error);
}
