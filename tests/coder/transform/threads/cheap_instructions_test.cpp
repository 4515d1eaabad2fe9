// Cheaper instructions for the same values: to a few units in the last place, also of zeros, infinities and
// what is no number.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "grid_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// A launch over N elements of `x` and `y`, the work as given.
Task one(const std::string& work) {
  return TaskBuilder{"one"}
      .kernel(languages::cuda, "//@ launch one<<<ceil_div(N, 128), 128>>>(x, y, N, 7)\n"
                               "__global__ void one(const float* x, float* y, int N, int K) {\n"
                               "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < N) {\n" +
                                   work + "  }\n}\n")
      .shape("x", {"N + 8"})
      .shape("y", {"N"})
      .size({{"N", 1 << 20}})
      .check({{"N", 300}})
      .build();
}
const std::string key = "strength_reduction|one/threads:x";
std::string reduced(const std::string& work, int sample = 0) {
  return grid_source_after(one("    " + work + "\n"), {key + '@' + std::to_string(sample)});
}
std::string reason(const std::string& work) {
  const Task task = one("    " + work + "\n");
  return grid_draft(task, task.kernel, key).message;
}
} // namespace

TEST_CASE("powers: products, roots, and powers of two") {
  CHECK(has(reduced("y[i] = powf(x[i], 2.0f);"), "y[i] = x[i] * x[i];"));
  CHECK(has(reduced("y[i] = powf(x[i], 3.0f);"), "y[i] = x[i] * x[i] * x[i];"));
  CHECK(has(reduced("y[i] = powf(x[i] + 1.0f, 2.0f);"), "y[i] = squared(x[i] + 1.0f);"));
  CHECK(has(reduced("y[i] = powf(i, 2.0f);"), "y[i] = squared(i);")); // no product of integers
  CHECK(has(reduced("y[i] = powf(x[i], 0.5f);"), "y[i] = sqrtf(x[i] + 0.0f);"));
  CHECK(has(reduced("y[i] = powf(x[i], -0.5f);"), "y[i] = rsqrtf(x[i] + 0.0f);"));
  CHECK(has(reduced("y[i] = powf(2.0f, x[i]);"), "y[i] = exp2f(x[i]);"));
  CHECK(has(reduced("y[i] = powf(10000.0f, x[i]);"), "y[i] = power_of_10000(x[i]);"));
  CHECK(has(reduced("y[i] = pow(x[i], 2.0);"), "y[i] = x[i] * x[i];"));
  CHECK(has(reason("y[i] = powf(x[i], 2.5f);"), "no cheaper instructions for what it computes are known"));
  CHECK(has(reason("y[i] = powf(-2.0f, x[i]);"), "no cheaper instructions"));
}

TEST_CASE("reciprocal roots, and quotients by powers of two") {
  CHECK(has(reduced("y[i] = 1.0f / sqrtf(x[i] * x[i] + 1e-5f);"), "y[i] = rsqrtf(x[i] * x[i] + 1e-5f);"));
  CHECK(has(reduced("y[i] = x[i] / sqrtf(x[i] + 2.0f);"), "y[i] = x[i] * rsqrtf(x[i] + 2.0f);"));
  CHECK(has(reduced("y[i] = x[i] / 8.0f;"), "y[i] = x[i] * 0.125f;"));
  CHECK(
      has(reduced("y[i] = x[i] / 3.0f + sqrtf(x[i] / 4.0f);"), "y[i] = x[i] / 3.0f + sqrtf(x[i] * 0.25f);"));
  CHECK(has(reduced("y[i] = x[i] / (x[i] + 2.0f);"), "y[i] = __fdividef(x[i], x[i] + 2.0f);"));
}

