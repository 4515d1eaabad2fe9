#include <doctest/doctest.h>

#include <string>

#include "draft.hpp"
#include "kernel_runner.hpp"
#include "odd_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

void check_equal_bits(const Task& task, const std::string& source) {
  const KernelRunner runner{task, {source}};
  for (const ProblemSize& size : task.sizes)
    if (size.weight == 0) CHECK(runner.difference(1, size) == 0);
}

} // namespace

TEST_CASE("a dense layer in three launches becomes one: bias and ReLU where the product is stored") {
  const Task task = cpu_task("gemm_bias_relu");
  const std::string source = source_after(task, {"fusion|launch:linear+launch:add_bias+launch:relu"});
  CHECK(source == R"cpp(// One dense layer of a network, operator by operator: Y = max(X * W + bias, 0).
// X is M x K, W is K x N, bias has N elements, Y is M x N, all row-major.

// linear_add_bias, then relu, in one pass
void linear_add_bias_relu(const float* X, const float* W, int M, int N, int K, const float* bias,
                          float* Y) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        sum += X[i * K + k] * W[k * N + j];
      }
      const float biased_value = sum + bias[j];
      Y[i * N + j] = biased_value > 0.0f ? biased_value : 0.0f;
    }
  }
}

//@ launch linear_add_bias_relu(X, W, M, N, K, bias, Y)
)cpp");
  check_equal_bits(task, source);
}

TEST_CASE("two of the launches keep the buffer between the others") {
  const Task task = cpu_task("gemm_bias_relu");
  const std::string source = source_after(task, {"fusion|launch:add_bias+launch:relu"});
  CHECK(has(source, "//@ scratch product: f32[M, N]\n//@ launch linear(X, W, product, M, N, K)\n"
                    "//@ launch add_bias_relu(product, bias, M, N, Y)\n"));
  CHECK(!has(source, "scratch biased"));
  check_equal_bits(task, source);
}

TEST_CASE("a chain of launches is fused at once or pair by pair") {
  const Task task = cpu_task("elementwise_chain");
  const std::string at_once =
      source_after(task, {"fusion|launch:add+launch:silu+launch:multiply+launch:scale"});
  const std::string by_pairs =
      source_after(task, {"fusion|launch:multiply+launch:scale", "fusion|launch:add+launch:silu",
                          "fusion|launch:add_silu+launch:multiply_scale"});
  for (const std::string& source : {at_once, by_pairs}) {
    CHECK(!has(source, "scratch"));
    CHECK(has(source, "y[i] = factor * gated_value;"));
    check_equal_bits(task, source);
  }
}

TEST_CASE("what another launch still reads is still written; functions launched elsewhere stay") {
  const Task task = shared_buffers();
  const std::string source = source_after(task, {"fusion|launch:scale+launch:mix"});
  CHECK(has(source, "void scale(const float* in"));
  CHECK(has(source, "void mix(const float* a"));
  CHECK(has(source, "//@ launch scale_mix(x, half, N, mixed)\n"));
  check_equal_bits(task, source);
}

TEST_CASE("names of the two functions never mean each other") {
  const Task task = shared_buffers();
  const std::string source = source_after(task, {"fusion|launch:scale+launch:mix"});
  CHECK(has(source, "const float factor = 0.5f;"));
  CHECK(has(source, "const float factor_2 = 2.0f;"));
  check_equal_bits(task, source);
}

TEST_CASE("launches are declined where an element comes from elsewhere or buffers coincide") {
  CHECK(draft_of(shared_buffers(), "fusion|launch:mix#2+launch:shift").failure == DraftFailure::declined);
  CHECK(draft_of(shared_buffers(), "fusion|launch:mix+launch:mix#2").message ==
        "a launch of mix gives one buffer to two parameters");
}
