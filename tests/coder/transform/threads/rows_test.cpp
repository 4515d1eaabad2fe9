// What one thread of a launch does is done by a warp or a block: legal, right at every size, and composed
// with itself.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "grid_variants.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// A CUDA task with rows of N elements in `x`, which may change, and results in `y` of the same shape.
Task rows(const std::string& body) {
  return TaskBuilder{"rows"}
      .kernel(languages::cuda, "//@ launch rows<<<ceil_div(M, 128), 128>>>(x, y, M, N)\n"
                               "__global__ void rows(float* x, float* y, int M, int N) {\n"
                               "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
                                   body + "}\n")
      .shape("x", {"M", "N"})
      .role("x", ArgumentRole::inout)
      .shape("y", {"M", "N"})
      .size({{"M", 4096}, {"N", 1024}})
      .check({{"M", 5}, {"N", 77}})
      .check({{"M", 1}, {"N", 1}})
      .build();
}
std::string reason(const Task& task) {
  return grid_draft(task, task.kernel, "parallelization|rows/threads:x").message;
}
} // namespace

TEST_CASE("a block shares the row of a thread: loops in turn, sums and maxima combined, one thread stores") {
  const Task task = cuda_task("softmax");
  const std::string source = grid_source_after(task, {"parallelization|softmax/threads:x"});
  CHECK(has(source, "//@ launch softmax<<<M, 128>>>(x, y, M, N)\n"));
  CHECK(has(source, "  int i = blockIdx.x;\n  const int lane = threadIdx.x;\n  if (i < M) {\n"));
  CHECK(has(source, "    for (int j = 1 + lane; j < N; j += 128) {\n"
                    "      largest = fmaxf(largest, x[i * N + j]);\n    }\n"
                    "    largest = largest_of_block(largest);\n"));
  CHECK(has(source, "    total = sum_of_block(total);\n"));
  const std::string sum = grid_source_after(cuda_task("row_sum"), {"parallelization|row_sum/j"});
  CHECK(has(sum, "if (lane == 0)"));
}

TEST_CASE("rows that a warp or a block shares are right at every size, in every shape") {
  if (!mtmc_test::can_emulate) return;
  for (const auto& [name, key] : std::vector<std::pair<std::string, std::string>>{
           {"softmax", "parallelization|softmax/threads:x"},
           {"layer_norm", "parallelization|layer_norm/threads:x"},
           {"rms_norm", "parallelization|rms_norm/threads:x"},
           {"row_sum", "parallelization|row_sum/j"},
           {"attention", "parallelization|soften/threads:x"}}) {
    const auto& shown = name;
    CAPTURE(shown);
    const Task task = cuda_task(name);
    const auto sources = all_variants(task, task.kernel, key);
    CHECK(sources.size() >= 3);
    CHECK(worst_difference(task, sources) < 1e-5);
  }
  const Task quantised = cuda_task("dequantize_gemv");
  for (const std::string sample : {"@0", "@1"})
    CHECK(grid_difference(quantised, grid_source_after(
                                         quantised, {"parallelization|dequantize_gemv/k" + sample})) < 1e-5);
}

TEST_CASE("threads wait where one reads what another wrote, and only there") {
  const std::string own = "  if (i >= M) return;\n"
                          "  for (int j = 0; j < N; ++j) x[i * N + j] = 2 * x[i * N + j];\n"
                          "  for (int j = 0; j < N; ++j) y[i * N + j] = x[i * N + j] + 1;\n";
  const Task same = rows(own);
  CHECK_FALSE(has(grid_source_after(same, {"parallelization|rows/threads:x"}), "__syncthreads"));
  const Task turned = rows("  if (i >= M) return;\n"
                           "  for (int j = 0; j < N; ++j) x[i * N + j] = 2 * x[i * N + j];\n"
                           "  for (int j = 0; j < N; ++j) y[i * N + j] = x[i * N + N - 1 - j];\n");
  const std::string source = grid_source_after(turned, {"parallelization|rows/threads:x"});
  CHECK(has(source, "  __syncthreads();\n  for (int j = lane; j < N; j += 128)"));
  const Task stored = rows("  if (i < M) {\n"
                           "    float sum = 1.0f;\n"
                           "    for (int j = 0; j < N; ++j) sum += x[i * N + j];\n"
                           "    x[i * N] = sum;\n"
                           "    for (int j = 0; j < N; ++j) y[i * N + j] = x[i * N] + j;\n"
                           "  }\n");
  const std::string with_sum = grid_source_after(stored, {"parallelization|rows/threads:x"});
  CHECK(has(with_sum, "float sum_part = 0.0f;"));
  CHECK(has(with_sum, "sum += sum_of_block(sum_part);"));
  if (!mtmc_test::can_emulate) return;
  for (const Task& task : {same, turned, stored})
    for (int sample = 0; sample < 5; ++sample) {
      const Draft draft = grid_draft(task, task.kernel, "parallelization|rows/threads:x", sample);
      if (draft.kernel) CHECK(grid_difference(task, draft.kernel->source) < 1e-5);
    }
}

