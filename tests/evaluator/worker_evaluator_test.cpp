// WorkerEvaluator with real worker processes: a judge of C++ functions that do to their process what a kernel
// on a device may do to it.
#include <mtmc/core/any.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>
#include <mtmc/evaluator/worker/worker_verdicts.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "../support/npy_bytes.hpp"
#include "../support/processes.hpp"
#include "worker_tasks.hpp"

using namespace mtmc;
using worker_tasks::kernel;

namespace {

const std::string program = std::string(MTMC_TEST_PROGRAMS) + "/worker_program";

WorkerOptions fake_workers() {
  return {.command = {program, "--mtmc-worker"}, .backend = "fake", .evaluator_options = {.seed = 42}};
}

Evaluation judge(WorkerEvaluator& evaluator, const std::string& entry,
                 const Task& task = worker_tasks::rows(), std::stop_token stop = {}) {
  return evaluator.evaluate({task, kernel(entry), task.kernel, Purpose::explore, {}}, std::move(stop));
}

template <class Call> std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Waits until so many workers are there and at rest.
std::set<pid_t> settled(const processes::Started& started, std::size_t workers) {
  for (int i = 0; i < 2000 && started.now().size() != workers; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  return started.now();
}

double seconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

TEST_CASE("a worker's answer is the judge's answer") {
  WorkerEvaluator evaluator{fake_workers()};
  CHECK(evaluator.device().name == "fake");
  CHECK(evaluator.device().compute_units == 4);
  CHECK(evaluator.identity() == "kernel_evaluator " + std::to_string(protocol_version));
  CHECK(evaluator.concurrency_limit() == 1);
  evaluator.prepare(worker_tasks::rows(), {});

  const auto right = judge(evaluator, "honest");
  CHECK(right.verdict == Verdict::correct);
  CHECK(right.comparison == Comparison::faster);
  REQUIRE(right.speed_up);
  CHECK(right.speed_up->value == doctest::Approx(2).epsilon(0.05));
  REQUIRE(right.sizes.size() == 2);
  CHECK(right.sizes[0].checked_elements == right.sizes[0].total_elements);
  CHECK(right.environment.contains("load"));

  const auto wrong = judge(evaluator, "wrong");
  CHECK(wrong.verdict == Verdict::wrong_result);
  REQUIRE_FALSE(wrong.diagnostics.empty());
  CHECK_FALSE(wrong.diagnostics.front().remedy.empty());
  CHECK(judge(evaluator, "unheard_of").verdict == Verdict::compile_error);
}

TEST_CASE("what a kernel asks for costs its own verdict, and no worker") {
  const processes::Started workers;
  WorkerEvaluator evaluator{fake_workers()};
  const auto task = worker_tasks::rows();
  evaluator.prepare(task, {});
  const auto before = settled(workers, 2);
  REQUIRE(before.size() == 2);
  const auto judge_text = [&](const std::string& lines) {
    return evaluator.evaluate(
        {task, {languages::cpp, lines + kernel("honest").source, {}}, task.kernel, Purpose::promote, {}}, {});
  };
  // There are 64 MiB of memory; a quarter of what the device says it has would be as much, which leaves none
  // for red zones.
  const auto too_much = judge_text("//@ scratch T: i8[64 * 1048576]\n");
  CHECK(too_much.verdict == Verdict::launch_error);
  CHECK(too_much.rule == refusal_rule::memory);
  CHECK(judge(evaluator, "honest").correct());
  const auto far_too_much = judge_text("//@ scratch T: i8[65 * 1048576]\n");
  CHECK(far_too_much.verdict == Verdict::launch_error);
  CHECK(far_too_much.rule == refusal_rule::launch_lines);
  CHECK(judge(evaluator, "honest").correct());
  // Once, and not for several calls of a group or several sizes at a time.
  CHECK(judge_text("//@ scratch T: i8[28 * 1048576]\n").correct());
  const auto of_host = judge(evaluator, "memory");
  CHECK(of_host.verdict == Verdict::launch_error);
  CHECK(of_host.rule == refusal_rule::memory);
  CHECK(judge(evaluator, "honest").correct());
  CHECK(settled(workers, 2) == before);
}

TEST_CASE("it is an evaluator like any other, also type-erased") {
  AnyEvaluator evaluator{WorkerEvaluator{fake_workers()}};
  const auto task = worker_tasks::rows();
  evaluator.prepare(task, {});
  CHECK(evaluator.evaluate({task, kernel("honest"), std::nullopt, {}, {}}, {}).correct());
  CHECK(evaluator.concurrency_limit() == 1);
  CHECK(evaluator.identity() == "kernel_evaluator " + std::to_string(protocol_version));
}

TEST_CASE("a kernel that ends its judge gets the verdict crashed, and the next one is judged at once") {
  auto options = fake_workers();
  WorkerEvaluator evaluator{std::move(options)};
  evaluator.prepare(worker_tasks::rows(), {});
  for (const std::string entry : {"abort", "exit", "wild", "lost"}) {
    CAPTURE(entry);
    const auto answer = judge(evaluator, entry);
    CHECK(answer.verdict == Verdict::crashed);
    CHECK(answer.rule == "worker");
    REQUIRE(answer.diagnostics.size() == 1);
    CHECK_FALSE(answer.diagnostics[0].remedy.empty());
    CHECK(answer.environment.at("device") == "fake");
    CHECK(answer.environment.contains("protocol"));
    CHECK(judge(evaluator, "honest").correct());
  }
}

TEST_CASE("a spare takes over in far less than the time a worker takes to start") {
  const processes::Started workers;
  WorkerEvaluator evaluator{fake_workers()};
  evaluator.prepare(worker_tasks::rows(), {});
  settled(workers, 2);
  CHECK(judge(evaluator, "abort").verdict == Verdict::crashed);
  CHECK(seconds_of([&] { CHECK(judge(evaluator, "honest").correct()); }) < 2);
  CHECK(settled(workers, 2).size() == 2);
}

TEST_CASE("a kernel that hangs its judge gets the verdict timeout at the deadline") {
  auto options = fake_workers();
  options.compile_seconds = 0.2;
  options.evaluation_seconds = 0.3;
  WorkerEvaluator evaluator{std::move(options)};
  evaluator.prepare(worker_tasks::rows(), {});
  const auto answer = judge(evaluator, "hang");
  CHECK(answer.verdict == Verdict::timeout);
  CHECK(answer.rule == "worker");
  REQUIRE(answer.diagnostics.size() == 1);
  CHECK(answer.diagnostics[0].message.find("500 ms") != std::string::npos);
  CHECK(judge(evaluator, "honest").correct());
}

TEST_CASE("what a kernel prints in its judge's process is not taken for an answer") {
  WorkerEvaluator evaluator{fake_workers()};
  CHECK(judge(evaluator, "print").correct()); // it goes to standard error
}

TEST_CASE("a stop request ends an evaluation, a preparation and the waiting for a worker") {
  auto options = fake_workers();
  options.cancel_seconds = 0.2;
  WorkerEvaluator evaluator{std::move(options)};
  const auto task = worker_tasks::rows();
  evaluator.prepare(task, {});
  {
    std::stop_source source;
    source.request_stop();
    CHECK(error_of([&] {
            (void)judge(evaluator, "honest", task, source.get_token());
          }).find("mtmc.evaluator.003") != std::string::npos);
  }
  std::stop_source source;
  std::string first;
  std::string second;
  {
    std::jthread hanging(
        [&] { first = error_of([&] { (void)judge(evaluator, "hang", task, source.get_token()); }); });
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    std::jthread waiting(
        [&] { second = error_of([&] { (void)judge(evaluator, "honest", task, source.get_token()); }); });
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    source.request_stop();
  }
  CHECK(first.find("mtmc.evaluator.003") != std::string::npos);
  CHECK(second.find("mtmc.evaluator.003") != std::string::npos);
  CHECK(judge(evaluator, "honest").correct());
}

TEST_CASE("errors of the judge are thrown here, with their id") {
  WorkerEvaluator evaluator{fake_workers()};
  auto task = worker_tasks::rows("broken");
  task.sizes.clear();
  CHECK(error_of([&] { evaluator.prepare(task, {}); }).find("mtmc.task.002") != std::string::npos);
  task = worker_tasks::rows("no start");
  task.kernel = kernel("unheard_of");
  CHECK(error_of([&] { (void)judge(evaluator, "honest", task); }).find("mtmc.task.005") != std::string::npos);
  const auto thrown = error_of([&] { (void)judge(evaluator, "throw"); });
  CHECK(thrown.find("mtmc.worker.005") != std::string::npos);
  CHECK(thrown.find("no error of ours") != std::string::npos);
  CHECK(judge(evaluator, "honest").correct()); // the worker lives on
}

TEST_CASE("hooks are attached by the worker, by the task's name, or refused") {
  WorkerEvaluator evaluator{fake_workers()};
  auto task = worker_tasks::rows("hooked");
  task.compare = [](const Argument&, const ProblemSize&, std::span<const std::byte>,
                    std::span<const std::byte>) { return std::string(); };
  CHECK(judge(evaluator, "honest", task).correct());
  task.name = "not known to the worker";
  const auto error = error_of([&] { (void)judge(evaluator, "honest", task); });
  CHECK(error.find("mtmc.worker.004") != std::string::npos);
  CHECK(error.find("compare") != std::string::npos);
  task.compare = {};
  task.generate = [](const Argument&, const ProblemSize&, std::uint64_t, std::span<std::byte>) {};
  const auto of_generate = error_of([&] { evaluator.prepare(task, {}); });
  CHECK(of_generate.find("[mtmc.worker.004]") == 0);
  CHECK(of_generate.find("generate") != std::string::npos);
  // What a worker is told that attaches none at all.
  const auto of_none = error_of([&] { detail::check_hooks(task, false); });
  CHECK(of_none.find("[mtmc.worker.004] the task has a hook (generate)") == 0);
  CHECK(of_none.find("task not known to the worker") != std::string::npos);
  CHECK(of_none.find("attaches the hooks by the task's name") != std::string::npos);
}

TEST_CASE("captured inputs are read by the worker") {
  WorkerEvaluator evaluator{fake_workers()};
  const TemporaryFolder folder;
  auto task = worker_tasks::rows("captured");
  task.arguments[1].data = folder.path() + "/b.npy";
  CHECK(error_of([&] { (void)judge(evaluator, "honest", task); }).find("mtmc.task.001") != std::string::npos);
  write_file_atomic(task.arguments[1].data, npy_bytes::file("<f4", "(48,)", std::vector<float>(48, 1.5f)));
  CHECK(judge(evaluator, "honest", task).correct());
}

TEST_CASE("text that is not UTF-8 is refused, since it would be another text after it") {
  WorkerEvaluator evaluator{fake_workers()};
  const auto task = worker_tasks::rows();
  auto candidate = kernel("honest");
  candidate.source += "// \xff\n";
  CHECK(evaluator.evaluate({task, candidate, std::nullopt, {}, {}}, {}).verdict == Verdict::refused);
  auto other = task;
  other.summary = "\xff";
  CHECK(error_of([&] { evaluator.prepare(other, {}); }).find("mtmc.worker.004") != std::string::npos);
}

TEST_CASE("options the worker cannot use are an error at once, not after three tries") {
  auto options = fake_workers();
  options.backend = "abacus";
  const auto unknown = error_of([&] { (void)WorkerEvaluator{options}.device(); });
  CHECK(unknown.find("mtmc.worker.004") != std::string::npos);
  CHECK(unknown.find("fake, plain") != std::string::npos);

  options = fake_workers();
  options.backend = "plain";
  CHECK(WorkerEvaluator{options}.device().name == "fake");
  options.backend_options = R"({"beads": 10})";
  CHECK(error_of([&] { (void)WorkerEvaluator{options}.device(); }).find("beads") != std::string::npos);
  options.backend_options = "{";
  CHECK(error_of([&] { WorkerEvaluator{options}; }).find("mtmc.json.001") != std::string::npos);

  options = fake_workers();
  options.command = {"/nowhere/worker"};
  CHECK(error_of([&] { (void)WorkerEvaluator{options}.identity(); }).find("/nowhere/worker") !=
        std::string::npos);
  options = fake_workers();
  options.workers = 0;
  CHECK(error_of([&] { WorkerEvaluator{options}; }).find("at least one worker") != std::string::npos);
}

TEST_CASE("several workers judge at once, each candidate for itself") {
  auto options = fake_workers();
  options.workers = 3;
  WorkerEvaluator evaluator{std::move(options)};
  CHECK(evaluator.concurrency_limit() == 3);
  evaluator.prepare(worker_tasks::rows(), {});
  const std::vector<std::pair<std::string, Verdict>> cases{{"honest", Verdict::correct},
                                                           {"abort", Verdict::crashed},
                                                           {"wrong", Verdict::wrong_result},
                                                           {"exit", Verdict::crashed}};
  std::atomic<int> mistaken = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 6; ++i) {
          const auto& [entry, verdict] = cases[(i + static_cast<std::size_t>(t)) % cases.size()];
          if (judge(evaluator, entry).verdict != verdict) ++mistaken;
        }
      });
  }
  CHECK(mistaken == 0);
}

