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
  example_tasks::check_all(evaluator, languages::cuda, 7);
}
