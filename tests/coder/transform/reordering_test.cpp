#include <doctest/doctest.h>

#include <string>

#include "draft.hpp"
#include "kernel_runner.hpp"
#include "odd_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

/// Every sum keeps its order, so without fused multiply-adds the bits are those of the start kernel.
void check_equal_bits(const Task& task, const std::vector<std::string>& sources) {
  const KernelRunner runner{task, sources};
  for (const ProblemSize& size : task.sizes)
    for (std::size_t k = 1; k <= sources.size() && size.weight == 0; ++k)
      CHECK(runner.difference(k, size) == 0);
}

} // namespace

TEST_CASE("the naive matrix product gets its unit-stride loop innermost, a tile of accumulators at a time") {
  const Task task = cpu_task("gemm");
  const std::string source = source_after(task, {"reordering|gemm/i"});
  CHECK(has(source, R"(    // full tiles of 64
    for (int jj = 0; jj <= N - 64; jj += 64) {
      float sum[64];
      for (int j = jj; j < jj + 64; ++j) {
        sum[j - jj] = 0.0f;
      }
      for (int k = 0; k < K; ++k) {
        for (int j = jj; j < jj + 64; ++j) {
          sum[j - jj] += A[i * K + k] * B[k * N + j];
        }
      }
      for (int j = jj; j < jj + 64; ++j) {
        C[i * N + j] = sum[j - jj];
      }
    }
)"));
  CHECK(has(source, "    // remainder tile\n    for (int jj = N / 64 * 64; jj < N; jj += 64) {\n"));
  check_equal_bits(task, {source, source_after(task, {"reordering|gemm/i@1"}),
                          source_after(task, {"reordering|gemm/i/j@2"})});
}

TEST_CASE("tiles are as wide as eight vector registers of the device") {
  const Task task = cpu_task("gemm");
  CodingRequest request;
  request.seen.task = task;
  request.seen.kernel = task.kernel;
  request.seen.device = two_cores();
  request.seen.device.vector_bits = 128;
  request.action = {Action::Kind::optimize, "reordering", "reordering", "gemm/i"};
  CHECK(has(TransformCoder{}.implement(request, {}).kernel->source, "// full tiles of 32\n"));
}

TEST_CASE("a convolution keeps all loops of the window around the row") {
  const Task task = cpu_task("conv2d");
  const std::string source = source_after(task, {"reordering|conv2d/f/y/x"});
  CHECK(has(source,
            "sum[x - xx] += input[(c * H + y + r) * W + x + s] * weight[((f * C + c) * R + r) * S + s];"));
  CHECK(has(source, "        sum[x - xx] = bias[f];\n"));
  check_equal_bits(task, {source});
}

TEST_CASE("perfect nests are permuted as they are") {
  const Task task = accumulating_gemm();
  const std::string source = source_after(task, {"reordering|gemm/i#2"});
  CHECK(has(source, R"(  for (int i = 0; i < M; ++i) {
    for (int k = 0; k < K; ++k) {
      for (int j = 0; j < N; ++j) {
        C[i * N + j] += A[i * K + k] * B[k * N + j];
)"));
  check_equal_bits(task, {source, source_after(task, {"reordering|gemm/i#2@1"})});
}

TEST_CASE("walks down columns become walks along rows; several scalars are kept") {
  const Task task = column_statistics();
  const std::string source = source_after(task, {"reordering|columns/c"});
  CHECK(has(source, "peak[c - cc] = std::max(peak[c - cc], in[r * cols + c]);"));
  check_equal_bits(task, {source});
}

TEST_CASE("unsigned bounds never go below zero; row pointers stay where they are") {
  const Task task = row_pointer_gemm();
  const std::string source = source_after(task, {"reordering|gemm/i"});
  CHECK(has(source, "for (std::size_t jj = 0; jj < N / 64 * 64; jj += 64) {"));
  CHECK(has(source, "sum[j - jj] += a[k] * B[k * N + j];"));
  check_equal_bits(task, {source});
}

TEST_CASE("values that do not differ between the moved iterations are computed once, outside") {
  const Task task =
      TaskBuilder{"batched"}
          .kernel(languages::cpp,
                  R"cpp(void batched(const float* x, const float* w, float* y, int R, int K, int N) {
  for (int j = 0; j < N; ++j) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      const float weight = w[k];
      for (int r = 0; r < R; ++r) {
        const int row = r * K + k;
        sum += weight * x[row * N + j];
      }
    }
    y[j] = sum;
  }
}
)cpp")
          .shape("x", {"R", "K", "N"})
          .shape("w", {"K"})
          .shape("y", {"N"})
          .size({{"R", 8}, {"K", 64}, {"N", 512}})
          .check({{"R", 3}, {"K", 7}, {"N", 101}})
          .build();
  const std::string source = source_after(task, {"reordering|batched/j"});
  CHECK(has(source, R"(    for (int k = 0; k < K; ++k) {
      const float weight = w[k];
      for (int r = 0; r < R; ++r) {
        for (int j = jj; j < jj + 64; ++j) {
          const int row = r * K + k;
)"));
  check_equal_bits(task, {source});
}

TEST_CASE("an order that dependences or the bounds of loops need stays") {
  CHECK(draft_of(recurrences(), "reordering|sweep/y#2").failure == DraftFailure::declined);
  CHECK(draft_of(cpu_task("transpose"), "reordering|transpose/i").message ==
        "no other order of the loops moves through memory in smaller steps");
  CHECK(draft_of(cpu_task("gemm"), "reordering|gemm/i/j/k").message == "the k loop contains no other loop");
}
