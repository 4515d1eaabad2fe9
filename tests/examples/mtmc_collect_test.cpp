// The contract of mtmc-collect: everything is kept, nothing is judged twice, and it may be ended at any time.

#include <mtmc/loop/journal.hpp>
#include <mtmc/policy/policy_card.hpp>
#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/train/data_set.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "../net/fake_scoring_servers.hpp"
#include "../net/fake_server.hpp"
#include "programs.hpp"

using doctest::Contains;
using programs::columns_task;
using programs::shown;
using programs::Tasks;

namespace {

/// Tasks that are judged quickly, and a collection of them.
struct World {
  Tasks tasks{};
  std::vector<std::string> files{};
  std::string seeds = "1";
  std::string steps = "2";

  explicit World(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      auto task = columns_task(name);
      task["sizes"][0] = {{"M", 96}, {"N", 64}};
      files.push_back(tasks.add(name, task));
    }
  }

  [[nodiscard]] std::string output() const { return tasks.path("data"); }
  [[nodiscard]] std::vector<std::string> arguments(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = files;
    all.insert(all.end(), {"--seeds", seeds, "--steps", steps, "--threads", "1", "--output"});
    all.push_back(output());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] mtmc::ProcessResult collect(std::vector<std::string> more = {}) const {
    return programs::run("mtmc-collect", arguments(std::move(more)));
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return mtmc::read_file(output() + '/' + name);
  }
  /// Journals and memories of a task, by name.
  [[nodiscard]] std::vector<std::string> files_of(const std::string& task, const std::string& name) const {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{output() + '/' + task, ignored})
      if (entry.path().filename() == name) found.push_back(entry.path().string());
    return found;
  }
  /// The keys of all judgements of a task.
  [[nodiscard]] std::vector<std::string> judged(const std::string& task) const {
    std::vector<std::string> keys;
    for (const auto& file : files_of(task, "memory.jsonl"))
      for (const auto& line : programs::json_lines(mtmc::read_file(file)))
        keys.push_back(line["key"].get<std::string>());
    return keys;
  }
  /// Waits until a running collection has judged so many kernels of "columns", a minute at most; how many it
  /// has then.
  [[nodiscard]] std::size_t wait_for_judgements(std::size_t count) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (std::size_t known = 0;;) {
      for (const auto& file : files_of("columns", "memory.jsonl")) {
        const auto text = mtmc::read_file(file);
        known = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
      }
      if (known >= count || std::chrono::steady_clock::now() > until) return known;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  /// The tasks of a data set made of the folder.
  [[nodiscard]] std::set<std::string> tasks_of_data() const {
    mtmc::TreeCollector collector;
    for (const auto& file : files_of("", "journal.jsonl")) collector.add_journal(file);
    CHECK(collector.sources().left_out.empty());
    std::set<std::string> names;
    for (const auto& tree : mtmc::make_data_set(collector).trees) names.insert(tree.task);
    return names;
  }
};

/// Starts the program in a process group of its own, silent.
pid_t start(const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  const std::string program = std::string(MTMC_EXAMPLES) + "/mtmc-collect";
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(127);
  ::execv(words.front(), words.data());
  ::_exit(127);
}

/// The toy model behind a port, as vLLM serves one.
class ServedToy {
public:
  ServedToy() { place_.state->kind = "vllm"; }
  [[nodiscard]] std::string url() const { return server_.url("/v1"); }
  [[nodiscard]] int requests() const { return server_.request_count(); }

private:
  void answer(const fake::Request& request, fake::Connection& connection) {
    mtmc::HttpRequest asked;
    asked.url = "http://toy.test" + request.path;
    asked.body = request.body;
    const std::scoped_lock lock(mutex_);
    const auto response = place_.send(asked, {}, {}, {});
    connection.answer(response.status, response.body);
  }

  std::mutex mutex_;
  toy_scoring::Server place_{std::make_shared<toy_scoring::State>()};
  fake::Server server_{
      [this](const fake::Request& request, fake::Connection& connection) { answer(request, connection); }};
};

bool all_different(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  return std::adjacent_find(texts.begin(), texts.end()) == texts.end();
}

} // namespace

TEST_CASE("mtmc-collect: bad usage is exit code 2, help is not") {
  CHECK(programs::run("mtmc-collect", {}).code == 2);
  CHECK(programs::run("mtmc-collect", {"--output", "x"}).code == 2);
  CHECK(programs::run("mtmc-collect", {"x.json", "--output", "x", "--policies", "random,nobody"}).code == 2);
  const auto wrong = programs::run("mtmc-collect", {"x.json", "--output", "x", "--shard", "4/4"});
  CHECK(wrong.code == 2);
  CHECK(shown(wrong.output + wrong.error) == Contains("the first of four is 0/4"));
  CHECK(programs::run("mtmc-collect", {"x.json", "--output", "x", "--shard", "0/4294967297"}).code == 2);
  const auto nothing = programs::run("mtmc-collect", {"--summary", "--output", "no-such-folder"});
  CHECK(nothing.code == 2);
  CHECK(shown(nothing.error) == Contains("no-such-folder"));
  CHECK(programs::run("mtmc-collect", {"--help"}).code == 0);
}

