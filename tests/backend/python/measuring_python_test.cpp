#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <string>

#include "python_for_tests.hpp"

using namespace mtmc;

TEST_CASE("errors are measured by what is not zero, and a group that errs is named") {
  const auto python = python_for_tests();
  if (!python) return;
  const TemporaryFolder folder;
  const std::string repository = MTMC_REPOSITORY;
  ProcessOptions options;
  options.arguments = {python->interpreter, repository + "/tests/backend/python/measuring_calls.py",
                       repository + "/include/mtmc/backend/python", folder.path()};
  const auto called = run_process(options);
  REQUIRE_MESSAGE(called.succeeded(), called.error);
  CHECK(called.output == "scale of what passes\n"
                         "honest passes\n"
                         "wrong is refused\n"
                         "nothing is refused\n"
                         "all zeros: 0.0 0.0\n"
                         "beside a mask the scale is ordinary\n"
                         "what is left the scale is the mask's\n"
                         "group: (1, 5) times True elements with index 5 of axis 1 err by 1.0e-04 as a rule, "
                         "and as PyTorch computes them by 1.0e-07\n"
                         "flips in one place: None\n"
                         "a row in one place: (0, 7, 1024)\n"
                         "what is near errs by more\n");
}
