// The whole loop over tasks of examples/tasks/cpu, with the real evaluator and the recorded answers of a
// language model: the same actions, kernels, tokens and cost every time, on every machine.
//
// What makes that possible: `PromptOptions::plain`, since a question that tells this machine's figures is
// answered by no recording; the uniform policy drawn with a seed, since rules look at what was measured; and
// kernels that are several times faster or slower than what they are compared with. What is left is that
// parallelization is on offer only where there are two cores.
//
// To record anew, after prompts have changed:
//   test_examples --no-skip --test-case="record the answers*"

#include <mtmc/coder/openai.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/mtmc.hpp>
#include <mtmc/net/cassette.hpp>
#include <mtmc/net/curl.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "played_model.hpp"
#include "programs.hpp"

namespace {

const std::string repository = MTMC_REPOSITORY;
const std::string cassette = repository + "/tests/data/cassettes/cpu_tasks.jsonl";
/// What became of each draft when the cassette was recorded.
const std::string outlines = repository + "/tests/data/cassettes/cpu_tasks_outline.json";
const std::vector<std::string> names{"elementwise_chain", "softmax", "stencil2d"};
constexpr std::uint64_t seed = 11;
constexpr int steps = 6;

std::string task_path(const std::string& name) {
  return repository + "/examples/tasks/cpu/" + name + ".json";
}

/// All that must be the same of a run: actions, kernels, failures, verdicts, tokens, cost; no times.
nlohmann::json outline_of(const std::string& folder) {
  const auto run = mtmc::read_journal(mtmc::journal_path(folder)).at(0);
  auto drafts = nlohmann::json::array();
  for (const auto& step : mtmc::steps_of(run)) {
    nlohmann::json draft{{"step", step.step},
                         {"action", step.action.key()},
                         {"sample", step.sample},
                         {"repair", step.repair},
                         {"legal", step.legal_actions},
                         {"tokens", step.draft.usage.tokens()},
                         {"cached", step.draft.usage.cached_tokens},
                         {"cost", step.draft.usage.cost}};
    draft["outcome"] = step.evaluation ? to_string(step.evaluation->verdict) : to_string(step.draft.failure);
    if (step.draft.kernel) draft["kernel"] = step.draft.kernel->id();
    drafts.push_back(std::move(draft));
  }
  auto kept = nlohmann::json::array();
  for (const auto& round : run.rounds) kept.push_back(round.best);
  return {{"drafts", drafts},
          {"best", run.finish->best},
          {"best_after_each_step", kept},
          {"stop", to_string(run.finish->stop_reason)},
          {"tokens", run.finish->usage.tokens()},
          {"cost", run.finish->usage.cost}};
}

/// Runs the loop over all tasks with answers from `transport`.
nlohmann::json play(const mtmc::AnyTransport& transport, const std::string& url, const std::string& folder,
                    double try_seconds = 600) {
  mtmc::EndpointOptions endpoint{.base_url = url, .model = "played-model"};
  endpoint.try_seconds = try_seconds;
  endpoint.retries.first_wait = endpoint.retries.max_wait = 0.01;
  mtmc::ChatClientOptions money;
  money.prices = {{.model = "played-*", .prompt = 1.1, .completion = 4.4, .cached = 0.3}};
  mtmc::OpenAiCoderOptions asking;
  asking.prompt.plain = true;
  asking.stream = true;
  mtmc::LoopOptions options{.max_steps = steps, .samples = 1, .repairs = 1};
  options.selection = mtmc::Selection::sample;
  options.seed = seed;
  options.output = folder;
  mtmc::Loop loop{
      mtmc::RandomPolicy{},
      mtmc::OpenAiCoder{mtmc::ChatClient{mtmc::Endpoint{transport, std::move(endpoint)}, money}, asking},
      mtmc::AstRegionFinder{}, mtmc::CpuEvaluator{}, options};
  nlohmann::json outline;
  for (const auto& name : names) {
    const auto result = loop.optimize(mtmc::load_task(task_path(name)));
    if (result.error) FAIL(std::string(result.error->what()));
    outline[name] = outline_of(result.folder);
  }
  return outline;
}

/// Whether all actions of the recording are on offer here; says so if not.
bool plays_here() {
  if (mtmc::CpuEvaluator{}.device().compute_units > 1) return true;
  MESSAGE("SKIPPED: with a single core parallelization is not on offer");
  return false;
}

nlohmann::json recorded_outline() { return nlohmann::json::parse(mtmc::read_file(outlines)); }

} // namespace

