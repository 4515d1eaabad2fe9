// The contract of mtmc-train: journals and data sets in; weights, metrics, curves and a report out.

#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/train/data_set.hpp>

#include <doctest/doctest.h>

#include <filesystem>

#include "../loop/toy_game.hpp"
#include "programs.hpp"

using doctest::Contains;
using programs::shown;

namespace {

/// Journals of searches in a toy world.
struct World {
  World() {
    for (const std::uint64_t seed : {4U, 5U, 6U}) {
      toy::Game game{seed};
      (void)game.play(folder.path() + "/data/" + std::to_string(seed));
    }
  }
  [[nodiscard]] mtmc::ProcessResult train(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--output", folder.path() + "/policy", "--seeds", "2", "--steps", "2048",
                               "--held-out", "0", "--methods", "chance,rules,ppo"});
    return programs::run("mtmc-train", more);
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return mtmc::read_file(folder.path() + "/policy/" + name);
  }
  mtmc::TemporaryFolder folder{};
};

} // namespace

TEST_CASE("mtmc-train: from journals to weights that mtmc-optimize takes") {
  const World world;
  const auto done = world.train({world.folder.path() + "/data", "--name", "toy", "--licence", "MIT"});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(shown(done.output) == Contains("1 task, 3 trees"));
  CHECK(shown(done.output) == Contains("| ppo |"));
  const auto weights = mtmc::load_policy_weights(world.folder.path() + "/policy/weights.json");
  CHECK(weights.card.name == "toy");
  CHECK(weights.card.languages == std::vector<std::string>{"cpp"});
  CHECK_FALSE(weights.card.optimizations.empty());
  CHECK(nlohmann::json::parse(weights.card.training)["data"]["trees"] == 3);
  CHECK(mtmc::read_data_set(world.folder.path() + "/policy/data.jsonl").trees.size() == 3);
  CHECK(programs::json_lines(world.file("ppo-2.jsonl")).back()["kind"] == "ppo");
  CHECK(world.file("ppo.svg").starts_with("<svg"));
  CHECK(world.file("report.md").find("| rules |") != std::string::npos);

  programs::Tasks tasks;
  const auto task = tasks.add("columns", programs::columns_task("columns"));
  const auto shown_actions =
      programs::run("mtmc-optimize", {task, "--list-actions", "--policy", "learnt", "--weights",
                                      world.folder.path() + "/policy/weights.json"});
  CAPTURE(shown_actions.error);
  CHECK(shown_actions.code == 0);
}

TEST_CASE("mtmc-train: the data set that it made trains to the same weights, and more data adds to it") {
  const World world;
  REQUIRE(world.train({world.folder.path() + "/data"}).code == 0);
  const auto first = mtmc::load_policy_weights(world.folder.path() + "/policy/weights.json");
  const auto data = world.folder.path() + "/data.jsonl";
  std::filesystem::copy(world.folder.path() + "/policy/data.jsonl", data);
  REQUIRE(world.train({data}).code == 0);
  const auto again = mtmc::load_policy_weights(world.folder.path() + "/policy/weights.json");
  CHECK(again.network.weights == first.network.weights);
  toy::Game game{7};
  (void)game.play(world.folder.path() + "/more");
  REQUIRE(world.train({data, world.folder.path() + "/more", "--data-only"}).code == 0);
  CHECK(mtmc::read_data_set(world.folder.path() + "/policy/data.jsonl").trees.size() == 4);
}

TEST_CASE("mtmc-train: nothing to train on is said with what to do") {
  const World world;
  std::filesystem::create_directory(world.folder.path() + "/empty");
  const auto done = world.train({world.folder.path() + "/empty"});
  CHECK(done.code == 2);
  CHECK(shown(done.error) == Contains("[mtmc.train.001] there is neither a journal nor a data set"));
  CHECK(world.train({world.folder.path() + "/nowhere.jsonl"}).code != 0);
}

TEST_CASE("mtmc-train: a run counts once and in full, whichever copy of its journal is read first") {
  const World world;
  const auto copy = world.folder.path() + "/a cut copy";
  std::filesystem::copy(world.folder.path() + "/data", copy, std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(copy))
    if (entry.path().filename() == "journal.jsonl")
      std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  const auto read = [&](const std::vector<std::string>& data) {
    auto arguments = data;
    arguments.push_back("--data-only");
    REQUIRE(world.train(arguments).code == 0);
    return mtmc::read_data_set(world.folder.path() + "/policy/data.jsonl");
  };
  const auto whole = read({world.folder.path() + "/data"});
  CHECK(read({copy}).card.steps < whole.card.steps);
  const auto both = read({copy, world.folder.path() + "/data"});
  CHECK(both.card.steps == whole.card.steps);
  CHECK(both.card.kernels == whole.card.kernels);
}

TEST_CASE("mtmc-train: a data set that is named under two paths counts once") {
  const World world;
  REQUIRE(world.train({world.folder.path() + "/data", "--data-only"}).code == 0);
  const auto one = world.folder.path() + "/one.jsonl", other = world.folder.path() + "/other.jsonl";
  for (const auto& path : {one, other})
    std::filesystem::copy(world.folder.path() + "/policy/data.jsonl", path);
  const auto done = world.train({one, other, "--data-only"});
  REQUIRE(done.code == 0);
  CHECK(shown(done.error) == Contains("is the same as"));
  CHECK(mtmc::read_data_set(world.folder.path() + "/policy/data.jsonl") == mtmc::read_data_set(one));
}

TEST_CASE("mtmc-train: a folder that cannot be written is told with an id and a remedy") {
  const World world;
  const auto file = world.folder.path() + "/file";
  mtmc::write_file_atomic(file, "");
  const auto done =
      programs::run("mtmc-train", {world.folder.path() + "/data", "--output", file + "/policy"});
  CHECK(done.code == 3);
  CHECK(shown(done.error) == Contains("mtmc.train.004"));
}
