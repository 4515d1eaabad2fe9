// What single loops allow: parallel execution, reductions, vector instructions.

#include <mtmc/analysis/task_builder.hpp>

#include <doctest/doctest.h>

#include <string>

#include "../analysed.hpp"

namespace {

const char* const gemm = R"(
void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
      C[i * N + j] = sum;
    }
}
)";

analysed::Text body(const std::string& text) {
  return analysed::Text("void f(float* a, float* b, const int* idx, int n) {\n" + text + "\n}\n");
}

} // namespace

TEST_CASE("loop legality: the naive matrix product is parallel along i and j and a reduction along k") {
  const analysed::Text text(gemm);
  CHECK(mtmc::loop_is_parallel(text.loop("gemm/i")));
  CHECK(mtmc::loop_is_parallel(text.loop("gemm/i/j")));
  CHECK_FALSE(mtmc::loop_is_parallel(text.loop("gemm/i/j/k")));
  CHECK(mtmc::loop_is_reduction(text.loop("gemm/i/j/k")));
  CHECK_FALSE(mtmc::loop_is_reduction(text.loop("gemm/i")));
  const auto reductions = mtmc::reductions_of(text.loop("gemm/i/j/k"));
  REQUIRE(reductions.size() == 1);
  CHECK(reductions[0].scalar->name == "sum");
  CHECK(reductions[0].operation == mtmc::ReductionOperation::sum);
  CHECK(reductions[0].type == "float");
  CHECK(mtmc::vectorization_legal(text.loop("gemm/i/j/k")));
  CHECK_FALSE(mtmc::vectorization_legal(text.loop("gemm/i/j")));
}

TEST_CASE("loop legality: elements that lie a whole extent apart are different where the extent is not 0") {
  const auto task = mtmc::TaskBuilder{"columns"}
                        .kernel(mtmc::languages::cuda,
                                "//@ launch f<<<ceil_div(C, 128), 128>>>(x, y, B, C, S)\n"
                                "__global__ void f(const float* x, float* y, int B, int C, int S) {\n"
                                "  int c = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                "  for (int b = 0; b < B; ++b) y[b * C + c] = x[b * C + c];\n"
                                "  for (int d = 0; d < B; ++d) y[d * S + c] = x[d * C + c];\n"
                                "}\n")
                        .shape("x", {"B", "C"})
                        .shape("y", {"B", "C"})
                        .value("S", "B - C")
                        .size({{"B", 64}, {"C", 64}})
                        .build();
  const auto tree = mtmc::parse(task.kernel.source);
  const mtmc::KernelAnalysis analysis(tree, &task);
  CHECK(mtmc::loop_is_parallel(*analysis.find_loop("f/b")));
  CHECK_FALSE(mtmc::loop_is_parallel(*analysis.find_loop("f/d"))); // of S nothing is known
}

TEST_CASE("loop legality: a refusal says what is in the way and where") {
  CHECK(mtmc::loop_is_parallel(body("for (int i = 1; i < n; ++i)\n a[i] = a[i - 1];").loop("f/i")).reason ==
        "iterations of i may depend on each other through a (lines 3 and 3)");
  CHECK(mtmc::loop_is_parallel(
            body("float s = 0; for (int i = 0; i < n; ++i) { b[i] = s; s = a[i]; }").loop("f/i"))
            .reason == "iterations of i depend on each other through s");
  CHECK(mtmc::loop_is_parallel(body("for (int i = 0; i < n; ++i) { if (a[i] > 0) break; }").loop("f/i"))
            .reason == "the loop is no counting loop: break, return or a jump may leave it");
  CHECK(mtmc::loop_is_parallel(body("for (int i = 0; i < n; ++i)\n report(a[i]);").loop("f/i")).reason ==
        "line 3 contains a call of report, whose effects are not known");
}

