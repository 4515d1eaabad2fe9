#pragma once
/// The built-in examples as tasks.

#include <mtmc/analysis/task_file.hpp>
#include <mtmc/coder/example_library.hpp>

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

} // namespace example_tasks
