// Long reductions of few results: more threads than results, parts of blocks combined by a second launch.

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
std::string reason(const Task& task, const std::string& key) {
  return grid_draft(task, task.kernel, key).message;
}

/// A task of rows: a function of `x` [M, N] with one result a row in `y`.
Task row_task(const std::string& body, const std::string& before = "", const std::string& bounds = "") {
  return idle_task(
      "f",
      before +
          "//@ launch f<<<ceil_div(M, 64), 64>>>(x, y, M, N)\n"
          "__global__ void " +
          bounds +
          "f(const float* x, float* y, int M, int N) {\n"
          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
          body + "}\n",
      {{"x", {"M", "N"}}, {"y", {"M"}}},
      {{{"M", 8}, {"N", 1 << 18}}, {{"M", 1}, {"N", 1}}, {{"M", 9}, {"N", 301}}, {{"M", 2}, {"N", 9000}}});
}
} // namespace

TEST_CASE("blocks share the sum of one thread, and a second launch combines their parts and does the rest") {
  const Task task = mean_squared_error();
  CHECK(is_offered_on_grid(task, task.kernel, "splitting|mse/i"));
  const std::string source = grid_source_after(task, {"splitting|mse/i"});
  CHECK(has(source, "//@ scratch total_parts: f32[256]\n"
                    "//@ launch mse_in_parts<<<256, 256>>>(predictions, targets, B, D, total_parts)\n"
                    "//@ launch mse<<<1, 256>>>(loss, B, D, total_parts, 256)\n"));
  CHECK(has(source, "  for (int i = i_first + lane; i < i_end; i += 256) {\n"
                    "    const float error = predictions[i] - targets[i];\n"
                    "    total = total + error * error;\n"
                    "  }\n"
                    "  total = sum_of_block(total);\n"
                    "  if (lane == 0) {\n"
                    "    total_parts[part] = total;\n"));
  CHECK(has(source, "  for (int part = lane; part < parts; part += 256) {\n"
                    "    total += total_parts[part];\n"
                    "  }\n"
                    "  total = sum_of_block(total);\n"
                    "  if (lane == 0) {\n"
                    "    *loss = total / (float)count;\n"));
}

TEST_CASE("threads above each other share the sum of a column") {
  const Task task = column_sums();
  CHECK(is_offered_on_grid(task, task.kernel, "splitting|column_sums/i"));
  std::string alone;
  for (const std::string& source : all_variants(task, task.kernel, "splitting|column_sums/i"))
    if (alone.empty() && !has(source, "scratch")) alone = source;
  CHECK(has(alone, "//@ launch column_sums<<<ceil_div(N, 32), (32, 32)>>>(x, sums, M, N)\n"));
  CHECK(has(alone, "  const int lane = threadIdx.y;\n"
                   "  const int j_thread = blockIdx.x * 32 + threadIdx.x;\n"
                   "  const bool inside = j_thread < N;\n"
                   "  // Threads beyond the last result do the last one's work, and store nothing.\n"
                   "  const int j = j_thread < N ? j_thread : N - 1;\n"
                   "  float sum = 0.0f;\n"
                   "  for (int i = lane; i < M; i += 32) {\n"
                   "    sum += x[i * N + j];\n"
                   "  }\n"
                   "  __shared__ float sum_of_lanes[32][32];\n"));
  CHECK(has(alone, "  if (lane == 0 && inside) {\n    sums[j] = sum;\n"));
}

TEST_CASE("what a block combines already it goes on combining, of fewer elements") {
  const Task rows = long_rows();
  CHECK(is_offered_on_grid(rows, rows.kernel, "splitting|row_norms/j"));
  const std::string source = grid_source_after(rows, {"splitting|row_norms/j"});
  CHECK(has(source, "//@ scratch sum_parts: f32[M, ceil_div(528, M)]\n"));
  CHECK(has(source, "  sum = sum_of_block(sum);\n  if (threadIdx.x == 0) {\n"));
  const Task tree = sum_in_one_block();
  CHECK(is_offered_on_grid(tree, tree.kernel, "splitting|block_sum/i"));
  CHECK(has(grid_source_after(tree, {"splitting|block_sum/i"}), "sum_parts[part] = partial[0];"));
}

TEST_CASE("what is not known to combine the threads keeps a part for each thread") {
  const Task task =
      idle_task("f",
                "//@ launch f<<<1, 64>>>(x, y, N)\n"
                "__global__ void f(const float* x, float* y, int N) {\n"
                "  float sum = 1.0f;\n"
                "  for (int i = threadIdx.x; i < N; i += 64) sum += x[i];\n"
                "  y[threadIdx.x] = sum;\n"
                "}\n",
                {{"x", {"N"}}, {"y", {"64"}}}, {{{"N", 1 << 22}}, {{"N", 1}}, {{"N", 5000}}, {{"N", 100}}});
  const auto sources = all_variants(task, task.kernel, "splitting|f/i");
  REQUIRE_FALSE(sources.empty());
  CHECK(has(sources.front(), "sum_parts[part * results + result] = sum;"));
  if (mtmc_test::can_emulate) CHECK(worst_difference(task, sources) < 1e-5);
}

