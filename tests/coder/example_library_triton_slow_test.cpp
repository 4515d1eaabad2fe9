// The built-in examples in Triton, run by Python where it has PyTorch and Triton: on a GPU, or interpreted.
#include <mtmc/core/json.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "../described_kernel.hpp"
#include "example_tasks.hpp"

using namespace mtmc;

TEST_CASE("both sides of every built-in example in Triton are right at all sizes") {
  auto described = nlohmann::json::array();
  for (const auto& example : example_tasks::built_in(languages::triton)) {
    const auto task = example_tasks::task_of(example);
    for (const auto& size : task.sizes)
      described.push_back(
          {{"timed", size.weight > 0},
           {"before", mtmc_test::describe_kernel(task.kernel, task, size, 1)},
           {"after", mtmc_test::describe_kernel(example_tasks::after(example), task, size, 1)}});
  }
  CHECK(described.size() >= 4 * 3);
  const TemporaryFolder folder;
  write_file_atomic(folder.path() + "/examples.json", described.dump());

  ProcessOptions process;
  process.arguments = {"python3", std::string(MTMC_REPOSITORY) + "/tests/coder/triton_examples.py",
                       folder.path()};
  process.deadline = std::chrono::minutes(10);
  const auto done = run_process(process);
  if (done.status == ProcessStatus::failed_to_start) {
    MESSAGE("SKIPPED: there is no python3: ", done.message);
    return;
  }
  MESSAGE(done.output);
  CHECK_MESSAGE(done.succeeded(), done.error);
}
