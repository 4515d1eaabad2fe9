// What a later launch does to an element is done where the earlier one makes it: chains and epilogues, legal
// by analysis, with the same bits.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "grid_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// Two launches: `t[i] = 2 * x[i]`, then `second`.
Task chain(const std::string& second, const std::string& line) {
  return TaskBuilder{"chain"}
      .kernel(languages::cuda, "//@ scratch t: f32[N]\n"
                               "//@ launch twice<<<ceil_div(N, 128), 128>>>(x, t, N)\n"
                               "//@ launch " +
                                   line + "\n" +
                                   "__global__ void twice(const float* x, float* t, int N) {\n"
                                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "  if (i < N) {\n    t[i] = 2.0f * x[i];\n  }\n}\n" +
                                   second)
      .shape("x", {"N"})
      .shape("y", {"N"})
      .size({{"N", 1 << 20}})
      .check({{"N", 1003}})
      .check({{"N", 1}})
      .build();
}
const std::string both = "fusion|launch:twice+launch:next";
} // namespace

TEST_CASE("a chain of launches over the same elements becomes one, and its buffers are gone") {
  const Task task = chain("__global__ void next(const float* t, float* y, int N) {\n"
                          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                          "  if (i < N) {\n    y[i] = t[i] * t[i] + i;\n  }\n}\n",
                          "next<<<ceil_div(N, 256), 256>>>(t, y, N)");
  const std::string source = grid_source_after(task, {both});
  CHECK_FALSE(has(source, "scratch"));
  CHECK(has(source, "//@ launch twice_next<<<ceil_div(N, 128), 128>>>(x, N, y)\n"));
  CHECK(has(source, "    const float t_value = 2.0f * x[i];\n"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0);
}

TEST_CASE("an epilogue goes into a product, before it is tiled and after") {
  const Task task = cuda_task("gemm_bias_gelu");
  const std::string all = "fusion|launch:linear+launch:add_bias+launch:gelu";
  const std::string source = grid_source_after(task, {all, "tiling|linear_add_bias_gelu/k"});
  CHECK(has(source, "//@ launch linear_add_bias_gelu<<<(ceil_div(N, "));
  CHECK_FALSE(has(source, "scratch"));
  if (!mtmc_test::can_emulate) return;
  CHECK(grid_difference(task, source) == 0);
  CHECK(grid_difference(
            task, grid_source_after(task, {"tiling|linear/k", "fusion|launch:add_bias+launch:gelu"})) == 0);
}

TEST_CASE("elements that other threads need stay in memory") {
  const auto reason = [](const std::string& second, const std::string& line) {
    const Task task = chain(second, line);
    return grid_draft(task, task.kernel, both).message;
  };
  CHECK(has(reason("__global__ void next(const float* t, float* y, int N) {\n"
                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                   "  if (i < N) {\n    y[i] = t[N - 1 - i];\n  }\n}\n",
                   "next<<<ceil_div(N, 128), 128>>>(t, y, N)"),
            "it is not proved"));
  CHECK(has(reason("__global__ void next(const float* t, float* y, int N) {\n"
                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                   "  if (i < N) {\n    y[i] = i > 0 ? t[i] - t[i - 1] : t[i];\n  }\n}\n",
                   "next<<<ceil_div(N, 128), 128>>>(t, y, N)"),
            "it is not proved"));
}

TEST_CASE("where a thread may leave its element as it was, the later launch stays") {
  const std::string next = "__global__ void next(const float* y, float* z, int N) {\n"
                           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                           "  if (i < N) {\n    z[i] = y[i] + 1.0f;\n  }\n}\n";
  const auto reason = [&](const std::string& work) {
    const Task task = TaskBuilder{"some"}
                          .kernel(languages::cuda, "//@ launch some<<<ceil_div(N, 128), 128>>>(x, y, N)\n"
                                                   "//@ launch next<<<ceil_div(N, 128), 128>>>(y, z, N)\n"
                                                   "__global__ void some(const float* x, float* y, int N) {\n"
                                                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
                                                       work + "}\n" + next)
                          .shape("x", {"N"})
                          .shape("y", {"N"})
                          .role("y", ArgumentRole::inout)
                          .shape("z", {"N"})
                          .size({{"N", 1 << 20}})
                          .check({{"N", 1003}})
                          .build();
    return grid_draft(task, task.kernel, "fusion|launch:some+launch:next").message;
  };
  const std::string declined = "some stores y under a condition";
  CHECK(reason("  if (i < N) {\n    if (x[i] > 0.0f) y[i] = x[i];\n  }\n") == declined);
  CHECK(reason("  if (i >= N) return;\n  if (x[i] <= 0.0f) return;\n  y[i] = x[i];\n") == declined);
  CHECK(reason("  if (i < N && i > 3) {\n    y[i] = x[i];\n  }\n") == declined);
  CHECK(has(reason("  if (i < N) {\n    if (i < N - 1) y[i] = x[i];\n  }\n"), "it is not proved"));
  CHECK(reason("  if (i < N) {\n    float v = x[i];\n    if (v > 0.0f) {\n      y[i] = v;\n    }\n  }\n") ==
        declined);
}

TEST_CASE("a store in both ways of a branch is one store") {
  const Task task = TaskBuilder{"both"}
                        .kernel(languages::cuda, "//@ scratch t: f32[N]\n"
                                                 "//@ launch leaky<<<ceil_div(N, 128), 128>>>(x, t, N)\n"
                                                 "//@ launch next<<<ceil_div(N, 128), 128>>>(t, y, N)\n"
                                                 "__global__ void leaky(const float* x, float* t, int N) {\n"
                                                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                                 "  if (i < N) {\n    if (x[i] > 1.0f)\n      t[i] = 1.0f;\n"
                                                 "    else if (x[i] > 0.0f)\n      t[i] = x[i];\n"
                                                 "    else\n      t[i] = 0.1f * x[i];\n  }\n}\n"
                                                 "__global__ void next(const float* t, float* y, int N) {\n"
                                                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                                 "  if (i < N) y[i] = t[i] / (1.0f + fabsf(t[i]));\n}\n")
                        .shape("x", {"N"})
                        .shape("y", {"N"})
                        .size({{"N", 1 << 20}})
                        .check({{"N", 1003}})
                        .build();
  const std::string source = grid_source_after(task, {"fusion|launch:leaky+launch:next"});
  CHECK(has(source, "const float t_value = x[i] > 1.0f ? 1.0f : x[i] > 0.0f ? x[i] : 0.1f * x[i];\n"));
  CHECK_FALSE(has(source, "scratch"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0.0);
}

TEST_CASE("launches in place are fused: the element changes in a register and is stored once") {
  const auto task = [](const std::string& second) {
    return TaskBuilder{"in_place"}
        .kernel(languages::cuda, "//@ launch twice<<<ceil_div(N, 128), 128>>>(x, y, N)\n"
                                 "//@ launch bend<<<ceil_div(N, 128), 128>>>(y, x, N)\n"
                                 "__global__ void twice(const float* x, float* y, int N) {\n"
                                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                 "  if (i < N) y[i] = y[i] + x[i] * 2.0f;\n}\n"
                                 "__global__ void bend(float* y, const float* x, int N) {\n"
                                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < N) {\n" +
                                     second + "  }\n}\n")
        .shape("x", {"N"})
        .shape("y", {"N"})
        .role("y", ArgumentRole::inout)
        .size({{"N", 1 << 20}})
        .check({{"N", 1003}})
        .build();
  };
  const std::string key = "fusion|launch:twice+launch:bend";
  const Task bent = task("    if (y[i] < 0.0f) y[i] = 0.1f * y[i];\n    y[i] += x[i];\n");
  const std::string source = grid_source_after(bent, {key});
  CHECK(has(source, "    float y_value = y[i] + x[i] * 2.0f;\n    int i_2 = i;\n"
                    "    if (y_value < 0.0f)\n      y_value = 0.1f * y_value;\n    y_value += x[i_2];\n"
                    "    y[i] = y_value;\n"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(bent, source) == 0.0);
  const auto reason = [&](const std::string& second) {
    return grid_draft(task(second), task(second).kernel, key).message;
  };
  CHECK(has(reason("    y[i] = y[(i + 1) % N];\n"), "it is not proved"));
  CHECK(has(reason("    if (y[i] > 1.0f) return;\n    y[i] = 0.5f * y[i];\n"), "bend returns early"));
  CHECK_FALSE(
      grid_draft(task("    atomicAdd(&y[i], x[i]);\n"), task("    atomicAdd(&y[i], x[i]);\n").kernel, key)
          .kernel);
}

TEST_CASE("a launch over layers is fused with one over all elements: both reach each element once") {
  const auto task = [](const std::string& layers) {
    return TaskBuilder{"layers"}
        .kernel(
            languages::cuda,
            "//@ scratch t: f32[N, C, P]\n"
            "//@ launch centre<<<(ceil_div(P, 128), C, " +
                layers +
                "), 128>>>(x, t, C, P)\n"
                "//@ launch scale<<<ceil_div(N * C * P, 128), 128>>>(t, w, y, N, C, P)\n"
                "__global__ void centre(const float* x, float* t, int C, int P) {\n"
                "  int p = blockIdx.x * blockDim.x + threadIdx.x;\n  int c = blockIdx.y, n = blockIdx.z;\n"
                "  if (p < P) {\n    int at = (n * C + c) * P + p;\n    t[at] = x[at] - 0.5f;\n  }\n}\n"
                "__global__ void scale(const float* t, const float* w, float* y, int N, int C, int P) {\n"
                "  int at = blockIdx.x * blockDim.x + threadIdx.x;\n"
                "  if (at >= N * C * P) return;\n  y[at] = t[at] * w[at / P % C];\n}\n")
        .shape("x", {"N", "C", "P"})
        .shape("w", {"C"})
        .shape("y", {"N", "C", "P"})
        .size({{"N", 16}, {"C", 64}, {"P", 4096}})
        .check({{"N", 3}, {"C", 5}, {"P", 133}})
        .check({{"N", 1}, {"C", 1}, {"P", 1}})
        .build();
  };
  const std::string key = "fusion|launch:centre+launch:scale";
  const std::string source = grid_source_after(task("N"), {key});
  CHECK(has(source, "//@ launch centre_scale<<<(ceil_div(P, 128), C, N), 128>>>(x, C, P, w, y, N)\n"));
  CHECK(has(source, "    int at_2 = at;\n"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task("N"), source) == 0.0);
  const Task some = task("max(N - 1, 1)"); // the last layer is left out
  CHECK(has(grid_draft(some, some.kernel, key).message, "it is not proved"));
}

TEST_CASE("a launch of fewer threads than its guard lets through is not done by all") {
  Task task =
      chain("__global__ void next(const float* t, float* y, int N) {\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < N) {\n    y[i] = t[i];\n  }\n}\n",
            "next<<<1, 128>>>(t, y, N)");
  CHECK(has(grid_draft(task, task.kernel, both).message, "it is not proved"));
}
