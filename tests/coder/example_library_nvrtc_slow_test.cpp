// The built-in examples in CUDA as far as they get without a GPU. Needs NVRTC.
#include <doctest/doctest.h>

#include <string>

#include "../exploits/cuda_screens.hpp"
#include "example_tasks.hpp"

TEST_CASE("NVRTC compiles both sides of every built-in example in CUDA, and no screen stops one") {
  const auto* const compiler = exploits::hopper_compiler();
  if (compiler == nullptr) return;
  for (const auto& example : example_tasks::built_in(mtmc::languages::cuda))
    for (const auto* text : {&example.before, &example.after}) {
      const auto stopped = exploits::stopped_without_gpu(*compiler, example_tasks::task_of(example), *text);
      CHECK_MESSAGE(stopped.by == "run", example_tasks::name_of(example), " is stopped by its ", stopped.by,
                    ": ", stopped.reason);
    }
}