TEST_CASE("kill -9 of a worker in the middle costs that candidate its verdict, and nothing else") {
  const processes::Started workers;
  WorkerEvaluator evaluator{fake_workers()};
  evaluator.prepare(worker_tasks::rows(), {});
  Evaluation answer;
  {
    const auto before = settled(workers, 2);
    std::jthread judging([&] { answer = judge(evaluator, "hang"); });
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    for (const auto pid : before) ::kill(pid, SIGKILL); // the busy one and the spare
  }
  CHECK(answer.verdict == Verdict::crashed);
  REQUIRE(answer.diagnostics.size() == 1);
  CHECK(answer.diagnostics[0].message.find("killed by signal 9") != std::string::npos);
  const auto next = judge(evaluator, "honest");
  CHECK_MESSAGE(next.correct(), (next.diagnostics.empty() ? "" : next.diagnostics[0].message));
  CHECK(settled(workers, 2).size() == 2);
}

TEST_CASE("a worker that ends before it took a candidate in costs that candidate nothing") {
  const processes::Started workers;
  WorkerEvaluator evaluator{fake_workers()};
  evaluator.prepare(worker_tasks::rows(), {});
  Evaluation answer;
  {
    const auto before = settled(workers, 2);
    for (const auto pid : before) processes::stop(pid);
    std::jthread judging([&] { answer = judge(evaluator, "honest"); });
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    for (const auto pid : before) ::kill(pid, SIGKILL);
  }
  CHECK_MESSAGE(answer.correct(), (answer.diagnostics.empty() ? "" : answer.diagnostics[0].message));
}

