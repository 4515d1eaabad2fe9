// Random sequences of steps on CUDA kernels: whatever the offline coder makes of its own results is right at
// every size, on the emulated GPU. MTMC_SEQUENCES: how many a task (3).

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>

#include "grid_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

TEST_CASE("sequences of up to six steps keep what a CUDA kernel computes") {
  if (!mtmc_test::can_emulate) return;
  const char* const wanted = std::getenv("MTMC_SEQUENCES");
  const std::uint64_t sequences = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 3;
  int steps = 0, broken = 0, all = 0;
  for (const char* name : {"softmax", "layer_norm", "rms_norm", "row_sum", "dequantize_gemv", "gemm",
                           "gemm_bias_gelu", "attention", "conv2d", "transpose", "rotary_embedding"}) {
    const Task task = cuda_task(name);
    for (std::uint64_t seed = 1; seed <= sequences; ++seed) {
      const auto sequence = random_sequence(task, seed, 6, h100());
      if (sequence.keys.empty()) continue;
      CAPTURE(name);
      CAPTURE(joined(sequence.keys));
      ++all;
      steps += static_cast<int>(sequence.keys.size());
      try {
        CHECK_MESSAGE(grid_difference(task, sequence.source) < 1e-4, sequence.source);
      } catch (const std::exception& error) {
        MESSAGE("does not compile: ", std::string(error.what()).substr(0, 400), sequence.source);
        ++broken;
      }
    }
  }
  MESSAGE(all, " sequences, ", steps, " steps, ", broken, " that do not compile");
  CHECK(20 * broken <= all);
}
