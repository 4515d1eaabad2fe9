// The built-in examples in CUDA, on any machine: compiled by g++ and judged on an emulated GPU, whose threads
// take turns.
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <string>

#include "emulated_examples.hpp"
#include "example_tasks.hpp"

using namespace mtmc;

namespace {

KernelEvaluatorOptions quick() {
  KernelEvaluatorOptions options;
  options.explore_seconds = 0.05;
  options.explore_pairs = 7;
  options.max_group_size = 1;
  return options;
}

std::string words_about(const Evaluation& answer) {
  std::string words(to_string(answer.verdict));
  for (const auto& diagnostic : answer.diagnostics) words += ", " + diagnostic.message;
  return words;
}

} // namespace

TEST_CASE("every built-in example in CUDA is a task, and right after the step, on an emulated GPU") {
  if (!mtmc_test::can_emulate) return;
  KernelEvaluator<mtmc_test::ExampleDevice> evaluator(mtmc_test::ExampleDevice{}, quick());
  int judged = 0;
  for (const auto& example : example_tasks::built_in(languages::cuda)) {
    const auto name = example_tasks::name_of(example);
    const auto task = example_tasks::at_small_sizes(example_tasks::task_of(example));
    const auto answer = evaluator.evaluate({task, example_tasks::after(example), {}}, {});
    CHECK_MESSAGE(answer.correct(), name, " is judged ", words_about(answer));
    CHECK_MESSAGE(answer.sizes.size() == task.sizes.size(), name);
    ++judged;
  }
  CHECK(judged >= 7);
}

TEST_CASE("the emulated GPU tells an example that forgets the remainder") {
  if (!mtmc_test::can_emulate) return;
  KernelEvaluator<mtmc_test::ExampleDevice> evaluator(mtmc_test::ExampleDevice{}, quick());
  for (auto example : example_tasks::built_in(languages::cuda)) {
    if (example.optimization != "vectorization") continue;
    const auto at = example.after.find("for (; i < N; ++i)");
    REQUIRE(at != std::string::npos);
    example.after.replace(at, 18, "for (; i < N - 1; ++i)");
    const auto task = example_tasks::at_small_sizes(example_tasks::task_of(example));
    const auto answer = evaluator.evaluate({task, example_tasks::after(example), {}}, {});
    CHECK_MESSAGE(answer.verdict == Verdict::wrong_result, words_about(answer));
  }
}