TEST_CASE("a worker that says its process is spent is replaced without harm to a candidate") {
  auto options = fake_workers();
  options.backend_options = R"({"spent_after": 2})";
  WorkerEvaluator evaluator{std::move(options)};
  for (int i = 0; i < 4; ++i) CHECK(judge(evaluator, "honest").correct());
}

TEST_CASE("a task that was forgotten is prepared again") {
  auto options = fake_workers();
  options.prepared_tasks = 2;
  options.spares = 0;
  WorkerEvaluator evaluator{std::move(options)};
  for (int round = 0; round < 2; ++round)
    for (const auto* name : {"a", "b", "c", "d"})
      CHECK(judge(evaluator, "honest", worker_tasks::rows(name)).correct());
}

TEST_CASE("nothing is left behind: no process, no descriptor, no file") {
  const TemporaryFolder folder;
  const processes::Started started;
  const auto descriptors = processes::open_descriptors();
  for (int i = 0; i < 3; ++i) {
    auto options = fake_workers();
    options.temporary_folder = folder.path();
    options.workers = 2;
    WorkerEvaluator evaluator{std::move(options)};
    CHECK(judge(evaluator, "honest").correct());
    CHECK(judge(evaluator, "abort").verdict == Verdict::crashed);
    auto moved = std::move(evaluator);
    CHECK(judge(moved, "wrong").verdict == Verdict::wrong_result);
  }
  CHECK(processes::open_descriptors() == descriptors);
  CHECK(started.now().empty());
  CHECK(::rmdir(folder.path().c_str()) == 0); // as only an empty folder can be
}

