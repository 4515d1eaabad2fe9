#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <string>
#include <vector>

#include "python_for_tests.hpp"

using namespace mtmc;

namespace {

ProcessResult run(std::vector<std::string> arguments) {
  ProcessOptions options;
  options.arguments = std::move(arguments);
  return run_process(options);
}

} // namespace

TEST_CASE("kernels are launched with what the recording says, wherever operators put their results") {
  const auto python = python_for_tests();
  if (!python) return;
  const TemporaryFolder folder;
  const auto driver = folder.path() + "/libdriver.so";
  const auto here = std::string(MTMC_REPOSITORY) + "/tests/backend/python";
  const auto compiled =
      run({"cc", "-std=gnu11", "-Wall", "-shared", "-fPIC", "-o", driver, here + "/driver_stub.c"});
  REQUIRE_MESSAGE(compiled.succeeded(), compiled.error);
  const auto called =
      run({python->interpreter, here + "/contestant_calls.py",
           std::string(MTMC_REPOSITORY) + "/include/mtmc/backend/python", driver, folder.path()});
  REQUIRE_MESSAGE(called.succeeded(), called.error);
  // Two clusters of two blocks each: Triton counts clusters. A grid without programs launches nothing.
  CHECK(called.output.find("scale_add: attribute 8 is 100000\n") != std::string::npos);
  CHECK(called.output.find("scale_add: 2 1 1 blocks of 128, 100000 bytes, attribute 4 is 2 1 1\n"
                           "scale_add: 2 2 1 blocks of 128, 100000 bytes, attribute 4 is 2 1 1\n") !=
        std::string::npos);
  CHECK(called.output.find("finding a kernel fails with CUDA_ERROR_NOT_FOUND") != std::string::npos);
  CHECK(called.output.find(": 0 ") == std::string::npos);
  const auto lent = called.output.find("scale_add: is lent memory\n");
  CHECK(lent != std::string::npos);
  CHECK(lent > called.output.find("a kernel that is lent memory\n"));
}
