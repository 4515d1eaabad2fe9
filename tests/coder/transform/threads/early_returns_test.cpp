// Kernels whose threads return early are tiled, coarsened and fused like those with a branch, and those that
// load into variables, or add to a result that is there, like those that do not.

#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "grid_runner.hpp"
#include "launch_batch.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// y = x w, with the statements of a thread.
Task product(const std::string& work, bool changes = false) {
  return TaskBuilder{"product"}
      .kernel(languages::cuda,
              "//@ launch product<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(x, w, y, M, N, K)\n"
              "__global__ void product(const float* x, const float* w, float* y, int M, int N, int K) {\n"
              "  int i = blockIdx.y * blockDim.y + threadIdx.y;\n"
              "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n" +
                  work + "}\n")
      .shape("x", {"M", "K"})
      .shape("w", {"K", "N"})
      .shape("y", {"M", "N"})
      .role("y", changes ? ArgumentRole::inout : ArgumentRole::output)
      .size({{"M", 1024}, {"N", 1024}, {"K", 1024}})
      .check({{"M", 33}, {"N", 70}, {"K", 21}})
      .check({{"M", 1}, {"N", 1}, {"K", 1}})
      .build();
}
const std::string sum =
    "  float sum = 0.0f;\n  for (int k = 0; k < K; ++k) {\n    sum += x[i * K + k] * w[k * "
    "N + j];\n  }\n  y[i * N + j] = sum;\n";

void check_all(const Task& task, const std::string& key) {
  std::vector<std::string> sources;
  for (int sample = 0; sample < 3; ++sample) {
    const Draft draft = grid_draft(task, task.kernel, key, sample);
    REQUIRE_MESSAGE(draft.kernel, draft.message);
    sources.push_back(draft.kernel->source);
  }
  if (!mtmc_test::can_emulate) return;
  for (const BatchOutcome& outcome : run_together(task, sources))
    CHECK_MESSAGE(outcome.right(), outcome.verdict());
}
} // namespace

TEST_CASE("threads that return early are written with a branch where their function is written anew") {
  const Task task = product("  if (i >= M || j >= N) return;\n" + sum);
  CHECK(has(grid_source_after(task, {"unrolling|product/threads:xy"}), "  if (first_i < M && j < N) {\n"));
  check_all(task, "unrolling|product/threads:xy");
  check_all(task, "tiling|product/k");
  check_all(product("  if (i >= M) return;\n  if (j >= N) return;\n" + sum), "tiling|product/k");
  check_all(product("  if (!(i < M && j < N)) return;\n" + sum), "tiling|product/k");
}

TEST_CASE("a comparison of floating values is not turned around: neither may hold") {
  const Task task =
      TaskBuilder{"two"}
          .kernel(languages::cuda, "//@ scratch t: f32[N]\n"
                                   "//@ launch a<<<ceil_div(N, 128), 128>>>(x, t, N)\n"
                                   "//@ launch b<<<ceil_div(N, 128), 128>>>(t, y, N)\n"
                                   "__global__ void a(const float* x, float* t, int N) {\n"
                                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "  if (i >= N) return;\n  // twice\n  t[i] = 2.0f * x[i];\n}\n"
                                   "__global__ void b(const float* t, float* y, int N) {\n"
                                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "  if (N <= i) return;\n  y[i] = t[i] + 1.0f;\n}\n")
          .shape("x", {"N"})
          .shape("y", {"N"})
          .size({{"N", 1 << 20}})
          .check({{"N", 1003}})
          .check({{"N", 1}})
          .build();
  const std::string source = grid_source_after(task, {"fusion|launch:a+launch:b"});
  CHECK(has(source, "  if (i < N) {\n    // twice\n    const float t_value = 2.0f * x[i];\n"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0);

  SyntaxNode tree = parse("__global__ void f(float limit, float* y, int n) {\n  if (limit < 1.0f || n < 3) "
                          "return;\n  y[0] = 1.0f;\n}\n");
  REQUIRE(mtmc::detail::nest_early_returns(*find_function(tree, "f")));
  CHECK(has(print(tree), "if (!(limit < 1.0f) && n >= 3) {\n    y[0] = 1.0f;\n  }"));
}

TEST_CASE("functions that return from elsewhere stay as they are") {
  for (const char* body :
       {"if (n < 3) return;\n  y[0] = 1.0f;\n  if (y[1] > 0.0f) return;\n  y[1] = 1.0f;\n",
        "y[1] = 0.0f;\n  if (n < 3) return;\n  y[0] = 1.0f;\n", "y[0] = 1.0f;\n", "if (n < 3) return;\n"}) {
    const std::string source = "__global__ void f(float* y, int n) {\n  " + std::string(body) + "}\n";
    CAPTURE(source);
    SyntaxNode tree = parse(source);
    CHECK_FALSE(mtmc::detail::nest_early_returns(*find_function(tree, "f")));
    CHECK(print(tree) == source);
  }
}

TEST_CASE("what a thread loads into variables in front of the sum, each of its results loads") {
  const Task task = product(
      "  if (i < M && j < N) {\n  float sum = 0.0f;\n  for (int k = 0; k < K; ++k) {\n    const float a = "
      "x[i "
      "* K + k];\n    const float b = w[k * N + j];\n    sum += a * b;\n  }\n  y[i * N + j] = sum;\n  }\n");
  const std::string source = grid_source_after(task, {"unrolling|product/threads:xy"});
  CHECK(has(source, "      const float b = w[k * N + j];\n"
                    "      for (int each_i = 0; each_i < 4; ++each_i) {\n"
                    "        const int i = min(first_i + each_i, M - 1);\n"
                    "        const float a = x[i * K + k];\n"
                    "        sums[each_i] += a * b;\n"));
  check_all(task, "unrolling|product/threads:xy");
}

TEST_CASE("numbers of results keep the type of the number of a thread") {
  Task task = product("  if (i >= M || j >= N) return;\n" + sum);
  std::string& text = task.kernel.source;
  text.replace(text.find("int i ="), 3, "size_t");
  CHECK(has(grid_source_after(task, {"unrolling|product/threads:xy"}),
            "        const size_t i = first_i + each_i < M ? first_i + each_i : M - 1;\n"));
  check_all(task, "unrolling|product/threads:xy");
}

TEST_CASE("an axis along which blocks have one thread is numbered like the others") {
  Task task = product("  if (i >= M || j >= N) return;\n" + sum);
  std::string& text = task.kernel.source;
  text.replace(text.find("<<<"), text.find(">>>") - text.find("<<<"),
               "<<<(ceil_div(N, 128), ceil_div(M, 1)), (128, 1)");
  check_all(task, "tiling|product/k");
  check_all(task, "unrolling|product/threads:xy");
}

TEST_CASE("a result may be made of what was there") {
  const Task task =
      product("  if (i < M && j < N) {\n  float sum = 0.0f;\n  for (int k = 0; k < K; ++k) sum += x[i * "
              "K + k] * w[k * N + j];\n  y[i * N + j] = 0.5f * y[i * N + j] + sum;\n  }\n",
              true);
  check_all(task, "tiling|product/k");
  check_all(task, "unrolling|product/threads:xy");
}

TEST_CASE("extrema of several lanes are combined by functions that CUDA has") {
  const Task task = cuda_task("softmax");
  const std::string source = grid_source_after(task, {"unrolling|softmax/j"});
  CHECK(has(source, "largest = fmaxf(largest, largest_lanes[lane]);"));
  CHECK_FALSE(has(source, "#include"));
}