TEST_CASE("mtmc-collect: a run each of task, policy and seed; what is there is not done again") {
  World world{"columns"};
  const auto done = world.collect();
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(shown(done.output) == Contains("columns anew-0: 2 steps"));
  CHECK(shown(done.output) == Contains("columns rules-0: 2 steps"));
  CHECK(shown(done.output) == Contains("runs                2\nsteps               4\n"));
  for (const char* run : {"anew-0", "rules-0"})
    CHECK(shown(world.text(std::string("columns/") + run + "/columns/journal.jsonl")) ==
          Contains("\"record\":\"finish\""));
  const auto judged = world.judged("columns");
  CHECK(judged.size() >= 2);
  CHECK(all_different(judged));

  const auto again = world.collect();
  CHECK(again.code == 0);
  CHECK(shown(again.output) != Contains("columns anew-0"));
  CHECK(world.judged("columns") == judged);
  const auto summary = programs::run("mtmc-collect", {"--summary", "--output", world.output()});
  CHECK(summary.output == again.output);

  // A further seed goes through kernels that are known, at least the start kernel.
  world.seeds = "2";
  const auto more = world.collect();
  CHECK(shown(more.output) == Contains("columns anew-1: 2 steps"));
  CHECK(all_different(world.judged("columns")));

  // Data that was made otherwise does not go into the same folder.
  world.steps = "3";
  const auto other = world.collect();
  CHECK(other.code == 2);
  CHECK(shown(other.error) == Contains("steps was 2 and is 3"));
}

TEST_CASE(
    "mtmc-collect: a damaged journal is kept, told of, and its run made anew; odd lines hurt no other") {
  World world{"columns"};
  REQUIRE(world.collect().code == 0);
  const auto journal = world.output() + "/columns/anew-0/columns/journal.jsonl";
  const auto whole = mtmc::read_file(journal);
  mtmc::write_file_atomic(journal, whole + "{\"record\":\"step\",\"parent\":5}\n[1,2]\n");
  const auto again = world.collect();
  CAPTURE(again.error);
  CHECK(again.code == 0);
  CHECK(shown(again.error) == Contains("anew-0.damaged-1"));
  CHECK(
      mtmc::read_file(world.output() + "/columns/anew-0.damaged-1/columns/journal.jsonl").starts_with(whole));
  CHECK(shown(world.text("columns/anew-0/columns/journal.jsonl")) == Contains("\"record\":\"finish\""));

  mtmc::write_file_atomic(world.output() + "/collection.json", "[]");
  const auto refused = world.collect();
  CHECK(refused.code == 2);
  CHECK(shown(refused.error) == Contains("no record of a collection"));
}

TEST_CASE("mtmc-collect: a learnt policy needs weights, and a collection keeps to them") {
  World world{"columns"};
  const auto missing = world.collect({"--policies", "anew,best-learnt"});
  CHECK(missing.code == 2);
  CHECK(shown(missing.error) == Contains("needs --weights"));
  auto weights = mtmc::built_in_policy_weights();
  const auto file = [&](const std::string& name) {
    weights.card.name = name;
    return world.tasks.add_text(name + ".json", mtmc::write_policy_weights(weights));
  };
  const auto first = file("first"), second = file("second");
  world.steps = "1";
  CHECK(world.collect({"--policies", "best-learnt", "--weights", first}).code == 0);
  const auto other = world.collect({"--policies", "best-learnt", "--weights", second});
  CHECK(other.code == 2);
  CHECK(shown(other.error) == Contains("weights was"));
}

TEST_CASE("mtmc-collect: a served policy needs an endpoint, and what it likes best is taken") {
  World world{"columns"};
  world.steps = "1";
  const ServedToy toy;
  const auto served = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--policies", "best-rules,best-served"});
    return world.collect(std::move(more));
  };
  const auto nowhere = served({});
  CHECK(nowhere.code == 2);
  CHECK(shown(nowhere.error) == Contains("needs --policy-endpoint"));
  const auto nameless = served({"--policy-endpoint", toy.url()});
  CHECK(nameless.code == 2);
  CHECK(shown(nameless.error) == Contains("--policy-model is missing"));
  const auto misnamed = served({"--policy-endpoint", "localhost:9", "--policy-model", "toy"});
  CHECK(misnamed.code == 2);
  CHECK(shown(misnamed.error) == Contains("(--policy-endpoint)"));
  CHECK(toy.requests() == 0);

  const auto done = served({"--policy-endpoint", toy.url(), "--policy-model", "toy"});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(shown(done.output) == Contains("columns best-rules-0: "));
  CHECK(shown(done.output) == Contains("columns best-served-0: "));
  CHECK(all_different(world.judged("columns")));
  const auto identity =
      nlohmann::json::parse(world.text("collection.json"))["served_policy"].get<std::string>();
  CHECK(shown(identity) == Contains("http toy, "));
  const auto runs = mtmc::read_journal(world.output() + "/columns/best-served-0/columns/journal.jsonl");
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].header.set_up.policy == identity);
  REQUIRE(runs[0].decisions.size() == 1);
  const auto& decision = runs[0].decisions[0];
  const auto& likely = decision.distribution.probabilities;
  const auto best = std::max_element(likely.begin(), likely.end()) - likely.begin();
  CHECK(decision.chosen.at(0) == decision.legal.at(static_cast<std::size_t>(best)).key());

  // Another model, or the same one asked otherwise, is another policy.
  const auto card = world.tasks.add_text("card.json", mtmc::write_policy_card(mtmc::paper_policy_card()));
  const auto other = served({"--policy-endpoint", toy.url(), "--policy-model", "toy", "--policy-card", card});
  CHECK(other.code == 2);
  CHECK(shown(other.error) == Contains("served_policy was"));
}

