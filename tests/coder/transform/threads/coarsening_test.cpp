// A thread adds up several results, which share what is loaded for all of them: the same bits as before, also
// where the last threads have fewer.

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "grid_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
Task convolution(const std::pair<std::string, std::string>& changed = {}) {
  Task task = cuda_task("conv2d");
  if (!changed.first.empty()) {
    auto& source = task.kernel.source;
    source.replace(source.find(changed.first), changed.first.size(), changed.second);
  }
  return task;
}
std::string reason(const Task& task) {
  return grid_draft(task, task.kernel, "unrolling|conv2d/threads:xyz").message;
}
} // namespace

TEST_CASE("a convolution: four rows and four filters a thread") {
  const std::string source = grid_source_after(convolution(), {"unrolling|conv2d/threads:xyz"});
  CHECK(has(source, "ceil_div(H - R + 1, 64), ceil_div(F, 4)), (16, 16)>>>"));
  CHECK(has(source, "int first_f = blockIdx.z * 4;\n"));
  CHECK(has(source, "float sums[4][4];\n"));
  CHECK(has(source, "const int y = min(first_y + each_y, height - 1);\n"));
  CHECK(has(source, "if (y < height && f < F) {\n"));
}

TEST_CASE("coarse threads give the bits of fine ones at every size") {
  if (!mtmc_test::can_emulate) return;
  const Task task = convolution();
  int ways = 0;
  for (int sample = 0; sample < 9; ++sample) {
    const Draft draft = grid_draft(task, task.kernel, "unrolling|conv2d/threads:xyz", sample);
    if (!draft.kernel) continue;
    CAPTURE(sample);
    CHECK(grid_difference(task, draft.kernel->source) == 0);
    ++ways;
  }
  CHECK(ways == 9);
  const Task product = cuda_task("gemm");
  CHECK(grid_difference(product, grid_source_after(product, {"unrolling|gemm/threads:xy"})) == 0);
}

TEST_CASE("threads that cannot be coarsened are told why") {
  const Task uneven = convolution({"c < C", "c < f"}); // along y it still may
  CHECK(has(grid_source_after(uneven, {"unrolling|conv2d/threads:xyz"}), "float sums[4];\n"));
  CHECK(has(reason(convolution({"float sum = 0.0f;", "float sum = 0.0f; out[0] = 1.0f;"})),
            "something happens before the c loop"));
  CHECK(has(reason(convolution({"+= image", "-= image"})), "the c loop"));
  CHECK(has(reason(convolution({"int height", "int above = blockIdx.y;\n  int height"})),
            "speaks of threads or blocks"));
  const Task twice = convolution({"int height", "int filter = blockIdx.z;\n  int height"});
  CHECK(has(grid_source_after(twice, {"unrolling|conv2d/threads:xyz"}), "float sums[4];\n"));
  CHECK(has(grid_draft(cuda_task("rotary_embedding"), cuda_task("rotary_embedding").kernel,
                       "unrolling|rotate/threads:x")
                .message,
            "a thread goes through no loop"));
}
