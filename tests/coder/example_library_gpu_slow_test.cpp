// The built-in examples in CUDA, judged for real. Needs a GPU.
#include <mtmc/core/error.hpp>
#include <mtmc/cuda_evaluator.hpp>

#include <doctest/doctest.h>

#include <string>

#include "../backend/cuda/gpu.hpp"
#include "example_tasks.hpp"

using namespace mtmc;

TEST_CASE("every built-in example in CUDA is a task, and right after the step, on a GPU") {
  if (mtmc_test::gpu() == nullptr) return;
  KernelEvaluatorOptions options;
  options.explore_seconds = 0.2;
  WorkerOptions worker;
  worker.command = {std::string(MTMC_EXAMPLES) + "/mtmc-worker"};
  CudaEvaluator evaluator{{}, options, worker};
  int judged = 0;
  for (const auto& example : example_tasks::built_in(languages::cuda)) {
    const auto name = example_tasks::name_of(example);
    const auto task = example_tasks::task_of(example);
    const auto answer = evaluator.evaluate({task, example_tasks::after(example), task.kernel}, {});
    std::string words(to_string(answer.verdict));
    for (const auto& diagnostic : answer.diagnostics) words += ", " + diagnostic.message;
    CHECK_MESSAGE(answer.correct(), name, " is judged ", words);
    if (answer.speed_up) MESSAGE(name, ": ", answer.speed_up->value, " times as fast");
    ++judged;
  }
  CHECK(judged >= 7);
}