TEST_CASE("a sine and a cosine of one angle are found together") {
  CHECK(has(
      reduced(
          "float a = x[i];\n    const float c = cosf(a);\n    float s = sinf(a); // both\n    y[i] = s * c;"),
      "    float a = x[i];\n    float c, s;\n    sincosf(a, &s, &c);\n    y[i] = s * c;\n"));
  CHECK(has(reduced("float a = x[i];\n    y[i] = sinf(2.0f * a) + cosf(2.0f * a);"),
            "    float sine, cosine;\n    sincosf(2.0f * a, &sine, &cosine);\n    y[i] = sine + cosine;\n"));
  CHECK(has(reason("float a = x[i];\n    float s = sinf(a);\n    a = 2.0f * a;\n    y[i] = s + cosf(a);"),
            "no cheaper instructions"));
}

TEST_CASE("single precision where it is stored and all that goes in has it") {
  CHECK(has(reduced("y[i] = 0.5 * x[i] * (1.0 + erf(x[i] * 0.70710678118654752));"),
            "y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678118654752f));"));
  CHECK(has(reduced("float v = x[i];\n    y[i] = v > 0.5 ? exp(-v) : 1.0 / sqrt(v + 2.0);"),
            "y[i] = v > 0.5f ? expf(-v) : rsqrtf(v + 2.0f);"));
  CHECK(has(reason("double v = x[i];\n    y[i] = 0.5 * v;"), "no cheaper instructions"));
  CHECK(has(reason("y[i] = x[i] + 0.5 * i;"), "no cheaper instructions"));
  CHECK(has(reason("y[i] = x[i] > 0.1 ? 1.0f : 0.0f;"), "no cheaper instructions"));
  CHECK(has(reason("y[i] = x[i] * 1e-60;"), "no cheaper instructions"));
}

TEST_CASE("a remainder follows from the quotient of the same numbers") {
  CHECK(has(reduced("int row = i / K;\n    int column = i % K;\n    y[i] = x[row] + x[column];"),
            "    int row = i / K;\n    int column = i - row * K;\n"));
  CHECK(has(reduced("int column = i % K; // first\n    int row = i / K;\n    y[i] = x[row] + x[column];"),
            "    int row = i / K;\n    int column = i - row * K; // first\n"));
  CHECK(has(reason("long row = i / K;\n    y[i] = x[row] + x[i % K];"), "no cheaper instructions"));
}

TEST_CASE("what a loop divides by is inverted once") {
  const Task task = cuda_task("softmax");
  const std::string source = grid_source_after(task, {"strength_reduction|softmax/j#3"});
  CHECK(has(source, "    const float one_over_total = 1.0f / total;\n    for (int j = 0; j < N; ++j) {\n"
                    "      y[i * N + j] = expf(x[i * N + j] - largest) * one_over_total;\n"));
  Task commented = task;
  auto& text = commented.kernel.source;
  text.insert(text.rfind("    for"), "    // the quotients\n");
  CHECK(has(grid_source_after(commented, {"strength_reduction|softmax/j#3"}),
            "    }\n    // the quotients\n    const float one_over_total = 1.0f / total;\n    for"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) < 1e-6);
}

TEST_CASE("results stay within a few units in the last place") {
  if (!mtmc_test::can_emulate) return;
  const Task task =
      one("    float v = x[i], a = 100.0f * v;\n"
          "    int row = i / K;\n    int column = i % K;\n"
          "    y[i] = powf(v, 2.0f) + powf(v, 3.0f) + powf(v + 2.0f, 0.5f) + powf(v + 2.0f, -0.5f)\n"
          "         + 1.0f / sqrtf(v + 1.5f) + v / sqrtf(v + 1.5f) + sinf(a) * cosf(a) + v / 4.0f\n"
          "         + powf(2.0f, v) + powf(10.0f, v) + x[row] * x[column] + exp(v) * 0.1;\n");
  for (int sample = 0; sample < 2; ++sample)
    CHECK(grid_difference(task, grid_source_after(task, {key + '@' + std::to_string(sample)})) < 5e-7);
  const Task rotary = cuda_task("rotary_embedding");
  for (const std::vector<std::string>& keys : std::vector<std::vector<std::string>>{
           {"strength_reduction|rotate/threads:x", "vectorization|rotate/threads:x"},
           {"vectorization|rotate/threads:x", "strength_reduction|rotate/threads:x"}})
    CHECK(grid_difference(rotary, grid_source_after(rotary, keys)) < 1e-6);
}