TEST_CASE("loop legality: a reduction into memory names the array") {
  const auto text = body("for (int i = 0; i < n; ++i) a[idx[i]] += b[i];");
  CHECK(mtmc::loop_is_reduction(text.loop("f/i")));
  const auto reductions = mtmc::reductions_of(text.loop("f/i"));
  REQUIRE(reductions.size() == 1);
  CHECK(reductions[0].scalar == nullptr);
  CHECK(reductions[0].array->name == "a");
  CHECK(reductions[0].access->indirect);
  // Lanes of one vector may hit the same element.
  CHECK_FALSE(mtmc::vectorization_legal(text.loop("f/i")));
  // A fixed element is a reduction like that of a scalar.
  CHECK(mtmc::vectorization_legal(body("for (int i = 0; i < n; ++i) a[0] += b[i];").loop("f/i")));
}

TEST_CASE("loop legality: calls of functions without effects are no obstacle") {
  CHECK(mtmc::loop_is_parallel(
      body("for (int i = 0; i < n; ++i) a[i] = std::exp(b[i]) + sqrtf(b[i]);").loop("f/i")));
  const analysed::Text own("static float half_of(float x) { return 0.5f * x; }\n"
                           "void f(const float* a, float* b, int n) {\n"
                           "  for (int i = 0; i < n; ++i) b[i] = half_of(a[i]);\n}\n");
  CHECK(mtmc::loop_is_parallel(own.loop("f/i")));
  const analysed::Text counting("static int calls;\nstatic float counted(float x) { ++calls; return x; }\n"
                                "void f(const float* a, float* b, int n) {\n"
                                "  for (int i = 0; i < n; ++i) b[i] = counted(a[i]);\n}\n");
  CHECK_FALSE(mtmc::loop_is_parallel(counting.loop("f/i")));
}

TEST_CASE("loop legality: vectors respect dependences from a statement to a later one") {
  CHECK(mtmc::vectorization_legal(body("for (int i = 0; i < n - 1; ++i) a[i] = a[i + 1];").loop("f/i")));
  CHECK(mtmc::vectorization_legal(
      body("for (int i = 1; i < n; ++i) { a[i] = 1.0f; b[i] = a[i - 1]; }").loop("f/i")));
  CHECK_FALSE(mtmc::vectorization_legal(
      body("for (int i = 1; i < n; ++i) { b[i] = a[i - 1]; a[i] = 1.0f; }").loop("f/i")));
  CHECK_FALSE(mtmc::vectorization_legal(body("for (int i = 1; i < n; ++i) a[i] = a[i - 1];").loop("f/i")));
  CHECK_FALSE(mtmc::vectorization_legal(
      body("int p = 0; for (int i = 0; i < n; ++i) { a[p] = b[i]; p += 2; }").loop("f/i")));
}

TEST_CASE("loop legality: the last writer must stay the last where a scalar is read afterwards") {
  const auto text = body("float t; for (int i = 0; i < n; ++i) { t = b[i]; a[i] = t; } a[0] = t;");
  const auto scalars = mtmc::classify_scalars(text.loop("f/i"));
  REQUIRE_FALSE(scalars.empty());
  CHECK(scalars.front().live_out);
}

TEST_CASE("loop legality: extents of the task's shapes are at least 1, which may decide") {
  const std::string source = R"(
void blur(const float* in, float* out, int H, int W, int R) {
  for (int y = R; y < H - R; ++y)
    for (int x = R; x < W - R; ++x)
      out[y * W + x] = in[(y - R) * W + x - R];
}
//@ launch blur(in, out, H, W, R)
)";
  // For a negative R the rows of out overlap.
  CHECK_FALSE(mtmc::loop_is_parallel(analysed::Text(source).loop("blur/y")));
  mtmc::Task task;
  mtmc::Argument weight;
  weight.name = "weight";
  weight.shape = {"2*R + 1"};
  task.arguments.push_back(weight);
  const analysed::Text known(source, &task);
  CHECK(mtmc::loop_is_parallel(known.loop("blur/y")));
}
