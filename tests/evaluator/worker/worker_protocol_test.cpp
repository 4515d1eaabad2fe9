// The protocol between host and worker: how messages are written, and what becomes of workers in another
// language that keep to it, or do not.
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/kernel_evaluator_options_json.hpp>
#include <mtmc/evaluator/worker/worker_protocol.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/processes.hpp"
#include "../worker_tasks.hpp"

using namespace mtmc;

namespace {

const std::string workers = std::string(MTMC_REPOSITORY) + "/tests/evaluator/workers/";
const bool have_python = run_process({.arguments = {"python3", "--version"}}).succeeded();

WorkerOptions minimal() { return {.command = {"python3", workers + "minimal_worker.py"}, .spares = 0}; }
WorkerOptions hostile(const std::string& phase = "evaluate", const std::string& mode = "") {
  WorkerOptions options{.command = {"python3", workers + "hostile_worker.py", phase, mode}, .spares = 0};
  options.start_seconds = 20;
  options.prepare_seconds = 1;
  options.compile_seconds = 10;
  options.evaluation_seconds = 20;
  options.cancel_seconds = 0.3;
  return options;
}

Evaluation judge(WorkerEvaluator& evaluator, const std::string& source, std::stop_token stop = {}) {
  const auto task = worker_tasks::rows();
  const Kernel candidate{languages::cpp, source, {}};
  return evaluator.evaluate({task, candidate, task.kernel, Purpose::explore, {}}, std::move(stop));
}

template <class Call> std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("every double survives, also those JSON has no number for") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, infinity, -infinity}) {
    const auto line = worker_line({{"type", "log"}, {"list", {value, {{"deeper", value}}}}});
    CHECK(line.back() == '\n');
    CHECK(line.find('\n') == line.size() - 1);
    const auto back = parse_worker_line(line.substr(0, line.size() - 1));
    CHECK(back["list"][0].get<double>() == value);
    CHECK(std::signbit(back["list"][1]["deeper"].get<double>()) == std::signbit(value));
  }
  const auto line = worker_line({{"type", "log"}, {"number", std::nan("")}});
  CHECK(std::isnan(parse_worker_line(line)["number"].get<double>()));

  Evaluation evaluation;
  evaluation.sizes.resize(1);
  evaluation.sizes[0].size.symbols = {{"N", 1}};
  evaluation.sizes[0].largest_error = infinity;
  nlohmann::json message{{"type", "evaluation"}};
  message["evaluation"] = evaluation;
  CHECK(parse_worker_line(worker_line(message))["evaluation"].get<Evaluation>() == evaluation);
}

TEST_CASE("what is no message is refused") {
  for (const auto* line :
       {"", "null", "[]", "{}", "{\"type\":1}", "{\"type\":\"x\"", "\xff", "{\"type\":\"x\"} x"})
    CHECK_THROWS_AS((void)parse_worker_line(line), Error);
  CHECK_THROWS_AS((void)parse_worker_line(std::string(100000, '[')), Error);
}

TEST_CASE("errors and options survive the way") {
  const Error error("mtmc.task.002", "what", "remedy", "place");
  CHECK(std::string(worker_error(worker_error(error)).what()) == error.what());
  CHECK(worker_error(nlohmann::json{}).id() == "mtmc.worker.005");
  const auto about = worker_error(worker_error(error.about("KernelEvaluatorOptions::start_seconds")));
  CHECK(about.option() == "KernelEvaluatorOptions::start_seconds");
  CHECK(about.category() == ErrorCategory::input);
  const Error own("host.hook.001", "the table is empty", "Fill it");
  CHECK(worker_error(worker_error(own)).category() == ErrorCategory::surroundings);
  CHECK(worker_error(worker_error(own.as(ErrorCategory::input))).category() == ErrorCategory::input);
  // As workers of version 0.1 write them, and with what a later one may know.
  const nlohmann::json older{{"id", "mtmc.task.002"}, {"message", "what"}};
  CHECK(worker_error(older).option().empty());
  CHECK(worker_error(older).category() == ErrorCategory::input);
  const nlohmann::json later{{"id", "mtmc.task.002"}, {"message", "what"}, {"category", "cosmic"}};
  CHECK(worker_error(later).category() == ErrorCategory::input);

  KernelEvaluatorOptions options{
      .confidence = 0.9, .cold = false, .red_zone_bytes = 64, .seed = ~std::uint64_t{0}};
  detail::Json json;
  detail::write_value(json, options);
  CHECK(json.size() == 4);
  KernelEvaluatorOptions back;
  detail::read_value(parse_json(json.dump(), ""), back, "");
  CHECK(back == options);
  json["confidense"] = 0.9;
  CHECK(contains(error_of([&] { detail::read_value(json, back, "options"); }),
                 "there is no option \"confidense\""));
  CHECK(random_worker_token().size() == 32);
  CHECK(random_worker_token() != random_worker_token());
}

