// The OpenCL example: all of the conformance suite where there is a platform, a clear message where there is
// none.

#include <doctest/doctest.h>

#include "programs.hpp"

using doctest::Contains;
using programs::shown;

namespace {

// The sanitizers see neither the memory nor the threads of a driver that was built without them.
mtmc::ProcessResult run_example(const mtmc::TemporaryFolder& folder, std::vector<std::string> environment) {
  environment.insert(environment.end(), {"POCL_CACHE_DIR=" + folder.path(), "ASAN_OPTIONS=detect_leaks=0",
                                         "TSAN_OPTIONS=report_bugs=0"});
  return programs::run("04_opencl_backend", {}, std::move(environment));
}

} // namespace

TEST_CASE("04_opencl_backend: without a platform it says what to install, and ends with code 3") {
  const mtmc::TemporaryFolder folder;
  const auto done = run_example(folder, {"OCL_ICD_VENDORS=" + folder.path() + "/none"});
  if (done.code == 0) {
    MESSAGE("not looked at: the OpenCL library of this machine needs no list of platforms");
    return;
  }
  CHECK(done.code == 3);
  CHECK(shown(done.error) == Contains("there is no OpenCL device"));
  CHECK(shown(done.error) == Contains("apt install ocl-icd-libopencl1 pocl-opencl-icd"));
  CHECK(done.output.empty());
}

TEST_SUITE("slow") {
  TEST_CASE("04_opencl_backend: conforms, and a naive kernel is made a tiled one") {
    const mtmc::TemporaryFolder folder;
    const auto done = run_example(folder, {});
    if (done.code == 3) {
      MESSAGE("SKIPPED: ", done.error, "(cmake/bootstrap.sh --opencl installs PoCL)");
      return;
    }
    CAPTURE(done.output);
    CAPTURE(done.error);
    CHECK(done.code == 0);
    CHECK(shown(done.output) == Contains(" 0 failed, "));
    CHECK(shown(done.output) == Contains("passed   evaluator.faster"));
    CHECK(shown(done.output) == Contains("  1  tiling the k loop of product"));
    CHECK(shown(done.output) == Contains("product of matrices: speed-up "));
    for (const std::string failed : {"wrong result", "compile error", "crashed", "timeout"})
      CHECK(done.output.find(failed) == std::string::npos);
  }
}