TEST_CASE("powers of a number are right to three units for all exponents that give finite results") {
  if (!mtmc_test::can_emulate) return;
  for (const char* const base : {"10000.0f", "0.3f", "1.0001f"}) {
    CAPTURE(base);
    const Task task = one("    float v = x[i] * 9.0f;\n    double exact = pow((double)" + std::string(base) +
                          ", (double)v);\n    y[i] = (powf(" + base + ", v) - exact) / exact * 8388608.0;\n");
    const std::string source = grid_source_after(task, {key});
    CHECK(has(source, "power_of_"));
    for (const double error : grid_results(task, source, {{{"N", 20000}}})) REQUIRE(std::abs(error) <= 3);
  }
}

TEST_CASE("zeros, infinities and what is no number give what they gave") {
  if (!mtmc_test::can_emulate) return;
  const Task task =
      one("    const float infinity = 1.0f / (x[i] - x[i]);\n"
          "    float v = i % 8 == 0 ? 0.0f : i % 8 == 1 ? -0.0f : i % 8 == 2 ? fabsf(infinity)\n"
          "            : i % 8 == 3 ? infinity - infinity : i % 8 == 4 ? -1.0f : i % 8 == 5 ? 1e-42f\n"
          "            : i % 8 == 6 ? 3e38f : 1e-30f;\n"
          "    float r = i < 64 ? powf(v, 2.0f) : i < 100 ? powf(v, 3.0f) : i < 140 ? 1.0f / powf(v, 0.5f)\n"
          "            : i < 180 ? powf(v, -0.5f) : i < 220 ? powf(10000.0f, v) : i < 260 ? 1.0f / sqrtf(v)\n"
          "            : powf(10000.0f, i % 2 == 0 ? -v : v * 1e-37f);\n"
          "    y[i] = r != r ? 7.0f : r > 1e30f ? 8.0f : r < -1e30f ? 9.0f : r;\n");
  CHECK(grid_difference(task, grid_source_after(task, {key})) < 1e-6);
}

TEST_CASE("they are offered where functions are called") {
  for (const char* const work : {"y[i] = 1.0f / sqrtf(x[i] + 2.0f);", "y[i] = powf(x[i], 2.0f);"}) {
    const Task task = one("    " + std::string(work) + "\n");
    const auto actions =
        ActionSpace::extended().legal_actions(AstRegionFinder{}.find(task, task.kernel), h100());
    CHECK(std::any_of(actions.begin(), actions.end(),
                      [](const Action& action) { return action.key() == key; }));
  }
}

TEST_CASE("functions that threads call get cheaper instructions, too") {
  Task task = one("    y[i] = outer(x[i]);\n");
  const std::string functions = "__device__ float cube(float v) { return powf(v, 3.0f); }\n"
                                "__device__ float outer(float v) { return cube(v) + v / 8.0f; }\n"
                                "__device__ float other(float v) { return powf(v, 2.0f); }\n";
  task.kernel.source.insert(task.kernel.source.find("__global__"), functions);
  const std::string source = grid_source_after(task, {key});
  CHECK(has(source, "__device__ float cube(float v) {\n  return v * v * v;\n}\n"));
  CHECK(has(source, "__device__ float outer(float v) {\n  return cube(v) + v * 0.125f;\n}\n"));
  CHECK(has(source, "__device__ float other(float v) { return powf(v, 2.0f); }\n")); // nobody calls it
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) < 1e-6);
}
