// The conformance suite on a real GPU, in a file of its own: each check opens the device in a fork of this
// process, which must not have opened it before. Skipped where there is no GPU.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/evaluator/backend_conformance.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

TEST_CASE("CudaBackend keeps every promise") {
  const auto report =
      test::check_conformance([] { return CudaBackend{{.expendable_process = true}}; }, test::cuda_probe());
  REQUIRE_FALSE(report.checks.empty());
  if (const auto& first = report.checks.front(); first.outcome == test::ConformanceOutcome::failed) {
    MESSAGE("SKIPPED: ", first.message);
    return;
  }
  CHECK_MESSAGE(report.passed(), report.to_text());
}
