// The pass of a row that finds the largest value joins the one that sums exponentials of distances to it.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "row_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
std::string reason(const std::string& body) {
  const Task task = rows_by(body);
  return grid_draft(task, task.kernel, "online|f/j+j#2").message;
}
const std::string first = "  float m = -INFINITY;\n"
                          "  for (int j = 0; j < N; ++j) m = fmaxf(m, x[i * N + j]);\n";
} // namespace

TEST_CASE("a softmax reads its rows once for the maximum and the sum, before and after it is shared") {
  const Task task = cuda_task("softmax");
  CHECK(offered(task, "online") == "online|softmax/j+j#2");
  CHECK(has(grid_source_after(task, {"online|softmax/j+j#2"}),
            "    float largest = x[i * N];\n"
            "    largest = fmaxf(largest, -3.402823466e+38f); // finite, for the distances to it\n"
            "    float total = 0.0f;\n"
            "    for (int j = 0; j < N; ++j) {\n"
            "      const float value = x[i * N + j];\n"
            "      const float larger = fmaxf(largest, value);\n"
            "      total = total * expf(largest - larger) + expf(value - larger);\n"
            "      largest = larger;\n"
            "    }\n"
            "    for (int j = 0; j < N; ++j) {\n"));
  const std::string shared =
      grid_source_after(task, {"parallelization|softmax/threads:x", "online|softmax/j+j#2"});
  CHECK(has(shared, "    const float largest_of_all = largest_of_block(largest);\n"
                    "    total = sum_of_block(total * expf(largest - largest_of_all));\n"
                    "    largest = largest_of_all;\n"));
  if (!mtmc_test::can_emulate) return;
  CHECK(grid_difference(task, shared) < 1e-5);
  CHECK(grid_difference(task, grid_source_after(task, {"parallelization|softmax/threads:x@4",
                                                       "online|softmax/j+j#2"})) < 1e-5);
  CHECK(grid_difference(task, grid_source_after(task, {"online|softmax/j+j#2",
                                                       "parallelization|softmax/threads:x"})) < 1e-5);
}

TEST_CASE("several sums, weights and elements that are computed go into one pass") {
  const Task task = rows_by("  float m = -INFINITY;\n"
                            "  for (int j = 0; j < N; ++j) {\n"
                            "    float v = j % 5 == 0 ? -INFINITY : x[i * N + j] * 4.0f;\n"
                            "    if (v > m) m = v;\n"
                            "  }\n"
                            "  float s = 0.0f, t = 0.0f;\n"
                            "  for (int c = 0; c < N; ++c) {\n"
                            "    const float e = expf((c % 5 == 0 ? -INFINITY : x[i * N + c] * 4.0f) - m);\n"
                            "    s += e;\n"
                            "    t += x[i * N + c] * e;\n"
                            "  }\n"
                            "  z[i] = s > 0.0f ? m + logf(s) + t / s : 0.0f;\n");
  CHECK(offered(task, "online") == "online|f/j+c");
  CHECK(has(grid_source_after(task, {"online|f/j+c"}),
            "    t = t * expf(m - larger) + x[i * N + c] * expf(value - larger);\n"));
  if (!mtmc_test::can_emulate) return;
  // A row of nothing but infinities has no sum of distances: N = 1 is such a row.
  const auto after = grid_source_after(task, {"online|f/j+c"});
  CHECK(grid_difference(task, after) < 1e-5);
}

TEST_CASE("passes that are not a maximum and its exponentials stay two") {
  const std::string sum = "  float s = 0.0f;\n  for (int j = 0; j < N; ++j) s += expf(x[i * N + j] - m);\n"
                          "  z[i] = s;\n";
  CHECK(grid_draft(rows_by(first + sum), rows_by(first + sum).kernel, "online|f/j+j#2").kernel);
  CHECK(
      has(reason(first + "  float s = 0.0f;\n  for (int j = 0; j < N; ++j) s += expf(2 * x[i * N + j] - m);\n"
                         "  z[i] = s;\n"),
          "s is no sum of exponentials of distances to m"));
  CHECK(has(reason(first +
                   "  float s = 0.0f;\n  for (int j = 0; j < N; ++j) s += x[i * N + j] * m;\n  z[i] = s;\n"),
            "s is no sum of exponentials of distances to m"));
  CHECK(has(reason(first + "  float s = 1.0f;\n  for (int j = 0; j < N; ++j) s += expf(x[i * N + j] - m);\n"
                           "  z[i] = s;\n"),
            "s is not zero in front of the second pass"));
  CHECK(has(reason(first + "  float s = 0.0f;\n  for (int j = 2; j < N; ++j) s += expf(x[i * N + j] - m);\n"
                           "  z[i] = s;\n"),
            "the two passes do not go over the same elements"));
  CHECK(has(reason(first + "  m *= 0.5f;\n" + sum), "stands between the passes"));
  CHECK(has(reason(first + "  float s = 0.0f;\n"
                           "  for (int j = 0; j < N; ++j) { y[i * N + j] = expf(x[i * N + j] - m); "
                           "s += expf(x[i * N + j] - m); }\n  z[i] = s;\n"),
            "the j loop stores elements, which one pass would not know yet"));
  CHECK(has(reason("  float m = 0.0f;\n  for (int j = 0; j < N; ++j) m += x[i * N + j];\n" + sum),
            "the first pass does not look for one largest value"));
  CHECK(has(reason("  float m = 0.0f;\n  for (int j = 1; j < N; ++j) m = fmaxf(m, x[i * N + j]);\n" + sum),
            "the two passes do not go over the same elements"));
}

TEST_CASE("a maximum that others see is the infinity again that it started with, where there was no value") {
  const std::string sums =
      "  float s = 0.0f;\n  for (int j = 0; j < N - 1; ++j) s += expf(x[i * N + j] - m);\n";
  const std::string maximum = "  float m = -INFINITY;\n"
                              "  for (int j = 0; j < N - 1; ++j) m = fmaxf(m, x[i * N + j]);\n";
  const Task task = rows_by(maximum + sums + "  z[i] = m == -INFINITY ? 7.0f : s;\n"); // N is 1 in a check
  const std::string source = grid_source_after(task, {"online|f/j+j#2"});
  CHECK(has(source, "  if (m == -3.402823466e+38f)\n    m = logf(0.0f); // as it was without a value\n"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) < 1e-5);
  const Task distances = rows_by(maximum + sums + "  z[i] = expf(x[i * N] - m) / s;\n");
  CHECK_FALSE(has(grid_source_after(distances, {"online|f/j+j#2"}), "as it was without a value"));
}
