// Iterations of parallel loops that one thread or few blocks go through become threads of a grid.

#include <mtmc/analysis/region_finder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "grid_variants.hpp"
#include "idle_kernels.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// A function of `x` [N, M] that makes `y` [N, M] and `z` [N, M]; few threads launch it.
Task few(const std::string& line, const std::string& body) {
  return idle_task(
      "f",
      "//@ launch f" + line +
          "(x, y, z, N, M)\n"
          "__global__ void f(const float* x, float* __restrict__ y, float* z, int n, int m) {\n" +
          body + "}\n",
      {{"x", {"N", "M"}}, {"y", {"N", "M"}}, {"z", {"N", "M"}}},
      {{{"N", 512}, {"M", 4096}}, {{"N", 1}, {"M", 1}}, {{"N", 3}, {"M", 301}}, {{"N", 300}, {"M", 2}}});
}
Task one(const std::string& body) { return few("<<<1, 1>>>", body); }

/// What all loops of these tests leave in `z`, so that every result is one.
const std::string rest = "  for (int k = 0; k < n * m; ++k) z[k] = 1.0f;\n";
} // namespace

TEST_CASE("a nest in one thread is numbered through, and keeps the numbers that its body needs") {
  const Task task = pointwise_in_one_thread();
  CHECK(is_offered_on_grid(task, "parallelization|shift_and_scale/b"));
  const auto sources = all_variants(task, task.kernel, "parallelization|shift_and_scale/b");
  REQUIRE(sources.size() == 6);
  CHECK(has(sources[0],
            "//@ launch shift_and_scale<<<ceil_div(B * C * P, 256), 256>>>(x, shift, y, B, C, P)\n"));
  CHECK(has(sources[0], "  const float scale = 2.0f;\n"
                        "  const int number = blockIdx.x * blockDim.x + threadIdx.x;\n"
                        "  if (number < B * C * P) {\n"
                        "    const int c = number / P % C;\n"
                        "    int at = number;\n"
                        "    y[at] = x[at] * scale + shift[c];\n"
                        "  }\n"));
  CHECK(has(sources[1], "//@ launch shift_and_scale<<<B * C * ceil_div(P, 256), 256>>>"));
  CHECK(has(sources[1], "  const unsigned int p_blocks = (P + 255) / 256;\n"
                        "  const int b = blockIdx.x / p_blocks / C;\n"
                        "  const int c = blockIdx.x / p_blocks % C;\n"
                        "  const int p = blockIdx.x % p_blocks * 256 + threadIdx.x;\n"
                        "  if (p < P) {\n"));
  if (mtmc_test::can_emulate) CHECK(worst_difference(task, sources) == 0);
}

TEST_CASE("loops with work of their own inside lie along the axes of a grid") {
  const Task task =
      idle_task("matmul",
                "//@ launch matmul<<<1, 1>>>(A, B, C, M, N, K)\n"
                "__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {\n"
                "  for (int i = 0; i < M; ++i)\n"
                "    for (int j = 0; j < N; ++j) {\n"
                "      float sum = 0.0f;\n"
                "      for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];\n"
                "      C[i * N + j] = sum;\n"
                "    }\n"
                "}\n",
                {{"A", {"M", "K"}}, {"B", {"K", "N"}}, {"C", {"M", "N"}}},
                {{{"M", 512}, {"N", 512}, {"K", 512}},
                 {{"M", 1}, {"N", 1}, {"K", 1}},
                 {{"M", 17}, {"N", 33}, {"K", 9}}});
  const auto sources = all_variants(task, task.kernel, "parallelization|matmul/i");
  REQUIRE(sources.size() > 3);
  CHECK(has(sources[0], "//@ launch matmul<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>"));
  CHECK(has(sources[0], "  const int i = blockIdx.y * blockDim.y + threadIdx.y;\n"
                        "  const int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
                        "  if (i < M && j < N) {\n"
                        "    float sum = 0.0f;\n"
                        "    for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];\n"));
  if (mtmc_test::can_emulate) CHECK(worst_difference(task, sources) == 0);
  // which is what tiles are made for
  CHECK(has(grid_source_after(task, {"parallelization|matmul/i", "tiling|matmul/k"}), "__shared__"));
}

