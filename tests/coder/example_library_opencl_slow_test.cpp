// The built-in examples in OpenCL, judged with the backend of examples/04_opencl_backend.cpp. Needs an OpenCL
// platform; PoCL will do (cmake/bootstrap.sh --opencl).
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "example_tasks.hpp"

// The example is a program; its backend is wanted, its `main` is not.
#define main opencl_example
#include "../../examples/04_opencl_backend.cpp"
#undef main

using namespace mtmc;

TEST_CASE("every built-in example in OpenCL is a task, and right after the step") {
  const TemporaryFolder folder;
  REQUIRE(::setenv("POCL_CACHE_DIR", folder.path().c_str(), 1) == 0); // else it keeps kernels in the home
  std::optional<OpenClBackend> backend;
  try {
    backend.emplace();
  } catch (const Error& error) {
    MESSAGE("SKIPPED: ", std::string(error.what()));
    return;
  }
  KernelEvaluatorOptions options;
  options.explore_seconds = 0.1;
  options.explore_pairs = 14;
  options.defences.plausibility = false; // a ceiling measured on a busy machine would be too low
  KernelEvaluator<OpenClBackend> evaluator(std::move(*backend), options);
  example_tasks::check_all(evaluator, languages::opencl, 2);
}
