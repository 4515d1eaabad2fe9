// The launcher of a recorded module on a real device: compiled as an engine would, called without Python, its
// result compared with what the host computes in double precision.

#include <mtmc/backend/cuda.hpp>
#include <mtmc/core/error.hpp>

#include <optional>
#include <string>

#include "../backend/python/python_for_tests.hpp"
#include "compiled_launcher.hpp"
#include "shares_program.hpp"

namespace {

std::optional<mtmc::Device> device_for_tests() {
  try {
    return mtmc::CudaBackend().device();
  } catch (const mtmc::Error& error) {
    MESSAGE("SKIPPED: there is no NVIDIA GPU here: ", std::string(error.what()));
    return std::nullopt;
  }
}

} // namespace

TEST_CASE("a recorded module is called on a device without Python") {
  const auto options = python_for_tests();
  if (!options) return;
  const auto device = device_for_tests();
  if (!device) return;
  const auto text = mtmc_test::shares_launcher(shared_recorder(*options), shared_compiler(*options),
                                               mtmc::recorded_target(*device));
  const mtmc_test::CompiledLauncher launcher(text, mtmc_test::shares_program, mtmc_test::LaunchedOn::device);
  const auto ran = launcher.run();
  CHECK_MESSAGE(ran.succeeded(), ran.error << ran.output << ran.code);
  CHECK(ran.output == "right\n");
}
