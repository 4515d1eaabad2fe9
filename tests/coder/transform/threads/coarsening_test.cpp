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
}

TEST_CASE("threads of a launch without loops get several elements, a block's width apart") {
  const auto scale = [](const std::string& number, const std::string& guard = "i < N") {
    return TaskBuilder{"scale"}
        .kernel(languages::cuda, "//@ launch scale<<<(ceil_div(N, 128), B), 128>>>(x, y, N)\n"
                                 "__global__ void scale(const float* x, float* y, int N) {\n"
                                 "  const float* layer = x + blockIdx.y * N;\n  " +
                                     number + "\n  if (" + guard +
                                     ") {\n    y[blockIdx.y * N + i] = 2.0f * layer[i];\n  }\n}\n")
        .shape("x", {"B", "N"})
        .shape("y", {"B", "N"})
        .size({{"B", 4}, {"N", 1 << 20}})
        .check({{"B", 3}, {"N", 1003}})
        .check({{"B", 1}, {"N", 1}})
        .build();
  };
  const std::string key = "unrolling|scale/threads:xy";
  const Task task = scale("int i = blockIdx.x * blockDim.x + threadIdx.x;");
  const std::string source = grid_source_after(task, {key});
  CHECK(has(source, "//@ launch scale<<<(ceil_div(N, 512), B), 128>>>(x, y, N)\n"));
  CHECK(has(source, "  int first_i = blockIdx.x * 512 + threadIdx.x;\n  #pragma unroll\n"
                    "  for (int each = 0; each < 4; ++each) {\n    int i = first_i + each * 128;\n"));
  const Task wide = scale("size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;");
  CHECK(has(grid_source_after(wide, {key}), "  size_t first_i = (size_t)blockIdx.x * 512 + threadIdx.x;\n"));
  const Task odd = scale("int i = blockIdx.x * blockDim.x + threadIdx.x;", "i < N && threadIdx.x > 3");
  CHECK(has(grid_draft(odd, odd.kernel, key).message, "speaks of threads or blocks"));
  if (!mtmc_test::can_emulate) return;
  for (int sample = 0; sample < 3; ++sample)
    CHECK(grid_difference(task, grid_source_after(task, {key + '@' + std::to_string(sample)})) == 0.0);
  CHECK(grid_difference(wide, grid_source_after(wide, {key})) == 0.0);
}

TEST_CASE("a guard that lets through more than is launched keeps its threads") {
  const std::string uncovered = "has as many threads as its guards let through";
  Task product = cuda_task("gemm");
  std::string& text = product.kernel.source;
  const std::size_t line = text.find("<<<");
  text.replace(line, text.find(">>>") - line, "<<<(ceil_div(N, 16), 2), (16, 16)");
  for (const char* const key : {"unrolling|gemm/threads:xy", "tiling|gemm/k"})
    CHECK(has(grid_draft(product, product.kernel, key).message, uncovered));
  Task half = cuda_task("rotary_embedding");
  half.kernel.source.replace(half.kernel.source.find("<<<"),
                             half.kernel.source.find(">>>") - half.kernel.source.find("<<<"), "<<<7, 128");
  CHECK(has(grid_draft(half, half.kernel, "unrolling|rotate/threads:x").message, uncovered));
  // limits that are quotients are compared at every size of the task
  const Task strided =
      load_task(std::string(MTMC_REPOSITORY) + "/tests/bench/naive_cuda/tasks/conv2d_strided.json");
  CHECK(grid_draft(strided, strided.kernel, "tiling|conv2d/c").kernel);
}
