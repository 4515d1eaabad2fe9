// mtmc-optimize with language models, as a user meets it: what is shown before anything is sent, what is said
// when the endpoint fails, and with which exit code.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../net/fake_server.hpp"
#include "programs.hpp"

using doctest::Contains;
using programs::columns_task;
using programs::json_lines;
using programs::shown;
using programs::Tasks;

namespace {

const std::string nowhere = "http://127.0.0.1:9/v1";

/// Runs the program on one small task with the coder that asks `url`.
mtmc::ProcessResult ask(const Tasks& tasks, const std::string& url, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{
      tasks.path("columns.json"), "--coder", "openai", "--endpoint", url, "--model", "model-1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return programs::run("mtmc-optimize", std::move(arguments), {"THE_KEY=sk-secret"});
}

Tasks one_task() {
  Tasks tasks;
  tasks.add("columns", columns_task("columns"));
  return tasks;
}

/// Without this machine's figures, which are measured anew each time.
std::string without_figures(std::string text) {
  for (const char* const start : {"read bandwidth", "f32 rate", "one call takes"})
    if (const auto at = text.find(start); at != std::string::npos) text.erase(at, text.find('\n', at) - at);
  return text;
}

std::string says(const std::string& content) {
  return nlohmann::json{{"choices", {{{"message", {{"content", content}}}, {"finish_reason", "stop"}}}},
                        {"usage", {{"prompt_tokens", 1000}, {"completion_tokens", 500}}}}
      .dump();
}

} // namespace

TEST_CASE("--show-prompt prints what is sent then, and sends nothing") {
  const auto tasks = one_task();
  fake::Server server(
      [](const fake::Request&, fake::Connection& connection) { connection.answer(200, says("No idea.")); });
  const auto prompt = ask(tasks, server.url("/v1"), {"--show-prompt"});
  CAPTURE(prompt.error);
  REQUIRE(prompt.code == 0);
  CHECK(server.request_count() == 0);
  CHECK(shown(prompt.output) == Contains("# Its speed"));
  const auto run = ask(tasks, server.url("/v1"), {"--steps", "1", "--quiet", "--repairs", "0"});
  CHECK(run.code == 0);
  REQUIRE(server.request_count() == 3); // a rewriting, of which three are asked for
  // The three are sent at once, and the first is not always the first to arrive.
  const auto requests = server.requests();
  CHECK(std::any_of(requests.begin(), requests.end(), [&](const fake::Request& request) {
    const auto body = nlohmann::json::parse(request.body);
    std::string sent;
    for (const auto& message : body["messages"])
      sent += "----- " + message["role"].get<std::string>() + " -----\n" +
              message["content"].get<std::string>() + '\n';
    return without_figures(prompt.output) == without_figures(sent);
  }));
}

TEST_CASE("--plain-prompt tells nothing of this machine") {
  const auto tasks = one_task();
  const auto prompt = ask(tasks, nowhere, {"--show-prompt", "--plain-prompt"});
  REQUIRE(prompt.code == 0);
  CHECK(shown(prompt.output) != Contains("# Hardware"));
  CHECK(shown(prompt.output) != Contains("# Its speed"));
  CHECK(shown(prompt.output) == Contains("# The kernel"));
  CHECK(ask(tasks, nowhere, {"--show-prompt", "--plain-prompt"}).output == prompt.output);
}

TEST_CASE("--dry-run tells the most a run could take, in tokens and money, and sends nothing") {
  auto tasks = one_task();
  const auto prices =
      tasks.add_text("prices.json", R"([{"model": "model-*", "prompt": 1, "completion": 10}])");
  const auto text = ask(tasks, nowhere, {"--dry-run", "--prices", prices, "--steps", "3"});
  CAPTURE(text.error);
  REQUIRE(text.code == 0);
  CHECK(shown(text.output) == Contains("a request takes at most "));
  CHECK(shown(text.output) == Contains("the run asks for at most 18 drafts")); // 3 steps, 3 samples, repaired
  CHECK(shown(text.output) == Contains(" tokens, cost "));
  const auto json = ask(tasks, nowhere, {"--dry-run", "--prices", prices, "--steps", "3", "--json"});
  const auto line = json_lines(json.output).at(0);
  CHECK(line["max_drafts"] == 18);
  CHECK(line["max_tokens_a_draft"].get<int>() > 16384);
  CHECK(line["max_cost"].get<double>() == doctest::Approx(18 * line["max_cost_a_draft"].get<double>()));
}

TEST_CASE("--dry-run over several tasks ends with their sum, and says where no price fits") {
  auto tasks = one_task();
  const auto one = ask(tasks, nowhere, {"--dry-run"});
  REQUIRE(one.code == 0);
  CHECK(shown(one.output) != Contains("tasks together"));
  const auto second = tasks.add("second", columns_task("second"));
  const auto prices =
      tasks.add_text("prices.json", R"([{"model": "model-*", "prompt": 1, "completion": 10}])");
  const std::vector<std::string> three_steps{second,    "--dry-run", "--prices",  prices,
                                             "--steps", "3",         "--samples", "1"};
  const auto both = ask(tasks, nowhere, three_steps);
  REQUIRE(both.code == 0);
  CHECK(both.error.empty());
  const auto last = both.output.substr(both.output.rfind('\n', both.output.size() - 2) + 1);
  CHECK(shown(last) == Contains("all 2 tasks together: at most 12 drafts: "));
  CHECK(shown(last) == Contains(" tokens, cost "));
  auto arguments = three_steps;
  arguments.push_back("--json");
  CHECK(json_lines(ask(tasks, nowhere, arguments).output).size() == 2);

  const auto others = tasks.add_text("others.json", R"([{"model": "else", "prompt": 1, "completion": 10}])");
  const auto unpriced = ask(tasks, nowhere, {"--dry-run", "--prices", others});
  CHECK(unpriced.code == 0);
  CHECK(shown(unpriced.error) == Contains(("no price in " + others + " fits model-1").c_str()));
}

TEST_CASE("what is missing or contradicts itself is bad usage, and says what to type") {
  const auto tasks = one_task();
  const auto task = tasks.path("columns.json");
  const auto refused = [&](std::vector<std::string> arguments, const char* reason) {
    arguments.insert(arguments.begin(), task);
    const auto done = programs::run("mtmc-optimize", arguments, {"OPENAI_BASE_URL=", "OPENAI_MODEL="});
    CAPTURE(reason);
    CHECK(done.code == 2);
    CHECK(shown(done.error) == Contains(reason));
  };
  refused({"--coder", "openai"}, "Give --endpoint and --model");
  refused({"--coder", "openai", "--endpoint", nowhere}, "--model is missing");
  refused({"--coder", "openai", "--model", "m"}, "--endpoint is missing");
  refused({"--coder", "openai", "--from-environment"}, "OPENAI_MODEL is not set");
  refused({"--policy", "chat", "--policy-endpoint", nowhere}, "--policy-model (or --model) is missing");
  refused({"--coder", "openai", "--endpoint", "localhost:9", "--model", "m"},
          "such as http://localhost:8000/v1 (--endpoint)");
  refused({"--show-prompt"}, "need --coder openai");
  refused({"--play", task}, "need --coder openai");
  const std::vector<std::string> asking{"--coder", "openai", "--endpoint", nowhere, "--model", "m"};
  const auto asking_and = [&](std::vector<std::string> more) {
    more.insert(more.begin(), asking.begin(), asking.end());
    return more;
  };
  refused(asking_and({"--key-variable", "NOPE"}), "the environment variable NOPE is not set");
  refused(asking_and({"--key-variable", "NOPE", "--dry-run"}), "leave --key-variable out");
  refused(asking_and({"--key-variable", "OPENAI_MODEL"}), "the environment variable OPENAI_MODEL is empty");
  refused(asking_and({"--batch", tasks.path("batch")}), "--batch needs --output");
  refused(asking_and({"--batch", tasks.path("batch"), "--stream"}), "--stream");
  refused(asking_and({"--batch", tasks.path("batch"), "--play", task}), "--play");
  refused(asking_and({"--batch", tasks.path("batch"), "--output", tasks.path("o"), "--policy", "chat"}),
          "--policy rules, learnt or random");
}

TEST_CASE("a file that is named and cannot be read, or is malformed, is bad usage") {
  auto tasks = one_task();
  for (const char* const option : {"--prices", "--play", "--policy-card", "--ca-file", "--examples"}) {
    CAPTURE(option);
    const auto done = ask(tasks, nowhere, {option, tasks.path("nothere")});
    CHECK(done.code == 2);
    CHECK(shown(done.error) == Contains(option));
    CHECK(shown(done.error) == Contains("nothere cannot be read: No such file or directory"));
  }
  CHECK(shown(ask(tasks, nowhere, {"--prices", tasks.folder()}).error) == Contains("is a folder"));
  const auto prices = tasks.add_text("prices.json", R"([{"model": "m*", "promt": 1}])");
  const auto done = ask(tasks, nowhere, {"--prices", prices});
  CHECK(done.code == 2);
  CHECK(shown(done.error) == Contains("the price of m* has the unknown field \"promt\""));
}

TEST_CASE("an endpoint that refuses the key, or the model, ends the run at once and says so") {
  const auto tasks = one_task();
  fake::Server server([](const fake::Request&, fake::Connection& connection) {
    connection.answer(401, R"({"error": {"message": "wrong key", "code": "invalid_api_key"}})");
  });
  const std::vector<std::string> one_draft{"--quiet", "--key-variable", "THE_KEY", "--samples", "1"};
  auto done = ask(tasks, server.url("/v1"), one_draft);
  CHECK(done.code == 3);
  CHECK(server.request_count() == 1);
  CHECK(server.requests().front().header("Authorization") == "Bearer sk-secret");
  CHECK(shown(done.error) == Contains("HTTP 401: wrong key"));
  CHECK(shown(done.error) == Contains("Check the key"));
  CHECK(shown(done.error) == Contains(server.url("/v1").c_str()));
  CHECK(shown(done.error + done.output) != Contains("sk-secret"));

  server.script([](const fake::Request&, fake::Connection& connection) {
    connection.answer(404, R"({"error": {"message": "there is no model-1"}})");
  });
  done = ask(tasks, server.url("/v1"), one_draft);
  CHECK(done.code == 3);
  CHECK(server.request_count() == 2);
  CHECK(shown(done.error) == Contains("there is no model-1"));
  CHECK(shown(done.error) == Contains("Check the model's name"));
}

TEST_CASE("a server that gives no usable answer ends the run after a few drafts, not after all of them") {
  const auto tasks = one_task();
  fake::Server server([](const fake::Request&, fake::Connection& connection) {
    connection.answer(500, R"({"error": {"message": "out of memory"}})", {{"x-should-retry", "false"}});
  });
  const auto done = ask(tasks, server.url("/v1"), {"--quiet", "--steps", "10", "--patience", "0"});
  CHECK(done.code == 3);
  CHECK(server.request_count() == 3);
  CHECK(shown(done.error) == Contains("no usable answer to 3 drafts in a row"));
  CHECK(shown(done.error) == Contains("out of memory"));
  CHECK(shown(done.error) == Contains("Correct what the message names"));

  const auto soon_over = ask(tasks, server.url("/v1"), {"--quiet", "--steps", "1", "--samples", "1"});
  CHECK(soon_over.code == 3);
  CHECK(shown(soon_over.error) == Contains("the endpoint answered no draft; the last time: HTTP 500"));
}

TEST_CASE("the error that ended a run is said once, last, and no kernel hides it that is not faster") {
  const auto tasks = one_task();
  fake::Server server([](const fake::Request&, fake::Connection& connection) {
    connection.answer(401, R"({"error": {"message": "wrong key"}})");
  });
  const auto done = ask(tasks, server.url("/v1"), {"--key-variable", "THE_KEY"});
  CHECK(done.code == 3);
  CHECK(done.error.starts_with("error: "));
  CHECK(shown(done.error) == Contains("HTTP 401: wrong key"));
  CHECK(shown(done.output) == Contains("ended by  an error"));
  CHECK(shown(done.output) != Contains("[mtmc."));
  CHECK(shown(done.output) != Contains("void columns"));
}

TEST_CASE("what was recorded is played without the server, as long as the same is asked") {
  const auto tasks = one_task();
  const auto cassette = tasks.path("cassette.jsonl");
  std::string url;
  mtmc::ProcessResult recorded;
  const auto three_steps_and = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--steps", "3", "--samples", "1", "--quiet"});
    return more;
  };
  {
    fake::Server server(
        [](const fake::Request&, fake::Connection& connection) { connection.answer(200, says("No idea.")); });
    url = server.url("/v1");
    recorded =
        ask(tasks, url,
            three_steps_and({"--json", "--plain-prompt", "--record", cassette, "--key-variable", "THE_KEY"}));
    REQUIRE(recorded.code == 0);
    CHECK(server.request_count() == 6);
  }
  CHECK(shown(mtmc::read_file(cassette)) != Contains("sk-secret"));
  auto done = ask(tasks, nowhere, three_steps_and({"--json", "--plain-prompt", "--play", cassette}));
  CHECK(done.code == 0);
  CHECK(done.error.empty());
  const auto then = json_lines(recorded.output).at(0);
  const auto now = json_lines(done.output).at(0);
  for (const char* const field : {"tokens", "cost", "steps", "best_id", "stop_reason"})
    CHECK(now[field] == then[field]);

