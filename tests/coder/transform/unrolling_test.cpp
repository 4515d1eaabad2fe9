#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "draft.hpp"
#include "kernel_runner.hpp"
#include "odd_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

double worst_difference(const Task& task, const std::vector<std::string>& sources) {
  const KernelRunner runner{task, sources};
  double worst = 0;
  for (const ProblemSize& size : task.sizes)
    for (std::size_t k = 1; k <= sources.size() && size.weight == 0; ++k)
      worst = std::max(worst, runner.difference(k, size));
  return worst;
}

} // namespace

TEST_CASE("an outer loop is unrolled and its copies share the inner loops") {
  const Task task = cpu_task("gemm");
  const std::string source = source_after(task, {"unrolling|gemm/i@1"});
  CHECK(has(source, R"(  for (int i = 0; i <= M - 2; i += 2) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      float sum_1 = 0.0f;
      for (int k = 0; k < K; ++k) {
        sum += A[i * K + k] * B[k * N + j];
        sum_1 += A[(i + 1) * K + k] * B[k * N + j];
      }
      C[i * N + j] = sum;
      C[(i + 1) * N + j] = sum_1;
    }
  }
  // remainder of i
  for (int i = M / 2 * 2; i < M; ++i) {
)"));
  CHECK(worst_difference(task, {source, source_after(task, {"unrolling|gemm/i@3"})}) == 0);
}

TEST_CASE("an unrolled loop unrolled again does every full block") {
  const Task task = cpu_task("gemm");
  const std::string source = source_after(task, {"unrolling|gemm/i@1", "unrolling|gemm/i@1"});
  CHECK(has(source, "for (int i = 0; i <= M - 4; i += 4) {"));
  CHECK(has(source, "for (int i = M / 4 * 4; i <= M - 2; i += 2) {"));
  CHECK(worst_difference(task, {source}) == 0);
}

TEST_CASE("as many rows of accumulators as the vector registers hold come first") {
  const Task task = cpu_task("gemm");
  const std::string wide =
      source_after(task, {"tiling|gemm/i", "reordering|gemm/ii/jj/i", "unrolling|gemm/ii/jj/i"});
  CHECK(has(wide, "i += 2"));
  const std::string narrow =
      source_after(task, {"tiling|gemm/i@1", "reordering|gemm/ii/jj/i", "unrolling|gemm/ii/jj/i"});
  CHECK(has(narrow, "i += 4"));
}

TEST_CASE("constant ranges that divide need no remainder") {
  const Task task = cpu_task("gemm");
  const std::string source = source_after(task, {"tiling|gemm/i", "unrolling|gemm/ii/jj/i"});
  CHECK(has(source, "for (int i = ii; i < ii + 64; i += 4) {"));
  CHECK(worst_difference(task, {source}) == 0);
}

TEST_CASE("a reduction gets a lane per accumulator, combined in a fixed order") {
  const Task task = cpu_task("layer_norm");
  const std::string source = source_after(task, {"unrolling|layer_norm/i/j#2"});
  CHECK(has(source, "float squares_lanes[32];"));
  CHECK(has(source, "squares_lanes[j - jj] += centred * centred;"));
  CHECK(has(source, "    // lanes in fixed order\n"));
  CHECK(worst_difference(task, {source}) < 1e-5);
}

TEST_CASE("minimum and maximum lanes start from the value so far") {
  const Task task = vector_statistics();
  const std::string source = source_after(task, {"unrolling|statistics/i#2"});
  CHECK(has(source, "low_lanes[lane] = low;"));
  CHECK(has(source, "high = std::max(high, high_lanes[lane]);"));
  CHECK(worst_difference(task, {source}) == 0);
}

TEST_CASE("innermost loops without a reduction, and recurrences, are written out in order") {
  const Task task = recurrences();
  CHECK(worst_difference(task, {source_after(task, {"unrolling|sweep/y/x"}),
                                source_after(task, {"unrolling|sweep/y#2/x@2"})}) == 0);
}

TEST_CASE("loops of a few constant iterations may disappear") {
  const Task task = padded_convolution();
  const std::string source = source_after(task, {"unrolling|blur/x/y/r/s@0"});
  CHECK(!has(source, "int s = 0"));
  CHECK(worst_difference(task, {source}) == 0);
}

