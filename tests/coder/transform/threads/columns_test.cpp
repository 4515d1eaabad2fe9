// What a thread does with a column is done by threads above each other; blocks of odd shapes get better ones.

#include <mtmc/analysis/region_finder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "grid_variants.hpp"
#include "idle_kernels.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// A function of `x` [B, C] whose threads have a column each; it makes `y` [B, C] and `m` [C].
Task columns(const std::string& body) {
  return idle_task(
      "norm",
      "//@ launch norm<<<ceil_div(C, 128), 128>>>(x, y, m, B, C)\n"
      "__global__ void norm(const float* x, float* y, float* m, int B, int C) {\n"
      "  const int c = blockIdx.x * blockDim.x + threadIdx.x;\n" +
          body + "}\n",
      {{"x", {"B", "C"}}, {"y", {"B", "C"}}, {"m", {"C"}}},
      {{{"B", 8192}, {"C", 512}}, {{"B", 1}, {"C", 1}}, {{"B", 77}, {"C", 130}}, {{"B", 40}, {"C", 33}}});
}
const std::string batch_norm =
    "  if (c >= C) return;\n"
    "  float mean = 0.0f;\n"
    "  for (int b = 0; b < B; ++b) mean += x[b * C + c];\n"
    "  mean /= B;\n"
    "  float var = 1e-5f, most = x[c];\n"
    "  for (int b = 0; b < B; ++b) {\n"
    "    float d = x[b * C + c] - mean;\n"
    "    var += d * d / B;\n"
    "    most = fmaxf(most, x[b * C + c]);\n"
    "  }\n"
    "  m[c] = most;\n"
    "  float scale = 1.0f / sqrtf(var);\n"
    "  for (int b = 0; b < B; ++b) y[b * C + c] = (x[b * C + c] - mean) * scale;\n";

/// A task without loops.
Task pointwise(const std::string& line, const std::string& body) {
  return idle_task("scale",
                   "//@ launch scale" + line +
                       "(x, y, M, N)\n__global__ void scale(const float* x, float* y, int m, int n) {\n" +
                       body + "}\n",
                   {{"x", {"M", "N"}}, {"y", {"M", "N"}}},
                   {{{"M", 4096}, {"N", 4096}}, {{"M", 1}, {"N", 1}}, {{"M", 33}, {"N", 70}}});
}
} // namespace

TEST_CASE("threads above each other share all loops of a column, and one of them stores") {
  const Task task = columns(batch_norm);
  CHECK(is_offered_on_grid(task, "parallelization|norm/threads:x"));
  CHECK(is_offered_on_grid(task, "splitting|norm/b"));
  const std::string source = grid_source_after(task, {"parallelization|norm/threads:x"});
  CHECK(has(source, "//@ launch norm<<<ceil_div(C, 32), (32, 32)>>>(x, y, m, B, C)\n"));
  CHECK(has(source, "  const bool inside = c_thread < C;\n"
                    "  // Threads beyond the last column do the last one's work, and store nothing.\n"
                    "  const int c = inside ? c_thread : C - 1;\n"));
  CHECK(has(source, "  mean = sum_of_column(mean);\n"));
  CHECK(has(source, "  float var_part = 0.0f;\n"));
  CHECK(has(source, "  var += sum_of_column(var_part);\n  most = largest_of_column(most);\n"
                    "  if (lane == 0 && inside)\n    m[c] = most;\n"));
  CHECK(has(source, "  if (inside)\n    for (int b = lane; b < B; b += 32)\n"));
  CHECK(grid_source_after(task, {"splitting|norm/b"}) == source);
}

TEST_CASE("shared columns are right at every size, in every shape") {
  if (!mtmc_test::can_emulate) return;
  const Task task = columns(batch_norm);
  const auto sources = all_variants(task, task.kernel, "parallelization|norm/threads:x");
  CHECK(sources.size() >= 4);
  CHECK(worst_difference(task, sources) < 1e-5);
  const Task statistics = batch_statistics();
  const auto one_loop = all_variants(statistics, statistics.kernel, "parallelization|batch_statistics/b", 5);
  REQUIRE_FALSE(one_loop.empty());
  CHECK(has(one_loop.front(), "sum_of_column"));
  CHECK(worst_difference(statistics, one_loop) < 1e-5);
  // what was stored is read again
  const Task again = columns("  if (c < C) {\n"
                             "    for (int b = 0; b < B; ++b) y[b * C + c] = 2 * x[b * C + c];\n"
                             "    float sum = 0;\n"
                             "    for (int b = 0; b < B; ++b) sum += y[(B - 1 - b) * C + c];\n"
                             "    m[c] = sum;\n"
                             "  }\n");
  const auto turned = all_variants(again, again.kernel, "parallelization|norm/threads:x", 5);
  REQUIRE_FALSE(turned.empty());
  CHECK(has(turned.front(), "  __syncthreads();\n  for (int b = lane; b < B; b += 32)\n    sum += "));
  CHECK(worst_difference(again, turned) < 1e-5);
}

TEST_CASE("rows that go along memory are not columns") {
  const Task task = short_gemv();
  CHECK_FALSE(has(grid_source_after(task, {"parallelization|gemv/k"}), "threadIdx.y"));
}