TEST_CASE("record the answers of the played model" * doctest::skip()) {
  const mtmc::TemporaryFolder folder;
  std::filesystem::create_directories(std::filesystem::path(cassette).parent_path());
  std::filesystem::remove(cassette);
  played::Model model(played::script());
  fake::Server server(
      [&model](const fake::Request& request, fake::Connection& connection) { model(request, connection); });
  const auto outline =
      play(mtmc::RecordingTransport{mtmc::CurlTransport{}, cassette}, server.url("/v1"), folder.path(), 1);
  mtmc::write_file_atomic(outlines, outline.dump(1) + '\n');
  CHECK(model.left() == 0);
}

TEST_CASE("the recording holds all that can go wrong") {
  const auto outline = recorded_outline();
  std::set<std::string> outcomes;
  for (const auto& name : names)
    for (const auto& draft : outline[name]["drafts"]) outcomes.insert(draft["outcome"].get<std::string>());
  for (const std::string outcome : {"correct", "compile_error", "wrong_result", "unchanged", "refused",
                                    "no_kernel", "truncated", "endpoint"}) {
    CAPTURE(outcome);
    CHECK(outcomes.contains(outcome));
  }
  const auto text = mtmc::read_file(cassette);
  for (const std::string part :
       {R"("status":429)", R"("status":500)", R"("status":502)", R"("status":503)", "Retry-After",
        R"("failure":"timeout")", R"("failure":"dropped")", "<html>", "rest of the kernel unchanged"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("a loop that is played twice, in different folders, does the same and asks for every answer") {
  if (!plays_here()) return;
  for (int time = 0; time < 2; ++time) {
    const mtmc::TemporaryFolder folder;
    const mtmc::ReplayTransport replay(cassette);
    const auto outline = play(replay, "http://127.0.0.1:9/v1", folder.path());
    CHECK(replay.left() == 0);
    for (const auto& name : names) {
      CAPTURE(name);
      CHECK(outline[name].dump(1) == recorded_outline()[name].dump(1));
      CHECK(outline[name]["best"] != mtmc::load_task(task_path(name)).kernel.id());
    }
  }
}

TEST_CASE("mtmc-optimize --play does the same") {
  if (!plays_here()) return;
  programs::Tasks folder;
  const auto prices = folder.add_text(
      "prices.json", R"([{"model": "played-*", "prompt": 1.1, "completion": 4.4, "cached": 0.3}])");
  std::vector<std::string> arguments;
  for (const auto& name : names) arguments.push_back(task_path(name));
  for (const char* const word : {"--coder",  "openai",       "--endpoint", "http://127.0.0.1:9/v1",
                                 "--model",  "played-model", "--stream",   "--plain-prompt",
                                 "--policy", "random",       "--sample",   "--seed",
                                 "11",       "--steps",      "6",          "--samples",
                                 "1",        "--patience",   "0",          "--json",
                                 "--quiet"})
    arguments.emplace_back(word);
  arguments.insert(arguments.end(),
                   {"--play", cassette, "--prices", prices, "--output", folder.path("runs")});
  const auto done = programs::run("mtmc-optimize", arguments);
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(done.error.empty());
  const auto lines = programs::json_lines(done.output);
  REQUIRE(lines.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i]);
    const auto expected = recorded_outline()[names[i]];
    CHECK(outline_of(folder.path("runs/" + names[i])).dump(1) == expected.dump(1));
    CHECK(lines[i]["tokens"] == expected["tokens"]);
    CHECK(lines[i]["cost"] == expected["cost"]);
    CHECK(lines[i]["best_id"] == expected["best"]);
  }
}