TEST_CASE("what cannot be shared is declined with the reason") {
  CHECK(has(reason(rows("  if (i >= M) return;\n"
                        "  for (int j = 1; j < N; ++j) x[i * N + j] += x[i * N + j - 1];\n"
                        "  for (int j = 0; j < N; ++j) y[i * N + j] = x[i * N + j];\n")),
            "iterations of j may depend on each other through x"));
  CHECK(has(reason(rows("  if (i >= M) return;\n"
                        "  float last = 0.0f;\n"
                        "  for (int j = 0; j < N; ++j) { last = x[i * N + j]; y[i * N + j] = last; }\n"
                        "  for (int j = 0; j < N; ++j) y[i * N + j] += last;\n")),
            "last"));
  CHECK(has(reason(rows("  if (i >= M) return;\n"
                        "  float kept[8];\n"
                        "  for (int j = 0; j < 8; ++j) kept[j] = x[i * N];\n"
                        "  for (int j = 0; j < N; ++j) y[i * N + j] = kept[j % 8];\n")),
            "each thread has an array of its own, kept"));
  CHECK(has(reason(rows("  if (i >= M) return;\n"
                        "  for (int j = threadIdx.x; j < N; ++j) y[i * N + j] = x[i * N + j];\n"
                        "  for (int j = 0; j < N; ++j) y[i * N + j] += 1;\n")),
            "speaks of threads or blocks"));
  const Task shared = cuda_task("softmax");
  const Kernel spread{languages::cuda, grid_source_after(shared, {"parallelization|softmax/threads:x"})};
  CHECK_FALSE(grid_draft(shared, spread, "parallelization|softmax/threads:x").kernel);
}

TEST_CASE("blocks along other axes stay: each row is of one of them") {
  const Task task =
      TaskBuilder{"layers"}
          .kernel(languages::cuda, "//@ launch layers<<<(ceil_div(M, 64), B), 64>>>(x, y, M, N)\n"
                                   "__global__ void layers(const float* x, float* y, int M, int N) {\n"
                                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "  int b = blockIdx.y;\n"
                                   "  if (i >= M) return;\n"
                                   "  float largest = -1e30f;\n"
                                   "  for (int j = 0; j <= i; ++j)\n"
                                   "    largest = fmaxf(largest, x[(b * M + i) * N + j]);\n"
                                   "  float sum = 0.0f;\n"
                                   "  for (int j = 0; j <= i; ++j)\n"
                                   "    sum += expf(x[(b * M + i) * N + j] - largest);\n"
                                   "  y[b * M + i] = sum;\n}\n")
          .shape("x", {"B", "M", "N"})
          .shape("y", {"B", "M"})
          .size({{"B", 8}, {"M", 1024}, {"N", 1024}})
          .check({{"B", 3}, {"M", 45}, {"N", 45}})
          .check({{"B", 1}, {"M", 1}, {"N", 1}})
          .build();
  const std::string key = "parallelization|layers/threads:xy";
  CHECK(is_offered_on_grid(task, key)); // though the first thread has one iteration
  const std::string source = grid_source_after(task, {key + "@1"});
  CHECK(has(source, "//@ launch layers<<<(M, B), "));
  CHECK(has(source, "  int i = blockIdx.x;\n  const int lane = threadIdx.x;\n  int b = blockIdx.y;\n"));
  if (!mtmc_test::can_emulate) return;
  CHECK(worst_difference(task, all_variants(task, task.kernel, key, 3)) < 1e-5);
}

TEST_CASE("integers that are rounded in each iteration are no sums") {
  const auto sum = [](const std::string& type, const std::string& value) {
    return rows("  if (i >= M) return;\n  " + type + " s = 0;\n  for (int j = 0; j < N; ++j) s += " + value +
                ";\n  y[i * N] = s;\n");
  };
  CHECK(has(reason(sum("int", "x[i * N + j] * 10.0f")), "depend on each other through s"));
  CHECK(has(reason(sum("unsigned", "2.5f")), "depend on each other through s"));
  CHECK_FALSE(has(reason(sum("int", "(int)(x[i * N + j] * 10.0f)")), "depend"));
  CHECK_FALSE(has(reason(sum("float", "j")), "depend"));
}

TEST_CASE("threads that a launch line has for less than its guard lets through stay as many") {
  Task task =
      rows("  if (i >= M) return;\n  float s = 0.0f;\n  for (int j = 0; j < N; ++j) s += x[i * N + j];\n"
           "  y[i * N] = s;\n");
  task.kernel.source.replace(task.kernel.source.find("ceil_div(M, 128)"), 16, "ceil_div(M / 2 + 1, 128)");
  const std::string source = grid_source_after(task, {"parallelization|rows/j"});
  CHECK(has(source, "//@ launch rows<<<ceil_div(M / 2 + 1, 128) * 128, "));
}

TEST_CASE("what functions of the coder call their variables is no macro of the file") {
  Task task =
      rows("  if (i >= M) return;\n  float s = value;\n  for (int j = 0; j < N; ++j) s += x[i * N + j];\n"
           "  for (int j = 0; j < N; ++j) y[i * N + j] = s + distance;\n");
  task.kernel.source.insert(0, "#define value 3.0f\n#define distance 2\n");
  const std::string source = grid_source_after(task, {"parallelization|rows/threads:x"});
  CHECK(has(source, "(float value_own) {\n"));
  CHECK(has(source, "for (int distance_own = 16; "));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) < 1e-5);
}