TEST_CASE("reductions that are split are right at every size, in every shape") {
  if (!mtmc_test::can_emulate) return;
  for (const auto& [task, key] :
       std::vector<std::pair<Task, std::string>>{{sum_in_one_thread(), "vector_sum/i"},
                                                 {sum_in_one_block(), "block_sum/i"},
                                                 {mean_squared_error(), "mse/i"},
                                                 {column_sums(), "column_sums/i"},
                                                 {channel_mean(), "channel_mean/n"},
                                                 {batch_statistics(), "batch_statistics/b"},
                                                 {middle_maximum(), "middle_maximum/m"},
                                                 {dot_product(), "dot/k"},
                                                 {short_gemv(), "gemv/k"},
                                                 {thin_gemm(), "thin_gemm/k"},
                                                 {long_rows(), "row_norms/j"}}) {
    const auto& shown = key;
    CAPTURE(shown);
    CHECK(is_offered_on_grid(task, task.kernel, "splitting|" + key));
    const auto sources = all_variants(task, task.kernel, "splitting|" + key, 6, small_gpu());
    CHECK(sources.size() >= 2);
    CHECK(worst_difference(task, sources) < 5e-5);
  }
}

TEST_CASE("products, minima, starts other than nothing and several reductions in one loop") {
  if (!mtmc_test::can_emulate) return;
  for (const std::string body :
       {"  if (i >= M) return;\n  float p = 1.0f;\n"
        "  for (int j = 0; j < N; ++j) p *= 1.0f + 0.001f * x[i * N + j];\n  y[i] = p;\n",
        "  if (i >= M) return;\n  float least = 1e30f;\n"
        "  for (int j = 0; j < N; ++j) least = x[i * N + j] < least ? x[i * N + j] : least;\n  y[i] = "
        "least;\n",
        "  if (!(i < M)) return;\n  float sum = x[i * N];\n"
        "  for (unsigned j = 1; j < N; ++j) { sum += x[i * N + j]; }\n  y[i] = sqrtf(fabsf(sum));\n",
        "  if (i < M) {\n    float sum = 2.5f, big = x[i * N];\n"
        "    for (int j = N - 1; j >= 0; --j) { sum += x[i * N + j]; }\n    y[i] = sum + big;\n  }\n",
        "  const float* row = x + (size_t)i * N;\n  if (i < M) {\n    float sum = 0, big = row[0];\n    int "
        "n = 3;\n"
        "    for (int j = 1; j <= N - 1; j += 2) { const float v = row[j]; sum -= v * v; big = fmaxf(big, "
        "v); n++; }\n"
        "    y[i] = sum * big + n;\n  }\n"}) {
    CAPTURE(body);
    const Task task = row_task(body, "", "__launch_bounds__(64) ");
    const auto sources = all_variants(task, task.kernel, "splitting|f/j", 5, small_gpu());
    if (has(body, "--j")) {
      CHECK(has(reason(task, "splitting|f/j"), "the j loop counts down"));
      continue;
    }
    REQUIRE(sources.size() >= 2);
    CHECK_FALSE(has(sources.front(), "__launch_bounds__"));
    CHECK(worst_difference(task, sources) < 5e-5);
  }
}

TEST_CASE("threads that a branch leaves out for another reason stay out") {
  if (!mtmc_test::can_emulate) return;
  for (const std::string guard :
       {"  int twice = 2 * j;\n  if (twice >= N) return;\n", "  if (j >= N || j % 3 == 1) return;\n",
        "  if (!(j < N) || x[j] > 0.0f) return;\n", "  if (j + 1 > N) return;\n  float t[2];\n",
        "  if (j < N)\n  if (M > 1) {\n"}) {
    CAPTURE(guard);
    const Task task =
        idle_task("f",
                  "//@ launch clear<<<ceil_div(N, 64), 64>>>(y, N)\n"
                  "//@ launch f<<<ceil_div(N, 64), 64>>>(x, y, M, N)\n"
                  "__global__ void clear(float* y, int N) {\n"
                  "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n  if (j < N) y[j] = 0.0f;\n}\n"
                  "__global__ void f(const float* x, float* y, int M, int N) {\n"
                  "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n" +
                      guard +
                      "  float sum = 0.0f;\n"
                      "  for (int i = 0; i < M; ++i) { float v[2]; v[0] = x[i * N + j]; sum += v[0]; }\n"
                      "  y[j] = sum;\n" +
                      (guard.ends_with("{\n") ? "  }\n" : "") + "}\n",
                  {{"x", {"M", "N"}}, {"y", {"N"}}},
                  {{{"M", 8192}, {"N", 64}}, {{"M", 1}, {"N", 1}}, {{"M", 70}, {"N", 77}}});
    const auto sources = all_variants(task, task.kernel, "splitting|f/i", 6, small_gpu());
    REQUIRE(sources.size() > 2);
    CHECK(worst_difference(task, sources) < 1e-5);
  }
}

