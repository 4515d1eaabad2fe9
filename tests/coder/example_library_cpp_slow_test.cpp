// The built-in examples in C++, judged on this processor: after the step a kernel computes what it computed
// before, at all sizes, odd ones too. How much faster it is depends on the machine and is not asserted.
#include <mtmc/core/error.hpp>
#include <mtmc/cpu_evaluator.hpp>

#include <doctest/doctest.h>

#include <string>

#include "example_tasks.hpp"

using namespace mtmc;

TEST_CASE("every built-in example in C++ is a task, and right after the step") {
  KernelEvaluatorOptions options;
  options.explore_seconds = 0.1;
  options.explore_pairs = 14;
  options.defences.plausibility = false; // a ceiling measured on a busy machine would be too low
  CpuEvaluator evaluator{{}, options};
  example_tasks::check_all(evaluator, languages::cpp, 7);
}