TEST_CASE("variables declared before the loops get a copy each") {
  const Task task = matrix_vector();
  const std::string source = source_after(task, {"unrolling|gemv/i"});
  CHECK(has(source, "float scale_3;"));
  CHECK(worst_difference(task, {source}) == 0);
}

TEST_CASE("a loop that is all a directive holds stays one statement, and classes are not summed in lanes") {
  const auto task = cpu_task("softmax");
  const auto reason = [&](const std::string& body, const std::string& key) {
    const auto draft =
        draft_of(task,
                 {languages::cpp,
                  "//@ launch softmax(in, out, M, N)\n"
                  "struct Pair { float a = 0; Pair& operator+=(float v) { a += v; return *this; } };\n"
                  "void softmax(const float* in, float* out, int M, int N) {\n" +
                      body + "}\n",
                  {}},
                 key);
    CHECK(draft.failure == DraftFailure::declined);
    return draft.message;
  };
  CHECK(reason("#pragma omp parallel\n{\n#pragma omp critical\nfor (int i = 0; i < M; ++i) out[i] = in[i * "
               "N];\n}\n",
               "unrolling|softmax/i")
            .find("the i loop is what `#pragma omp critical` holds") != std::string::npos);
  CHECK(
      reason("#pragma omp taskloop\nfor (int i = 0; i < M; ++i) out[i] = in[i * N];\n", "unrolling|softmax/i")
          .find("`#pragma omp taskloop`") != std::string::npos);
  CHECK_FALSE(
      reason("for (int i = 0; i < M; ++i) { Pair sum;\nfor (int j = 0; j < N; ++j) sum += in[i * N + j];\n"
             "out[i] = sum.a; }\n",
             "parallelization|softmax/i/j")
          .empty());
}

TEST_CASE("copies are not jammed where an iteration needs another one's result") {
  const Draft draft = draft_of(recurrences(), "unrolling|sweep/y#2");
  if (draft.kernel) CHECK(worst_difference(recurrences(), {draft.kernel->source}) == 0);
  CHECK(draft_of(cpu_task("gemm"), "unrolling|gemm/i", 4).failure == DraftFailure::declined);
}

TEST_CASE("what a copy makes of a value that iterations hand on is its own") {
  const Task task = TaskBuilder{"prefix"}
                        .kernel(languages::cpp, "void prefix(const float* x, float* y, int N) {\n"
                                                "  float total = 0.0f;\n"
                                                "  for (int j = 0; j < N; ++j) {\n"
                                                "    total += x[j];\n"
                                                "    const float now = total;\n"
                                                "    y[j] = now * now;\n  }\n}\n")
                        .shape("x", {"N"})
                        .shape("y", {"N"})
                        .size({{"N", 1 << 20}})
                        .check({{"N", 103}})
                        .check({{"N", 1}})
                        .build();
  const std::string source = source_after(task, {"unrolling|prefix/j"});
  CHECK(has(source, "    const float now_1 = total;\n"));
  CHECK(worst_difference(task, {source}) == 0);
}

TEST_CASE("a bound without a sign is not taken below zero, whatever the variable's type") {
  const Task task = TaskBuilder{"add"}
                        .kernel(languages::cpp, "void add(const float* x, float* y, unsigned n) {\n"
                                                "  float sum = x[0];\n"
                                                "  for (int i = 1; i < n; ++i) sum += x[i];\n"
                                                "  y[0] = sum;\n}\n\n//@ launch add(x, y, n)\n")
                        .shape("x", {"n"})
                        .shape("y", {"1"})
                        .size({{"n", 1 << 20}})
                        .build();
  const std::string source = source_after(task, {"unrolling|add/i"});
  CHECK(source.find("(n > 1 ? n : 1) - 1") != std::string::npos);
  CHECK(source.find("<= n - ") == std::string::npos);
}

TEST_CASE("threads of a GPU have few accumulators each: blocks of 1024 have 64 registers for a thread") {
  const Task task = load_task(std::string(MTMC_REPOSITORY) + "/examples/tasks/cuda/gemm.json");
  CHECK(has(source_after(task, {"unrolling|gemm/k"}), "float sum_lanes[8];"));
  for (int sample = 0; sample < 8; ++sample)
    if (const Draft draft = draft_of(task, "unrolling|gemm/k", sample); draft.kernel) {
      CHECK_FALSE(has(draft.kernel->source, "sum_lanes[32]"));
      CHECK_FALSE(has(draft.kernel->source, "sum_lanes[64]"));
    }
}
