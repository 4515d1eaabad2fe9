#pragma once
/// The built-in examples as tasks.

#include <mtmc/analysis/task_file.hpp>
#include <mtmc/coder/example_library.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace example_tasks {

/// "tiling in cuda".
inline std::string name_of(const mtmc::Example& example) {
  return example.optimization + " in " + example.language.name;
}

/// The task that starts from the kernel before the step.
inline mtmc::Task task_of(const mtmc::Example& example) {
  return mtmc::parse_task(mtmc::task_text(example), name_of(example));
}

/// The task without the sizes that are timed on a real GPU: an emulated one would take minutes for them.
inline mtmc::Task at_small_sizes(mtmc::Task task) {
  std::erase_if(task.sizes, [](const mtmc::ProblemSize& size) { return size.weight > 0; });
  task.sizes.front().weight = 1;
  return task;
}

/// The kernel after it.
inline mtmc::Kernel after(const mtmc::Example& example) { return {example.language, example.after, {}}; }

/// The built-in examples of a language.
inline std::vector<mtmc::Example> built_in(const mtmc::Language& language) {
  std::vector<mtmc::Example> chosen;
  const auto library = mtmc::ExampleLibrary::built_in();
  for (const auto& example : library.all())
    if (example.language == language) chosen.push_back(example);
  return chosen;
}

/// Judges the built-in examples of a language, the kernel after each step against the one before it.
template <class Evaluator> void check_all(Evaluator& evaluator, const mtmc::Language& language, int least) {
  int judged = 0;
  for (const auto& example : built_in(language)) {
    const auto name = name_of(example);
    const auto task = task_of(example);
    const auto answer = evaluator.evaluate({task, after(example), task.kernel}, {});
    std::string words(to_string(answer.verdict));
    for (const auto& diagnostic : answer.diagnostics) words += ", " + diagnostic.message;
    CHECK_MESSAGE(answer.correct(), name, " is judged ", words);
    CHECK_MESSAGE(answer.sizes.size() == task.sizes.size(), name);
    if (answer.speed_up) MESSAGE(name, ": ", answer.speed_up->value, " times as fast");
    ++judged;
  }
  CHECK(judged >= least);
}

} // namespace example_tasks