TEST_CASE("a reduction is split again, and after its rows were given to blocks") {
  if (!mtmc_test::can_emulate) return;
  const Task gemv = short_gemv();
  const Kernel shared{languages::cuda, grid_source_after(gemv, {"parallelization|gemv/k@1"})};
  CHECK(is_offered_on_grid(gemv, shared, "splitting|gemv/k"));
  CHECK(worst_difference(gemv, all_variants(gemv, shared, "splitting|gemv/k", 3, small_gpu())) < 5e-5);
  const Task sum = sum_in_one_thread();
  CHECK(
      worst_difference(sum, {grid_source_after(sum, {"parallelization|vector_sum/i", "splitting|vector_sum/i",
                                                     "splitting|vector_sum_in_parts/i"})}) < 5e-5);
  const Task columns = column_sums();
  const Kernel split{languages::cuda, grid_source_after(columns, {"splitting|column_sums/i@2"})};
  const auto again = all_variants(columns, split, "splitting|column_sums_in_parts/i", 2, small_gpu());
  if (!again.empty()) CHECK(worst_difference(columns, again) < 5e-5);
}

TEST_CASE("what cannot be split is declined with the reason") {
  const auto because = [](const std::string& body, const std::string& before = "") {
    return reason(row_task(body, before), "splitting|f/j");
  };
  CHECK(has(because("  if (i >= M) return;\n  float s = 0;\n"
                    "  for (int j = 0; j < N; ++j) s = 0.5f * s + x[i * N + j];\n  y[i] = s;\n"),
            "iterations of j depend on each other through s"));
  CHECK(has(because("  if (i >= M) return;\n  float s = 0;\n"
                    "  for (int j = 0; j < N; ++j) s += x[i * N + j];\n"
                    "  for (int j = 0; j < 3; ++j) s += j;\n  y[i] = s;\n"),
            "more than a result follows the j loop"));
  CHECK(has(because("  if (i >= M) return;\n  float s = 0;\n  y[i] = 1;\n"
                    "  for (int j = 0; j < N; ++j) s += x[i * N + j];\n  y[i] += s;\n"),
            "does something before the j loop"));
  CHECK(has(because("  if (i >= M) return;\n  y[i] = 0;\n"
                    "  for (int j = 0; j < N; ++j) y[i] += x[i * N + j];\n"),
            "does something before the j loop"));
  CHECK(has(because("  if (i >= M) return;\n  float s;\n  int last = 0;\n  s = 0;\n"
                    "  for (int j = 0; j < N; ++j) { s += x[i * N + j]; }\n  y[i] = s;\n"),
            "does something before the j loop"));
  CHECK(has(because("  if (i >= M) return;\n  float s = 0;\n  int last = 0;\n"
                    "  for (int j = 0; j < N; ++j) { s += x[i * N + j]; last = j; }\n  y[i] = s + last;\n"),
            "the last value of last in the j loop is used after it"));
  CHECK(has(because("  if (i < M) {\n    float s = 0;\n    for (int j = 0; j < N; ++j) s += x[i * N + j];\n"
                    "    y[i] = s;\n  } else {\n    return;\n  }\n"),
            "is not one branch"));
  CHECK(has(reason(row_task("  if (i >= M) return;\n  for (int k = 0; k < 3; ++k) {\n    float s = 0;\n"
                            "    for (int j = 0; j < N; ++j) s += x[i * N + j];\n    y[i] = s;\n  }\n"),
                   "splitting|f/k/j"),
            "iterations of k may depend on each other through y"));
}

TEST_CASE("a column whose factors all threads read together is one of columns first") {
  const Task task = idle_task(
      "product",
      "//@ launch product<<<ceil_div(N, 128), 128>>>(A, x, z, M, N)\n"
      "__global__ void product(const float* A, const float* x, float* z, unsigned m, unsigned n) {\n"
      "  unsigned int j = blockIdx.x * blockDim.x + threadIdx.x;\n  if (j < n) {\n"
      "    float dot = 0.0f;\n    for (unsigned int i = 0; i < m; i++) dot += A[i * n + j] * x[i];\n"
      "    z[j] = dot;\n  }\n}\n",
      {{"A", {"M", "N"}}, {"x", {"M"}}, {"z", {"N"}}},
      {{{"M", 4096}, {"N", 3072}}, {{"M", 101}, {"N", 67}}, {{"M", 1}, {"N", 1}}});
  const auto sources = all_variants(task, task.kernel, "splitting|product/i", 3, small_gpu());
  REQUIRE_FALSE(sources.empty());
  CHECK(has(sources.front(), "ceil_div(N, 32), (32, "));
  if (mtmc_test::can_emulate) CHECK(worst_difference(task, sources) < 1e-5);
}