  done = ask(tasks, nowhere, three_steps_and({"--play", cassette}));
  CHECK(done.code == 3);
  CHECK(shown(done.error) == Contains("The nearest is"));
  CHECK(shown(done.error) == Contains("6 answers of"));
  CHECK(shown(done.error) == Contains("without --plain-prompt"));
}

TEST_CASE("--max-cost ends the run before it could be passed, with what was found and exit code 0") {
  auto tasks = one_task();
  const auto prices = tasks.add_text("prices.json", R"([{"model": "*", "prompt": 1, "completion": 1000}])");
  fake::Server server(
      [](const fake::Request&, fake::Connection& connection) { connection.answer(200, says("No idea.")); });
  // 0.501 an answer, and 1 set aside for its 1000 tokens.
  const auto done = ask(tasks, server.url("/v1"),
                        {"--prices", prices, "--max-cost", "2.2", "--answer-tokens", "1000", "--repairs", "0",
                         "--steps", "20", "--patience", "0"});
  CHECK(done.code == 0);
  CHECK(server.request_count() == 3);
  CHECK(shown(done.output) == Contains("the limit is 2.2"));
  CHECK(shown(done.output) == Contains("ended by  the budget: cost"));
}

TEST_CASE("Ctrl-C in the middle of a request ends the run within 200 ms, and keeps what was found") {
  const auto tasks = one_task();
  fake::Server server([](const fake::Request&, fake::Connection& connection) { connection.hang(); });
  const auto program = std::string(MTMC_EXAMPLES) + "/mtmc-optimize";
  const auto url = server.url("/v1");
  const auto task = tasks.path("columns.json");
  const auto runs = tasks.path("runs");
  const auto log = tasks.path("log");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(file, 1);
    ::dup2(file, 2);
    ::execl(program.c_str(), program.c_str(), task.c_str(), "--coder", "openai", "--endpoint", url.c_str(),
            "--model", "m", "--quiet", "--json", "--output", runs.c_str(), nullptr);
    ::_exit(127);
  }
  const bool asked = server.wait_for_requests(1);
  const auto begun = std::chrono::steady_clock::now();
  ::kill(child, SIGINT);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  const auto took = std::chrono::steady_clock::now() - begun;
  REQUIRE(asked);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(took < std::chrono::milliseconds(200));
  CHECK(shown(mtmc::read_file(log)) == Contains("--resume goes on"));
  CHECK(nlohmann::json::parse(mtmc::read_file(runs + "/columns/result.json"))["stop_reason"] == "cancelled");
}
