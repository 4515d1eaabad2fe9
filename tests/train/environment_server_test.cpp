// Trees served to a trainer in another process: what it is told, that it is what a served policy would be
// asked, and that a played episode is worth what the tree says.

#include <mtmc/train/data_set.hpp>
#include <mtmc/train/environment_server.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "../loop/toy_game.hpp"

using namespace mtmc;
using doctest::Approx;
using nlohmann::json;

namespace {

/// Searches of the toy world with these seeds, as trees and texts.
struct Recorded {
  explicit Recorded(std::vector<std::uint64_t> seeds) {
    for (const std::uint64_t seed : seeds) {
      toy::Game game{seed};
      const auto played = game.play(folder.path() + "/" + std::to_string(seed));
      visit_runs(
          journal_path(played.folder),
          [this](const JournalRun& run) {
            collector.add(run);
            texts.add(run);
            runs.push_back(run);
          },
          left_out);
    }
  }
  [[nodiscard]] EnvironmentServer server(const EnvironmentServerOptions& options = {}) const {
    return {collector.trees(), {}, texts, options};
  }
  TemporaryFolder folder{};
  TreeCollector collector{};
  KernelTexts texts{};
  std::vector<JournalRun> runs{};
  std::vector<std::string> left_out{};
};

json ask(EnvironmentServer& server, const json& request) {
  const auto reply = server.answer(request.dump());
  REQUIRE(reply);
  CHECK(reply->ends_with('\n'));
  return json::parse(*reply);
}

std::size_t likeliest(const json& soft) {
  const auto values = soft.get<std::vector<double>>();
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

} // namespace

TEST_CASE("a trainer is told how it is served, and of which trees") {
  const Recorded recorded{{4, 5}};
  EnvironmentServer server({recorded.collector.trees()[0]}, {recorded.collector.trees()[1]}, recorded.texts,
                           {.card = paper_policy_card()});
  const json ready = ask(server, {{"type", "hello"}, {"request", 3}});
  CHECK(ready["type"] == "ready");
  CHECK(ready["request"] == 3);
  CHECK(ready["protocol"] == environment_protocol_version);
  CHECK(read_policy_card(ready["card"].dump()) == paper_policy_card());
  const json list = ask(server, {{"type", "trees"}});
  REQUIRE(list["trees"].size() == 2);
  CHECK(list["trees"][0]["task"] == "toy");
  CHECK(list["trees"][0]["held_out"] == false);
  CHECK(list["trees"][1]["held_out"] == true);
  CHECK(list["trees"][0]["best"] == Approx(ExactValues(recorded.collector.trees()[0], {}).value({})));
}

TEST_CASE("the first prompt is the one that a served policy was asked in the recorded search") {
  const Recorded recorded{{4}};
  EnvironmentServer server = recorded.server({.rules = {.reward = {.step_limit = 6}}});
  const json state = ask(server, {{"type", "reset"}, {"tree", 0}});
  const JournalRun& run = recorded.runs.front();
  const DecisionRecord& first = run.decisions.front();
  REQUIRE(first.step_limit == 6);
  const auto asked = policy_prompt(PolicyCard{}, observation_of(run, first), first.legal);
  CHECK(state["observation"] == asked.context);
  const auto actions = state["actions"].get<std::vector<std::string>>();
  CHECK_FALSE(actions.empty());
  for (const auto& action : actions)
    CHECK(std::count(asked.continuations.begin(), asked.continuations.end(), action) == 1);
}

TEST_CASE("a trainer is told of the actions that a search would be offered and nobody tried") {
  const Recorded recorded{{4}};
  EnvironmentServer server = recorded.server({.rules = {.reward = {.step_limit = 6}}});
  const json state = ask(server, {{"type", "reset"}, {"tree", 0}});
  const DecisionRecord& first = recorded.runs.front().decisions.front();
  const auto asked = policy_prompt(PolicyCard{}, observation_of(recorded.runs.front(), first), first.legal);
  auto listed = state["actions"].get<std::vector<std::string>>();
  const auto untried = state["untried"].get<std::vector<std::string>>();
  CHECK_FALSE(untried.empty());
  listed.insert(listed.end(), untried.begin(), untried.end());
  listed.push_back(" stop"); // no choice of a first step, and nothing to be tried
  CHECK(std::is_permutation(listed.begin(), listed.end(), asked.continuations.begin(),
                            asked.continuations.end()));
}

TEST_CASE("a step that the search went on from has the history that the search had") {
  // A world whose search tries one action a step on one kernel: there episodes are its prefixes.
  const Recorded recorded{{6}};
  const JournalRun& run = recorded.runs.front();
  REQUIRE(run.decisions.size() > 1);
  const Observation searched = observation_of(run, run.decisions[1]);
  REQUIRE(searched.history.size() == 1);
  EnvironmentServer server = recorded.server({.rules = {.minimum_gain = 1.0, .reward = {.step_limit = 6}}});
  const json start = ask(server, {{"type", "reset"}, {"tree", 0}});
  const auto actions = start["actions"].get<std::vector<std::string>>();
  const auto at = std::find(actions.begin(), actions.end(), " " + searched.history[0].action_text);
  REQUIRE(at != actions.end());
  const json next = ask(server, {{"type", "step"}, {"choice", at - actions.begin()}});
  REQUIRE(next["ended"] == false);
  const auto prompt = next["observation"].get<std::string>();
  CHECK(prompt.find("step 2 of at most 6\n") != std::string::npos);
  CHECK(prompt.find("- step 1: " + searched.history[0].action_text + " -> ") != std::string::npos);
}

TEST_CASE("labels are probabilities, and following them returns about what was promised") {
  const Recorded recorded{{4, 5, 6}};
  const TreeOptions rules{.children = TreeChildren::best};
  EnvironmentServer server = recorded.server({.rules = rules, .temperature = 0.01});
  const json trees = ask(server, {{"type", "trees"}})["trees"];
  for (std::size_t number = 0; number < trees.size(); ++number) {
    json state = ask(server, {{"type", "reset"}, {"tree", number}});
    const double promised = state["value"];
    CHECK(promised == Approx(trees[number]["best"].get<double>()));
    double returned = 0;
    while (!state["ended"]) {
      const auto soft = state["soft"].get<std::vector<double>>();
      CHECK(soft.size() == state["actions"].size());
      CHECK(std::accumulate(soft.begin(), soft.end(), 0.0) == Approx(1));
      state = ask(server, {{"type", "step"}, {"choice", likeliest(state["soft"])}});
      returned += state["reward"].get<double>();
    }
    CHECK(returned == Approx(promised));
  }
}

TEST_CASE("episodes are apart, and the same seed plays the same") {
  const Recorded recorded{{4}};
  EnvironmentServer server = recorded.server();
  const json first = ask(server, {{"type", "reset"}, {"tree", 0}, {"episode", 1}, {"seed", 9}});
  const json second = ask(server, {{"type", "reset"}, {"tree", 0}, {"episode", 2}, {"seed", 9}});
  CHECK(first["observation"] == second["observation"]);
  json one = ask(server, {{"type", "step"}, {"choice", 0}, {"episode", 1}});
  json two = ask(server, {{"type", "step"}, {"choice", 0}, {"episode", 2}});
  CHECK(one["step"] == 1);
  one.erase("episode");
  two.erase("episode");
  CHECK(one == two);
  CHECK(ask(server, {{"type", "step"}, {"choice", 0}})["type"] == "error"); // episode 0 was never begun
}

TEST_CASE("a request that makes no sense is answered with an error, and the server goes on") {
  const Recorded recorded{{4}};
  EnvironmentServer server = recorded.server();
  for (const json& request : {json{{"type", "rest"}}, json{{"type", "reset"}, {"tree", 7}}, json{{"tree", 0}},
                              json{{"type", "reset"}}, json{{"type", "step"}, {"choice", 0}}, json(1)}) {
    CAPTURE(request.dump());
    const json reply = ask(server, request);
    CHECK(reply["type"] == "error");
    CHECK(reply["error"]["id"].get<std::string>().starts_with("mtmc."));
    CHECK_FALSE(reply["error"]["remedy"].get<std::string>().empty());
  }
  CHECK(ask(server, {{"type", "reset"}, {"tree", 0}})["type"] == "state");
  CHECK(ask(server, {{"type", "step"}, {"choice", 999}})["type"] == "error");
}

TEST_CASE("a prompt that is too long loses its history, then its regions") {
  const Recorded recorded{{4}};
  const auto prompt_of = [&](std::size_t longest) {
    EnvironmentServer server = recorded.server({.longest_prompt = longest});
    return ask(server, {{"type", "reset"}, {"tree", 0}})["observation"].get<std::string>();
  };
  const std::string whole = prompt_of(0);
  CHECK(whole.find("## Regions") != std::string::npos);
  CHECK(prompt_of(whole.size()) == whole);
  CHECK(prompt_of(whole.size() - 1).find("## Regions") == std::string::npos);
}

TEST_CASE("texts are the same after a file, and trees without texts are not served") {
  const Recorded recorded{{4, 5}};
  const TemporaryFolder folder;
  write_kernel_texts(recorded.texts, folder.path() + "/texts.jsonl");
  const KernelTexts again = read_kernel_texts(folder.path() + "/texts.jsonl");
  CHECK(again.size() == recorded.texts.size());
  CHECK(again.lines() == recorded.texts.lines());
  KernelTexts none;
  CHECK_THROWS_WITH_AS(EnvironmentServer(recorded.collector.trees(), {}, none, {}),
                       doctest::Contains("mtmc.train.001"), Error);
  CHECK_THROWS_WITH_AS(none.add_lines("{\"kind\":\"task\"}\n", "here"), doctest::Contains("here, line 1"),
                       Error);
}

TEST_CASE("a trainer in another process plays through pipes until it says bye") {
  const Recorded recorded{{4}};
  int to_trainer[2], to_server[2];
  REQUIRE(::pipe(to_trainer) == 0);
  REQUIRE(::pipe(to_server) == 0);
  const pid_t trainer = ::fork();
  if (trainer == 0) {
    // Takes the first choice until the episode ends, and ends with the number of its steps.
    const auto say = [&](const std::string& text) {
      if (::write(to_server[1], text.data(), text.size()) < 0) ::_exit(101);
    };
    const auto hear = [&] {
      std::string line;
      for (char one = 0; ::read(to_trainer[0], &one, 1) == 1 && one != '\n';) line += one;
      return line;
    };
    say("{\"type\":\"reset\",\"tree\":0}\n");
    int steps = 0;
    while (hear().find("\"ended\":false") != std::string::npos && steps < 100) {
      say("{\"type\":\"step\",\"choice\":0}\n");
      ++steps;
    }
    say("{\"type\":\"bye\"}\n");
    ::_exit(steps);
  }
  ::close(to_trainer[0]);
  ::close(to_server[1]);
  EnvironmentServer server = recorded.server();
  {
    std::ifstream requests{"/dev/fd/" + std::to_string(to_server[0])};
    std::ofstream answers{"/dev/fd/" + std::to_string(to_trainer[1])};
    server.serve(requests, answers);
  }
  int status = 0;
  REQUIRE(::waitpid(trainer, &status, 0) == trainer);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) > 0);
  CHECK(WEXITSTATUS(status) <= 8); // the step limit
  for (const int one : {to_trainer[1], to_server[0]}) ::close(one);
}