TEST_CASE("the protocol's description is enough to write a worker in another language" *
          doctest::skip(!have_python)) {
  auto options = minimal();
  std::vector<std::string> said;
  options.log = [&](std::string_view line) { said.emplace_back(line); };
  options.prepared_tasks = 1;
  {
    WorkerEvaluator evaluator{std::move(options)};
    CHECK(evaluator.device().name == "paper");
    CHECK(evaluator.device().kind == "cpu");
    CHECK(evaluator.identity() == "python judge");
    evaluator.prepare(worker_tasks::rows(), {});
    const auto right = judge(evaluator, "right");
    CHECK(right.correct());
    CHECK(right.seconds == 0.1);
    CHECK(right.speed_up->low == 1.25);
    REQUIRE(right.sizes.size() == 1);
    CHECK(right.sizes[0].largest_error == std::numeric_limits<double>::infinity());
    CHECK(to_string(right.sizes[0].size) == "K=48 M=64");
    const auto wrong = judge(evaluator, "wrong");
    CHECK(wrong.verdict == Verdict::wrong_result);
    CHECK(wrong.diagnostics.at(0).remedy == "Say right");
    // Another task, an error, and the first one again, which had to be forgotten.
    auto task = worker_tasks::rows("other");
    CHECK(evaluator.evaluate({task, task.kernel, std::nullopt, {}, {}}, {}).correct());
    task.sizes.clear();
    CHECK(contains(error_of([&] { evaluator.prepare(task, {}); }),
                   "[mtmc.task.002] the task has no sizes. Add one"));
    CHECK(judge(evaluator, "right").correct());
    task.compare = [](const auto&...) { return std::string(); };
    const auto error = error_of([&] { evaluator.prepare(task, {}); });
    CHECK(contains(error, "mtmc.worker.004"));
    CHECK(contains(error, "play_role"));
  }
  CHECK(said == std::vector<std::string>{"judging rows", "judging rows", "judging other", "judging rows"});
}

TEST_CASE("whatever is no answer costs the candidate its verdict, and the next one is judged" *
          doctest::skip(!have_python)) {
  struct Case {
    std::string mode;
    std::string reason;
  };
  const std::vector<Case> cases{{"garbage", "wrote something that is not a message: \"Segmentation fault"},
                                {"binary", "wrote something that is not a message"},
                                {"deep", "wrote something that is not a message"},
                                {"half", "exited with code 0 in the middle of a message"},
                                {"flood", "wrote a message of more than 64 MiB"},
                                {"exit", "exited with code 7; it last wrote: I have had enough"},
                                {"kill", "was killed by signal 9"},
                                {"close", "closed its output"},
                                {"no token", "without the token"},
                                {"wrong token", "without the token"},
                                {"wrong request", "answered another request"},
                                {"no evaluation", "wrote something that is not an evaluation"},
                                {"no verdict", "an evaluation without a verdict"},
                                {"other answer", "said \"prepared\" without being asked"},
                                {"device lost", "lost its device: the device fell off the bus"}};
  WorkerEvaluator evaluator{hostile()};
  for (const auto& [mode, reason] : cases) {
    const auto& shown = mode;
    CAPTURE(shown);
    const auto answer = judge(evaluator, "mode: " + mode);
    CHECK(answer.verdict == Verdict::crashed);
    CHECK(answer.rule == "worker");
    REQUIRE(answer.diagnostics.size() == 1);
    CAPTURE(answer.diagnostics[0].message);
    CHECK(contains(answer.diagnostics[0].message, reason));
    CHECK_FALSE(answer.diagnostics[0].remedy.empty());
    CHECK(judge(evaluator, "right").correct());
  }
}

TEST_CASE("a worker that gives no answer costs the candidate its verdict at the deadline" *
          doctest::skip(!have_python)) {
  auto options = hostile();
  options.compile_seconds = 0.25;
  options.evaluation_seconds = 0.25;
  WorkerEvaluator evaluator{std::move(options)};
  evaluator.prepare(worker_tasks::rows(), {});
  const auto silent = judge(evaluator, "mode: silent");
  CHECK(silent.verdict == Verdict::timeout);
  CHECK(contains(silent.diagnostics.at(0).message, "within 500 ms"));
}

TEST_CASE("an answer too many costs the worker its place, and no candidate anything" *
          doctest::skip(!have_python)) {
  WorkerEvaluator evaluator{hostile()};
  CHECK(judge(evaluator, "mode: twice").correct());
  std::this_thread::sleep_for(std::chrono::milliseconds{200});
  CHECK(judge(evaluator, "right").correct());
  CHECK(judge(evaluator, "mode: bye").correct());
  CHECK(judge(evaluator, "right").correct());
}

