#include <doctest/doctest.h>

#include <string>

#include "draft.hpp"
#include "kernel_runner.hpp"
#include "odd_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

TEST_CASE("neighbouring loops over the same iterations become one, as far in as they match") {
  const Task task = accumulating_gemm();
  const std::string source = source_after(task, {"fusion|gemm/i+i#2"});
  CHECK(has(source, R"(  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      C[i * N + j] = 0.0f;
      for (int k = 0; k < K; ++k)
        C[i * N + j] += A[i * K + k] * B[k * N + j];
)"));
  const KernelRunner runner{task, {source}};
  for (const ProblemSize& size : task.sizes)
    if (size.weight == 0) CHECK(runner.difference(1, size) == 0);
}

TEST_CASE("a value stored and loaded again in one iteration stays in a scalar; a buffer nobody reads goes") {
  const Task task =
      TaskBuilder{"two_steps"}
          .kernel(languages::cpp, R"cpp(void two_steps(const float* x, float* t, float* y, int n) {
  for (int i = 0; i < n; ++i) {
    const float v = 2.0f * x[i];
    t[i] = v + 1.0f;
  }
  const float bias = 0.5f;
  for (int k = 0; k < n; ++k) { // second step
    const float v = t[k] * t[k];
    y[k] = v + bias;
  }
}

//@ scratch T: f32[n]
//@ launch two_steps(x, T, y, n)
)cpp")
          .shape("x", {"n"})
          .shape("y", {"n"})
          .size({{"n", 4096}})
          .check({{"n", 101}})
          .build();
  const std::string source = source_after(task, {"fusion|two_steps/i+k"});
  CHECK(has(source, "void two_steps(const float* x, float* y, int n) {\n  const float bias = 0.5f;\n"));
  CHECK(has(source, "    const float t_value = v + 1.0f;\n    const float v_2 = t_value * t_value;\n"));
  CHECK(has(source, "//@ launch two_steps(x, y, n)\n"));
  CHECK(!has(source, "scratch"));
  const KernelRunner runner{task, {source}};
  CHECK(runner.difference(1, task.sizes.back()) == 0);
}

TEST_CASE("loops of which the second needs all of the first are declined") {
  CHECK(draft_of(cpu_task("layer_norm"), "fusion|layer_norm/i/j+j#2").failure == DraftFailure::declined);
  CHECK(draft_of(recurrences(), "fusion|sweep/y#2+y#3").failure == DraftFailure::declined);
  CHECK(draft_of(recurrences(), "fusion|sweep/y+y#2", 1).message == "no further variant: there are 1");
}

TEST_CASE("a variable of the first loop does not stand for one from outside in the second") {
  const Task task = TaskBuilder{"shadow"}
                        .kernel(languages::cpp, R"cpp(void shadow(const float* x, float* y, int n) {
  float s = 0.0f;
  for (int i = 0; i < n; ++i) {
    float s = x[i];
    y[i] = 2.0f * s;
  }
  for (int i = 0; i < n; ++i) {
    s += x[i];
  }
  y[0] = s;
}

//@ launch shadow(x, y, n)
)cpp")
                        .shape("x", {"n"})
                        .shape("y", {"n"})
                        .size({{"n", 4096}})
                        .check({{"n", 101}})
                        .build();
  const std::string source = source_after(task, {"fusion|shadow/i+i#2"});
  CHECK(has(source, "    float s_2 = x[i];\n    y[i] = 2.0f * s_2;\n    s += x[i];\n"));
}
