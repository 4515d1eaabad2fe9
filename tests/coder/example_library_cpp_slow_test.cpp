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
  options.locks.plausibility = false; // a ceiling measured on a busy machine would be too low
  CpuEvaluator evaluator{{}, options};
  int judged = 0;
  for (const auto& example : example_tasks::built_in(languages::cpp)) {
    const auto name = example_tasks::name_of(example);
    const auto task = example_tasks::task_of(example);
    const auto answer = evaluator.evaluate({task, example_tasks::after(example), task.kernel}, {});
    std::string words(to_string(answer.verdict));
    for (const auto& diagnostic : answer.diagnostics) words += ", " + diagnostic.message;
    CHECK_MESSAGE(answer.correct(), name, " is judged ", words);
    CHECK_MESSAGE(answer.sizes.size() == task.sizes.size(), name);
    if (answer.speed_up) MESSAGE(name, ": ", answer.speed_up->value, " times as fast");
    ++judged;
  }
  CHECK(judged >= 7);
}
