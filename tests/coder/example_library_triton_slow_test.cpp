// The built-in examples in Triton, run by Python where it has PyTorch and Triton: on a GPU, or interpreted.
#include <mtmc/core/json.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "../backend/python/python_for_tests.hpp"
#include "example_tasks.hpp"

using namespace mtmc;

TEST_CASE("both sides of every built-in example in Triton give the same") {
  const auto python = python_for_tests();
  if (!python) return;
  auto described = nlohmann::json::array();
  for (const auto& example : example_tasks::built_in(languages::triton)) {
    auto one = nlohmann::json::parse(example.task);
    one["name"] = example.optimization;
    one["before"] = example.before;
    one["after"] = example.after;
    described.push_back(std::move(one));
  }
  CHECK(described.size() == 12);
  const TemporaryFolder folder;
  write_file_atomic(folder.path() + "/examples.json", described.dump());

  ProcessOptions process;
  process.arguments = {python->interpreter, std::string(MTMC_REPOSITORY) + "/tests/coder/triton_examples.py",
                       folder.path()};
  process.deadline = std::chrono::minutes(10);
  const auto done = run_process(process);
  MESSAGE(done.output);
  CHECK_MESSAGE(done.succeeded(), done.error);
}

TEST_CASE("and is recorded and lowered, with the same weights") {
  const auto python = python_for_tests();
  if (!python) return;
  for (const auto& example : example_tasks::built_in(languages::triton)) {
    CAPTURE(example.optimization);
    const auto said = nlohmann::json::parse(example.task);
    for (const auto* text : {&example.before, &example.after}) {
      RecordingRequest request;
      request.text = *text;
      for (const auto& value : said["constructor"]) {
        RecordedValue passed{.kind = value.is_number_integer() ? RecordedValue::Kind::integer
                                                               : RecordedValue::Kind::real};
        if (value.is_number_integer())
          passed.integer = value.get<std::int64_t>();
        else
          passed.real = value.get<double>();
        request.constructor.push_back(passed);
      }
      for (const auto& shape : said["calls"][0])
        request.inputs.push_back(tensor_input(shape.get<std::vector<std::int64_t>>()));
      const auto recording = shared_recorder(*python).record(request);
      for (const auto& diagnostic : recording.diagnostics) FAIL_CHECK(diagnostic.message);
      if (!recording.plan) continue;
      for (const auto& kernel : recording.plan->kernels)
        for (const auto& diagnostic :
             shared_compiler(*python).lower(kernel, recording.plan->target).diagnostics)
          FAIL_CHECK(diagnostic.message);
    }
  }
}