TEST_CASE("a gigabyte on standard error is read, dropped and no reason to wait" *
          doctest::skip(!have_python)) {
  WorkerEvaluator evaluator{hostile()};
  CHECK(judge(evaluator, "mode: stderr").correct());
}

TEST_CASE("everything a worker started is killed with it, whatever its process group" *
          doctest::skip(!have_python)) {
  WorkerEvaluator evaluator{hostile()};
  const auto answer = judge(evaluator, "mode: children");
  CHECK(answer.verdict == Verdict::crashed);
  const auto& message = answer.diagnostics.at(0).message;
  pid_t first = 0;
  pid_t second = 0;
  const auto at = message.find("children ");
  REQUIRE(at != std::string::npos);
  REQUIRE(std::sscanf(message.c_str() + at, "children %d %d", &first, &second) == 2);
  CHECK(processes::ends(first));
  CHECK(processes::ends(second));
}

TEST_CASE("a worker that does not stop when it is asked to is killed" * doctest::skip(!have_python)) {
  WorkerEvaluator evaluator{hostile()};
  evaluator.prepare(worker_tasks::rows(), {});
  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    source.request_stop();
  });
  CHECK(contains(error_of([&] { (void)judge(evaluator, "mode: slow stop", source.get_token()); }),
                 "mtmc.evaluator.003"));
  CHECK(judge(evaluator, "right").correct());
}

TEST_CASE("another version of the protocol is an error that names both" * doctest::skip(!have_python)) {
  WorkerEvaluator evaluator{hostile("hello", "version")};
  const auto error = error_of([&] { (void)evaluator.device(); });
  CHECK(contains(error, "mtmc.worker.003"));
  CHECK(contains(error, "version 2"));
  CHECK(contains(error, "version 1"));
}

TEST_CASE("three workers lost in a row with no candidate at fault are an error with their last words" *
          doctest::skip(!have_python)) {
  const std::vector<std::pair<std::string, std::string>> cases{{"hello", "exit"},
                                                               {"hello", "wrong token"},
                                                               {"prepare", "garbage"},
                                                               {"prepare", "kill"},
                                                               {"prepare", "device lost"}};
  for (const auto& [phase, mode] : cases) {
    const auto& shown_phase = phase;
    CAPTURE(shown_phase);
    const auto& shown = mode;
    CAPTURE(shown);
    WorkerEvaluator evaluator{hostile(phase, mode)};
    const auto error = error_of([&] { evaluator.prepare(worker_tasks::rows(), {}); });
    CAPTURE(error);
    CHECK(contains(error, "mtmc.worker.002"));
    CHECK(contains(error, "3 workers in a row"));
    if (mode != "exit") continue;
    CHECK(contains(error, "I have had enough"));
    // And again, as it may have been mended since.
    CHECK(contains(error_of([&] { evaluator.prepare(worker_tasks::rows(), {}); }), "mtmc.worker.002"));
  }
}

TEST_CASE("a worker that loses its device while it prepares a task is replaced" *
          doctest::skip(!have_python)) {
  const TemporaryFolder folder;
  WorkerEvaluator evaluator{hostile("prepare", "device lost once: " + folder.path() + "/lost")};
  CHECK(judge(evaluator, "right").correct());
}

TEST_CASE("a worker that never gets ready is not waited for beyond its deadline" *
          doctest::skip(!have_python)) {
  auto options = hostile("hello", "silent");
  options.start_seconds = 0.4;
  CHECK(contains(error_of([&] { (void)WorkerEvaluator{options}.device(); }), "no answer in time"));
  options = hostile("prepare", "silent");
  options.prepare_seconds = 0.2;
  WorkerEvaluator evaluator{options};
  CHECK(contains(error_of([&] { (void)judge(evaluator, "right"); }), "no answer in time"));
}

TEST_CASE("nothing of a hostile worker is left behind" * doctest::skip(!have_python)) {
  const processes::Started started;
  const auto descriptors = processes::open_descriptors();
  for (const std::string mode : {"flood", "close", "kill"}) {
    WorkerEvaluator evaluator{hostile()};
    CHECK_FALSE(judge(evaluator, "mode: " + mode).correct());
  }
  {
    // Never used, and destroyed while workers start.
    WorkerEvaluator unused{hostile()};
    auto options = minimal();
    options.workers = 3;
    WorkerEvaluator starting{std::move(options)};
    (void)starting.device();
  }
  CHECK(processes::open_descriptors() == descriptors);
  CHECK(started.now().empty());
}