TEST_CASE("blocks of few threads, or of part of a warp, get the usual shape") {
  const Task line = pointwise("<<<ceil_div(M * N, 48), 48>>>", "  int i = blockIdx.x * 48 + threadIdx.x;\n"
                                                               "  if (i < m * n) y[i] = 2.0f * x[i];\n");
  CHECK(is_offered_on_grid(line, "parallelization|scale/threads:x"));
  const auto sources = all_variants(line, line.kernel, "parallelization|scale/threads:x");
  REQUIRE(sources.size() == 3);
  CHECK(has(sources[0], "//@ launch scale<<<ceil_div(M * N, 256), 256>>>(x, y, M, N)\n"));
  CHECK(has(sources[0],
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < m * n) y[i] = 2.0f * x[i];\n"));
  const Task plane = pointwise("<<<(ceil_div(N, 4), ceil_div(M, 8)), (4, 8)>>>",
                               "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
                               "  int i = blockIdx.y * blockDim.y + threadIdx.y;\n"
                               "  if (i >= m || j >= n) return;\n"
                               "  y[i * n + j] = 2.0f * x[i * n + j];\n");
  CHECK(is_offered_on_grid(plane, "parallelization|scale/threads:xy"));
  const auto planes = all_variants(plane, plane.kernel, "parallelization|scale/threads:xy");
  REQUIRE(planes.size() == 3);
  CHECK(has(planes[0], "//@ launch scale<<<(ceil_div(N, 32), ceil_div(M, 8)), (32, 8)>>>"));
  if (mtmc_test::can_emulate) {
    CHECK(worst_difference(line, sources) == 0);
    CHECK(worst_difference(plane, planes) == 0);
  }
  const Task usual =
      pointwise("<<<ceil_div(M * N, 256), 256>>>", "  int i = blockIdx.x * 256 + threadIdx.x;\n"
                                                   "  if (i < m * n) y[i] = 2.0f * x[i];\n");
  CHECK_FALSE(is_offered_on_grid(usual, "parallelization|scale/threads:x"));
  const Task loose = pointwise("<<<ceil_div(M * N, 48), 48>>>", "  int i = blockIdx.x * 48 + threadIdx.x;\n"
                                                                "  if (i < m * n - 1) y[i] = 2.0f * x[i];\n");
  CHECK(has(grid_draft(loose, loose.kernel, "parallelization|scale/threads:x").message,
            "it is not one branch that leaves out threads beyond the last i"));
}

TEST_CASE("columns are found where the number of a thread is taken apart, and along other axes") {
  const Task middle =
      idle_task("mean",
                "//@ launch mean<<<ceil_div(B * C, 192), 192>>>(x, y, B, T, C)\n"
                "__global__ void mean(const float* x, float* y, int B, int T, int C) {\n"
                "  int index = blockIdx.x * blockDim.x + threadIdx.x;\n  if (index >= B * C) return;\n"
                "  int b = index / C, c = index - b * C;\n  float sum = 0.0f;\n"
                "  for (int t = 0; t < T; ++t) sum += x[(b * T + t) * C + c];\n  y[index] = sum / T;\n}\n",
                {{"x", {"B", "T", "C"}}, {"y", {"B", "C"}}},
                {{{"B", 16}, {"T", 512}, {"C", 1024}},
                 {{"B", 3}, {"T", 45}, {"C", 37}},
                 {{"B", 1}, {"T", 1}, {"C", 1}}});
  const auto sources = all_variants(middle, middle.kernel, "parallelization|mean/t", 3);
  REQUIRE_FALSE(sources.empty());
  CHECK(has(sources.front(), "//@ launch mean<<<ceil_div(B * C, 32), (32, 16)>>>(x, y, B, T, C)\n"));
  const Task channels =
      idle_task("rms",
                "//@ launch rms<<<(ceil_div(P, 128), B), 128>>>(x, y, C, P)\n"
                "__global__ void rms(const float* x, float* y, int C, int P) {\n"
                "  int p = blockIdx.x * blockDim.x + threadIdx.x;\n  int b = blockIdx.y;\n"
                "  if (p >= P) return;\n  float sum = 0.0f;\n"
                "  for (int c = 0; c < C; c++) sum += x[(b * C + c) * P + p] * x[(b * C + c) * P + p];\n"
                "  for (int c = 0; c < C; c++) y[(b * C + c) * P + p] = x[(b * C + c) * P + p] / sum;\n}\n",
                {{"x", {"B", "C", "P"}}, {"y", {"B", "C", "P"}}},
                {{{"B", 16}, {"C", 128}, {"P", 4096}},
                 {{"B", 3}, {"C", 37}, {"P", 45}},
                 {{"B", 1}, {"C", 1}, {"P", 1}}});
  const auto spread = all_variants(channels, channels.kernel, "parallelization|rms/threads:xy", 2);
  REQUIRE_FALSE(spread.empty());
  CHECK(has(spread.front(), "//@ launch rms<<<(ceil_div(P, 32), B), (32, 8)>>>(x, y, C, P)\n"));
  if (!mtmc_test::can_emulate) return;
  CHECK(worst_difference(middle, sources) < 1e-5);
  CHECK(worst_difference(channels, spread) < 1e-5);
}