TEST_CASE("a program whose main begins with play_role is its own worker; no other is ever started again") {
  const auto host = run_process({.arguments = {program, "host"}});
  CHECK(host.succeeded());
  CHECK(host.output == "correct\n");
  const auto stranger = run_process({.arguments = {program, "stranger"}});
  CHECK(stranger.code == 1);
  CHECK(stranger.output.find("mtmc.worker.001") != std::string::npos);
  CHECK(stranger.output.find("or name a worker's command") != std::string::npos);
  CHECK(stranger.output.find("play_role") != std::string::npos);
}

TEST_CASE(
    "the same line plays what a backend starts its program as, and a worker offers that to its backend") {
  const auto helper = run_process({.arguments = {program, "--fake-helper", "a", "b"}});
  CHECK(helper.code == 7);
  CHECK(helper.output == "2\n");
  WorkerEvaluator evaluator{fake_workers()};
  CHECK(judge(evaluator, "helped").correct());
}

TEST_CASE("an installed mtmc-worker is found in the search path") {
  const TemporaryFolder folder;
  WorkerOptions options{.search_path = "/nowhere:" + folder.path(), .backend = "fake"};
  CHECK(error_of([&] { WorkerEvaluator{options}; }).find(folder.path()) != std::string::npos);
  CHECK(::symlink(program.c_str(), (folder.path() + "/mtmc-worker").c_str()) == 0);
  CHECK(WorkerEvaluator{options}.device().name == "fake");
}

TEST_CASE("a host that is killed takes its worker with it") {
  FileDescriptor reading;
  FileDescriptor writing;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  reading.reset(ends[0]);
  writing.reset(ends[1]);
  // The worker's standard error is this pipe's other end as long as it lives.
  ChildProcess worker{
      {.arguments = {program, "--mtmc-worker"}, .descriptors = {{reading.get(), 0}}, .new_session = true}};
  reading.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  CHECK(worker.alive());
  writing.reset();
  const auto exit = worker.wait(std::chrono::seconds{10});
  REQUIRE(exit);
  CHECK(exit->kind == ProcessExit::Kind::exited);
  CHECK(exit->code == 0);
}
