// Batch runs of mtmc-optimize: a folder of tasks, several rounds of carrying files, kill -9 in between.

#include <mtmc/core/kernel.hpp>
#include <mtmc/support/philox.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <optional>
#include <set>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "played_batch.hpp"
#include "programs.hpp"

using doctest::Contains;
using programs::json_lines;
using programs::shown;

namespace {

/// A folder with tasks, a batch and an output.
struct Desk {
  explicit Desk(const std::vector<std::string>& names) {
    mtmc::create_folders(tasks.path("tasks"));
    for (const auto& name : names) tasks.add("tasks/" + name, task(name));
    prices = tasks.add_text("prices.json", R"([{"model": "*", "prompt": 1, "completion": 1}])");
  }
  static nlohmann::json task(const std::string& name) {
    auto json = programs::columns_task(name);
    json["name"] = name;
    return json;
  }

  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{tasks.path("tasks"),
                                 "--coder",
                                 "openai",
                                 "--endpoint",
                                 "http://127.0.0.1:9/v1",
                                 "--model",
                                 "model-1",
                                 "--batch",
                                 batch(),
                                 "--output",
                                 tasks.path("runs"),
                                 "--prices",
                                 prices,
                                 "--steps",
                                 "3",
                                 "--patience",
                                 "3",
                                 "--samples",
                                 "2",
                                 "--json",
                                 "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] std::string batch() const { return tasks.path("batch"); }
  [[nodiscard]] mtmc::ProcessResult run(const std::vector<std::string>& more = {}) const {
    return programs::run("mtmc-optimize", arguments(more));
  }

  programs::Tasks tasks;
  std::string prices;
};

/// Runs the program for at most so long, then kills it. Its exit code; nothing if it was killed.
std::optional<int> run_until_killed(std::vector<std::string> arguments, std::chrono::milliseconds time,
                                    const std::string& log) {
  arguments.insert(arguments.begin(), std::string(MTMC_EXAMPLES) + "/mtmc-optimize");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::vector<char*> words;
    for (auto& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, 1);
    ::dup2(file, 2);
    ::execv(words.front(), words.data());
    ::_exit(127);
  }
  int status = 0;
  for (const auto until = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < until;
       std::this_thread::sleep_for(std::chrono::milliseconds(2)))
    if (::waitpid(child, &status, WNOHANG) == child) return WEXITSTATUS(status);
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return std::nullopt;
}

std::string text_of_requests(const Desk& desk) {
  std::string text;
  for (const auto& request : played::batch_requests(desk.batch()))
    text += request.file + ' ' + request.id + '\n';
  return text;
}

/// What must hold of a batch run that has ended.
void check_end(const Desk& desk, const played::BatchService& service, const std::vector<std::string>& names) {
  CHECK(service.unexpected().empty());
  std::set<std::string> ids;
  for (const auto& request : played::batch_requests(desk.batch())) {
    CAPTURE(request.id);
    CHECK(ids.insert(request.id).second);
  }
  // Ten requests a task, of which the one that expired is the same as another.
  CHECK(ids.size() == 10 * names.size());
  for (const auto& name : names) {
    CAPTURE(name);
    const auto result =
        nlohmann::json::parse(mtmc::read_file(desk.tasks.path("runs/" + name + "/result.json")));
    CHECK(result["tokens"] == service.tokens(name));
    CHECK(result["cost"].get<double>() ==
          doctest::Approx(1e-6 * static_cast<double>(service.tokens(name))).epsilon(1e-9));
    CHECK(result["steps"] == 3);
    CHECK(result["stop_reason"] == "step_limit");
    CHECK(result["verdict"] == "correct");
    CHECK(result["best_id"] == mtmc::Kernel{mtmc::languages::cpp, played::columns_rows, {}}.id());
    CHECK(result["speedup"] > 1.2);
  }
}

} // namespace

TEST_CASE("a batch run says what to carry where, takes no step while it waits, and goes on with what comes") {
  const Desk desk({"alone"});
  played::BatchService service(desk.batch());
  auto done = desk.run();
  CAPTURE(done.error);
  REQUIRE(done.code == 75);
  CHECK(shown(done.error) == Contains("2 requests wait for their answers"));
  CHECK(shown(done.error) == Contains("requests-1.jsonl"));
  CHECK(shown(done.error) == Contains((desk.batch() + "/answers").c_str()));
  CHECK(shown(done.error) == Contains("--resume"));
  auto summary = json_lines(done.output).at(0);
  CHECK(summary["stop_reason"] == "waiting_for_answers");
  CHECK(summary["steps"] == 0);
  CHECK(summary["tokens"] == 0);

  // Nothing came: nothing is asked, and it says so again.
  const auto asked = text_of_requests(desk);
  done = desk.run({"--resume"});
  CHECK(done.code == 75);
  CHECK(shown(done.error) == Contains("2 requests wait for their answers"));
  CHECK(text_of_requests(desk) == asked);

  // What is no answer is told and passed over.
  mtmc::write_file_atomic(desk.batch() + "/answers/notes.jsonl", "{\"custom_id\": \nnot a line of a batch\n");
  done = desk.run({"--resume"});
  CHECK(done.code == 75);
  CHECK(shown(done.error) == Contains("notes.jsonl, line 1"));
  CHECK(text_of_requests(desk) == asked);

  int sessions = 0;
  while (done.code == 75) {
    REQUIRE(++sessions < 20);
    CHECK(service.answer() > 0);
    done = desk.run({"--resume"});
  }
  CAPTURE(done.error);
  CHECK(done.code == 0);
  CHECK(service.rounds() >= 3);
  check_end(desk, service, {"alone"});

  // Once more: nothing new.
  const auto after = text_of_requests(desk);
  done = desk.run({"--resume"});
  CHECK(done.code == 0);
  CHECK(text_of_requests(desk) == after);
  CHECK(json_lines(done.output).at(0)["tokens"] == service.tokens("alone"));
}

TEST_CASE("a folder of tasks in a batch, killed and resumed between and within rounds, pays for each answer "
          "once") {
  const std::vector<std::string> names{"first", "second", "third"};
  const Desk desk(names);
  played::BatchService service(desk.batch());
  mtmc::PhiloxEngine random{3};
  int kills = 0;
  constexpr unsigned first_longest = 150;
  unsigned longest = first_longest;
  std::string log;
  for (;;) {
    REQUIRE(kills < 300);
    const auto time = std::chrono::milliseconds(random() % longest);
    const auto code = run_until_killed(desk.arguments({"--resume"}), time, desk.tasks.path("log"));
    log = mtmc::read_file(desk.tasks.path("log"));
    CAPTURE(log);
    if (!code) {
      ++kills;
      // Later and later, until even a slow machine gets to the end of its round.
      longest += longest / 2;
      continue;
    }
    longest = first_longest;
    if (*code == 0) break;
    REQUIRE(*code == 75);
    // Answers come as they like.
    CHECK(service.answer(2 + random() % 8) > 0);
  }
  CHECK(kills > 3);
  CHECK(service.rounds() >= 3);
  MESSAGE("killed " << kills << " times, " << service.rounds() << " rounds");
  check_end(desk, service, names);
}
