#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "draft.hpp"
#include "kernel_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

void check_random_sequences(const std::string& name, int count, int steps) {
  const Task task = cpu_task(name);
  std::vector<RandomSequence> sequences;
  std::vector<std::string> sources;
  for (int seed = 0; seed < count; ++seed) {
    sequences.push_back(random_sequence(task, static_cast<std::uint64_t>(seed) + 1, steps));
    sources.push_back(sequences.back().source);
    CAPTURE(joined(sequences.back().keys));
    CHECK(AstRegionFinder{}.find(task, {languages::cpp, sources.back()}).opaque_statements == 0);
  }
  const KernelRunner runner{task, sources};
  for (std::size_t k = 1; k <= sources.size(); ++k)
    for (const ProblemSize& size : task.sizes) {
      if (size.weight > 0) continue;
      CAPTURE(joined(sequences[k - 1].keys));
      CAPTURE(sources[k - 1]);
      CAPTURE(to_string(size));
      CHECK(runner.difference(k, size, 2) < 2e-5);
      CHECK(runner.run(k, size, 1) == runner.run(k, size, 3));
    }
}

} // namespace

TEST_CASE("random sequences of offered actions keep every task right at odd sizes") {
  for (const char* name : {"gemm", "gemm_bias_relu", "conv2d", "softmax", "layer_norm", "transpose",
                           "elementwise_chain", "stencil2d"}) {
    CAPTURE(name);
    check_random_sequences(name, 12, 6);
  }
}
