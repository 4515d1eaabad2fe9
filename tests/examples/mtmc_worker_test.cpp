// The real worker program: C++ kernels judged in another process, and hosts that share a processor.
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "../support/processes.hpp"

using namespace mtmc;

namespace {

const std::string worker = std::string(MTMC_EXAMPLES) + "/mtmc-worker";

Task transpose() {
  auto task = load_task(std::string(MTMC_REPOSITORY) + "/examples/tasks/cpu/transpose.json");
  for (auto& size : task.sizes)
    for (auto& [name, value] : size.symbols) value = value > 300 ? 300 : value;
  return task;
}

WorkerOptions options_in(const TemporaryFolder& folder) {
  WorkerOptions options{.command = {worker}};
  options.temporary_folder = folder.path();
  options.device_lock_folder = folder.path();
  options.evaluator_options.explore_seconds = 0.2;
  options.spares = 0;
  return options;
}

} // namespace

TEST_CASE("mtmc-worker judges C++ kernels") {
  const TemporaryFolder folder;
  {
    auto options = options_in(folder);
    options.backend_options = R"({"threads": 1, "extra_flags": ["-O1"]})";
    WorkerEvaluator evaluator{std::move(options)};
    const auto task = transpose();
    CHECK(evaluator.device().kind == "cpu");
    CHECK(evaluator.device().measured.read_bandwidth > 0);
    CHECK(evaluator.identity().find("OMP_NUM_THREADS=1") != std::string::npos);
    CHECK(evaluator.identity().find("-O1") != std::string::npos);
    const auto right = evaluator.evaluate({task, task.kernel, task.kernel, Purpose::explore, {}}, {});
    CHECK(right.correct());
    CHECK(right.seconds > 0);
    auto broken = task.kernel;
    broken.source += "\nint x = y;\n";
    const auto refused = evaluator.evaluate({task, broken, task.kernel, Purpose::explore, {}}, {});
    CHECK(refused.verdict == Verdict::compile_error);
    CHECK(refused.diagnostics.at(0).line > 0);
  }
  // Only the files of the lock are left.
  CHECK(std::system(("test $(ls -A " + folder.path() + " | wc -l) = 2").c_str()) == 0);
  CHECK_FALSE(processes::has_children());
}

TEST_CASE("a worker without the memory it needs is an error with its last words, not a verdict") {
  const TemporaryFolder folder;
  auto options = options_in(folder);
  options.memory_limit = 40 << 20;
  WorkerEvaluator evaluator{std::move(options)};
  try {
    evaluator.prepare(transpose(), {});
    FAIL("40 MiB are enough");
  } catch (const Error& error) {
    CAPTURE(error.what());
    CHECK((error.id() == "mtmc.worker.002" || error.id().starts_with("mtmc.backend.")));
  }
}

TEST_CASE("an option the backend does not have is named") {
  const TemporaryFolder folder;
  auto options = options_in(folder);
  options.backend_options = R"({"threds": 1})";
  try {
    (void)WorkerEvaluator{options}.device();
    FAIL("there is no such option");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("threds") != std::string::npos);
  }
}

TEST_CASE("two hosts share one processor and both get their answers") {
  const TemporaryFolder folder;
  WorkerEvaluator first{options_in(folder)};
  WorkerEvaluator second{options_in(folder)};
  const auto task = transpose();
  Evaluation answers[2];
  {
    std::jthread one([&] { answers[0] = first.evaluate({task, task.kernel, task.kernel, {}, {}}, {}); });
    std::jthread two([&] { answers[1] = second.evaluate({task, task.kernel, task.kernel, {}, {}}, {}); });
  }
  CHECK(answers[0].correct());
  CHECK(answers[1].correct());
}

TEST_CASE("mtmc-worker tells people what it is") {
  CHECK(run_process({.arguments = {worker, "--version"}}).output.starts_with("mtmc "));
  CHECK(run_process({.arguments = {worker, "--nonsense"}}).code == 2);
  CHECK(run_process({.arguments = {worker, "--mtmc-worker"}, .input = "hello?\n"}).error.find("not JSON") !=
        std::string::npos);
}