TEST_CASE("mtmc-collect: walks go through what others found, and judge nothing") {
  World world{"columns"};
  world.seeds = "3";
  const auto nothing = world.collect({"--policies", "walk"});
  CHECK(nothing.code == 0);
  CHECK(shown(nothing.output) != Contains("columns walk-0"));
  REQUIRE(world.collect({"--policies", "anew"}).code == 0);
  const auto judged = world.judged("columns");
  const auto walked = world.collect({"--policies", "walk"});
  CHECK(shown(walked.output) == Contains("columns walk-0: 2 steps, 0 judged"));
  CHECK(world.judged("columns") == judged);
}

// Searches of several processes one after the other: a minute and more on a busy machine.
TEST_SUITE("slow") {

  TEST_CASE("mtmc-collect: interrupted or killed in the middle, it goes on and judges nothing twice") {
    World world{"columns"};
    world.seeds = "4";
    std::size_t known = 0;
    for (const int signal : {SIGINT, SIGKILL}) {
      const pid_t child = start(world.arguments());
      known = world.wait_for_judgements(known + 1);
      ::kill(signal == SIGKILL ? -child : child, signal);
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 130));
    }
    const auto done = world.collect();
    CAPTURE(done.error);
    CHECK(done.code == 0);
    CHECK(shown(done.output) == Contains("runs                8\n"));
    CHECK(shown(done.output) != Contains("are left"));
    CHECK(world.judged("columns").size() >= known);
    CHECK(all_different(world.judged("columns")));
    CHECK(world.tasks_of_data() == std::set<std::string>{"columns"});
  }

  TEST_CASE("mtmc-collect: shards have each task once, and together all of them") {
    const World world{"a", "b", "c"};
    std::size_t tasks = 0;
    for (const char* shard : {"0/2", "1/2"}) {
      const auto done = world.collect({"--shard", shard, "--policies", "random"});
      CAPTURE(done.error);
      CHECK(done.code == 0);
      for (const char* name : {"a ", "b ", "c "})
        if (done.output.starts_with(name) || done.output.find(std::string("\n") + name) != std::string::npos)
          ++tasks;
    }
    CHECK(tasks == 3);
    CHECK(world.tasks_of_data() == std::set<std::string>{"a", "b", "c"});
    const auto summary = programs::run("mtmc-collect", {"--summary", "--output", world.output()});
    CHECK(shown(summary.output) == Contains("tasks               3\nruns                3\n"));
  }

  TEST_CASE("mtmc-collect: a task that cannot be judged is reported, the others go on") {
    World world{"columns"};
    world.files.insert(
        world.files.begin(),
        world.tasks.add("broken", columns_task("broken"),
                        "void columns(const float* in, float* out, int M, int N) { nonsense; }\n"
                        "//@ launch columns(in, out, M, N)\n"));
    const auto done = world.collect({"--policies", "random"});
    CHECK(done.code == 2);
    CHECK(shown(done.error) == Contains("broken"));
    CHECK(shown(done.output) == Contains("columns random-0: 2 steps"));
    CHECK(shown(done.output) == Contains("1 tasks were skipped"));
  }

  TEST_CASE("mtmc-collect: without anybody to judge, that is said once") {
    const World world{"a", "b"};
    const auto done = world.collect({"--compiler", "/no/such/compiler"});
    CHECK(done.code == 3);
    CHECK(shown(done.error) == Contains("/no/such/compiler"));
    CHECK(std::count(done.error.begin(), done.error.end(), '\n') == 1);
    CHECK(shown(done.output) == Contains("2 tasks were skipped"));
  }

  TEST_CASE("mtmc-collect: the end of the time is no failure, and is told") {
    const World world{"columns"};
    const auto cut = world.collect({"--seconds", "0.01"});
    CHECK(cut.code == 0);
    CHECK(shown(cut.output) == Contains("2 runs are left; the same command goes on"));
    const auto done = world.collect({"--seconds", "200", "--quiet"});
    CHECK(done.code == 0);
    CHECK(shown(done.output) != Contains("columns anew-0"));
    CHECK(shown(done.output) == Contains("runs                2\n"));
  }

} // TEST_SUITE
