// The contract of mtmc-environment: journals, or data sets with their texts, in; a conversation on standard
// input and output.

#include <mtmc/policy/policy_card.hpp>
#include <mtmc/train/environment_server.hpp>

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
    for (const std::uint64_t seed : {4U, 5U}) {
      toy::Game game{seed};
      (void)game.play(folder.path() + "/data/" + std::to_string(seed));
    }
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder.path() + '/' + name; }
  mtmc::TemporaryFolder folder{};
};

/// The program's answers to requests.
std::vector<nlohmann::json> answers(std::vector<std::string> arguments, const std::string& requests) {
  arguments.insert(arguments.begin(), std::string(MTMC_EXAMPLES) + "/mtmc-environment");
  mtmc::ProcessOptions options;
  options.arguments = std::move(arguments);
  options.input = requests;
  options.deadline = std::chrono::minutes(4);
  const auto done = mtmc::run_process(options);
  CAPTURE(done.error);
  CHECK(done.code == 0);
  return programs::json_lines(done.output);
}

constexpr const char* conversation = R"({"type":"hello"}
{"type":"trees"}
{"type":"reset","tree":0,"seed":3}
{"type":"step","choice":0}
{"type":"bye"}
)";

} // namespace

TEST_CASE("mtmc-environment: journals are played, by the prompts of a card") {
  const World world;
  auto card = mtmc::paper_policy_card();
  card.name = "mine";
  mtmc::write_file_atomic(world.path("card.json"), mtmc::write_policy_card(card));
  const auto said =
      answers({world.path("data"), "--held-out", "0", "--card", world.path("card.json")}, conversation);
  REQUIRE(said.size() == 4);
  CHECK(said[0]["card"]["name"] == "mine");
  CHECK(said[1]["trees"].size() == 2);
  CHECK(shown(said[2]["observation"]) == Contains("step 1 of at most 8"));
  CHECK(said[3]["step"] == 1);
}

TEST_CASE("mtmc-environment: a data set with exported texts plays as its journals do") {
  const World world;
  const auto exported = programs::run(
      "mtmc-train", {world.path("data"), "--output", world.path("out"), "--export-texts", "--data-only"});
  CAPTURE(exported.error);
  REQUIRE(exported.code == 0);
  CHECK(shown(exported.output) == Contains("2 trees"));
  CHECK(answers({world.path("out/data.jsonl")}, conversation) == answers({world.path("data")}, conversation));

  const auto trees = programs::json_lines(mtmc::read_file(world.path("out/trees.jsonl")));
  REQUIRE(trees.size() == 2);
  const auto& start = trees[0]["nodes"][0];
  CHECK(shown(start["prompt"]) == Contains("## Kernel (cpp)"));
  CHECK_FALSE(start["edges"].empty());
  for (const auto& edge : start["edges"]) {
    CHECK(shown(edge["text"]) == Contains("in line"));
    CHECK_FALSE(edge["outcomes"].empty());
  }
}

TEST_CASE("mtmc-environment: trees without texts are said with what to do") {
  const World world;
  REQUIRE(
      programs::run("mtmc-train", {world.path("data"), "--output", world.path("out"), "--data-only"}).code ==
      0);
  const auto done = programs::run("mtmc-environment", {world.path("out/data.jsonl")});
  CHECK(done.code == 2);
  CHECK(shown(done.error) == Contains("mtmc.train.001"));
}