TEST_CASE("few blocks that share a loop become many") {
  const Task block = few(
      "<<<1, 256>>>", "  for (int i = threadIdx.x; i < n * m; i += blockDim.x) y[i] = z[i] = 2.0f * x[i];\n");
  CHECK(is_offered_on_grid(block, "parallelization|f/i"));
  const std::string source = grid_source_after(block, {"parallelization|f/i"});
  CHECK(has(source, "//@ launch f<<<ceil_div(N * M, 256), 256>>>(x, y, z, N, M)\n"));
  CHECK(has(source, "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n * m) {\n"));
  const Task stride = few("<<<4, 128>>>", "  const size_t all = (size_t)n * m;\n"
                                          "  const size_t first = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                          "  for (size_t i = first; i < all; i += 512) {\n"
                                          "    y[i] = 2.0f * x[i]; z[i] = 1.0f;\n  }\n");
  CHECK(is_offered_on_grid(stride, "parallelization|f/i"));
  CHECK(has(grid_source_after(stride, {"parallelization|f/i"}),
            "const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;"));
  if (!mtmc_test::can_emulate) return;
  for (const Task& task : {block, stride})
    CHECK(worst_difference(task, all_variants(task, task.kernel, "parallelization|f/i")) == 0);
}

TEST_CASE("rows of few threads are spread over a grid, and rows of many over blocks first") {
  const std::string body =
      "  const unsigned row = threadIdx.x + blockIdx.x * 64;\n"
      "  if (row >= n) return;\n"
      "  const float* in = x + row * m;\n"
      "  for (int j = 0; j < m; ++j) { y[row * m + j] = fmaxf(in[j], 0.0f); z[row * m + j] = row; }\n";
  Task task = few("<<<ceil_div(N, 64), 64>>>", body);
  const auto sources = all_variants(task, task.kernel, "parallelization|f/j");
  REQUIRE(sources.size() > 6);
  CHECK(has(sources[0], "//@ launch f<<<N * ceil_div(M, 256), 256>>>"));
  CHECK(has(sources[0], "  const unsigned row = blockIdx.x / j_blocks;\n"));
  if (mtmc_test::can_emulate) CHECK(worst_difference(task, sources) == 0);
  task.sizes.front().symbols["N"] = 8192;
  const auto many = all_variants(task, task.kernel, "parallelization|f/j");
  CHECK(many.size() == sources.size());
  CHECK(has(many[0], "lane"));
}

TEST_CASE("loops that stand by themselves become a launch each, in their order") {
  const Task task = one("  const float a = 3.0f;\n"
                        "  const float b = 4.0f;\n"
                        "  // first\n"
                        "  for (int i = 0; i < n * m; ++i) y[i] = a * x[i];\n"
                        "  // second\n"
                        "  for (int i = 0; i < n; ++i)\n"
                        "    for (int j = 0; j < m; ++j) {\n"
                        "      z[i * m + j] = b * (y[i * m + m - 1 - j] + x[i * m]) + j;\n"
                        "    }\n");
  CHECK(is_offered_on_grid(task, "parallelization|f/threads:x"));
  const auto sources = all_variants(task, task.kernel, "parallelization|f/threads:x");
  REQUIRE(sources.size() >= 3);
  CHECK(has(sources[0], "//@ launch f_1<<<ceil_div(N * M, 256), 256>>>(x, y, z, N, M)\n"
                        "//@ launch f_2<<<"));
  CHECK_FALSE(has(sources[0].substr(sources[0].find("void f_2")), "a = 3.0f"));
  if (mtmc_test::can_emulate) CHECK(worst_difference(task, sources) == 0);
}

TEST_CASE("one thread is found behind branches, and sums of it are given to a block") {
  for (const std::string guard :
       {"  if (threadIdx.x == 0 && blockIdx.x == 0) {\n",
        "  int t = blockIdx.x * blockDim.x + threadIdx.x;\n  if (t < 1) {\n",
        "  const int t = threadIdx.x;\n  if (t != 0 || blockIdx.x > 0) return;\n  if (!t) {\n"}) {
    CAPTURE(guard);
    const Task task =
        few("<<<2, 64>>>", guard + "  for (int i = 0; i < n * m; i++) y[i] = z[i] = -x[i];\n  }\n");
    const auto sources = all_variants(task, task.kernel, "parallelization|f/i");
    REQUIRE(sources.size() == 3);
    CHECK(has(sources[0], "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n * m) {\n"));
    if (mtmc_test::can_emulate) CHECK(worst_difference(task, sources) == 0);
  }
  const Task sum = sum_in_one_thread();
  CHECK(is_offered_on_grid(sum, "parallelization|vector_sum/i"));
  const auto sources = all_variants(sum, sum.kernel, "parallelization|vector_sum/i");
  REQUIRE_FALSE(sources.empty());
  CHECK(has(sources[0], "//@ launch vector_sum<<<1, 1024>>>(x, out, N)\n"));
  CHECK(has(
      sources[0],
      "  const int lane = threadIdx.x;\n  float sum = 0.0f;\n  for (int i = lane; i < N; i += 1024) {\n"));
  if (mtmc_test::can_emulate) CHECK(worst_difference(sum, sources) < 5e-5);
}

TEST_CASE("loops that start elsewhere, step wider, or may have no iteration") {
  if (!mtmc_test::can_emulate) return;
  for (const std::string body :
       {"  for (int i = 0; i < n * m; ++i) y[i] = 0.0f;\n  for (int i = 1; i < n * "
        "m - 1; ++i) y[i] = x[i - 1] + x[i + 1];\n",
        "  for (int i = 0; i < n * m; ++i) y[i] = 0.0f;\n  for (int i = 0; i <= n * "
        "m - 2; i += 2) y[i] = x[i];\n",
        "  for (int i = 0; i < n * m; ++i) y[i] = 0.0f;\n"
        "  for (int i = 1; i < n - 1; ++i)\n    for (int j = 1; j < m; j += 3) y[i "
        "* m + j] = x[(i - 1) * m + j];\n",
        "  for (unsigned i = 0; i < n; ++i)\n    for (long long j = 0; j < m; ++j) "
        "{ float t = x[i * m + j]; y[i * m + j] = t * j; }\n",
        "  int middle = m / 2;\n  for (int i = 0; i < n * m; ++i) y[i] = 0.0f;\n"
        "  for (int j = 0; j < middle; ++j)\n    for (int i = 0; i < n; ++i) { y[i * "
        "m + j] = x[i * m + j + middle]; }\n"}) {
    CAPTURE(body);
    const Task task = one(body + rest);
    const auto sources = all_variants(task, task.kernel, "parallelization|f/threads:x", 4);
    REQUIRE_FALSE(sources.empty());
    CHECK(worst_difference(task, sources) == 0);
  }
}

TEST_CASE("what cannot be spread is declined with the reason, or given to one block") {
  const auto because = [](const Task& task) {
    return grid_draft(task, task.kernel, "parallelization|f/i").message;
  };
  CHECK(has(because(one("  for (int i = 1; i < n * m; ++i) y[i] = y[i - 1] + x[i];\n")),
            "iterations of i may depend on each other through y"));
  CHECK(has(
      because(few(
          "<<<N, 64>>>",
          "  for (int i = threadIdx.x + blockIdx.x * 64; i < n * m; i += 64 * gridDim.x) y[i] = x[i];\n")),
      "line 3 speaks of threads or blocks"));
  CHECK(has(
      because(few(
          "<<<1, 64>>>",
          "  float t = threadIdx.x;\n  for (int i = threadIdx.x; i < n * m; i += 64) y[i] = t * x[i];\n")),
      "line 4 speaks of threads or blocks"));
  CHECK(has(because(few("<<<1, 64>>>", "  for (int i = threadIdx.x; i < n * m; i += 32) y[i] = x[i];\n")),
            "do not share all loops one after the other"));
  // Another thread might have divided the first element already.
  const Task divided = one("  float first = y[0];\n  for (int i = 0; i < n * m; ++i) y[i] = x[i] / first;\n");
  CHECK(has(grid_source_after(divided, {"parallelization|f/i"}), "<<<1, "));
  const Task stored = one("  for (int i = 0; i < n * m; ++i) y[i] = x[i];\n  z[0] = 1.0f;\n");
  CHECK(has(grid_source_after(stored, {"parallelization|f/i"}), "<<<1, "));
}
