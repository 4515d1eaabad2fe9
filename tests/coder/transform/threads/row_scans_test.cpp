// Recurrences along rows are scanned by warps and blocks.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "grid_variants.hpp"
#include "row_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
std::string reason(const Task& task) { return grid_draft(task, task.kernel, "scanning|f/j").message; }
} // namespace

TEST_CASE("each thread sums its piece, gets the sum before it, and goes through the piece again") {
  const Task task = rows_by("  float acc = 0.0f;\n"
                            "  for (int j = 0; j < N; ++j) {\n"
                            "    acc += x[i * N + j];\n"
                            "    y[i * N + j] = acc;\n"
                            "  }\n"
                            "  z[i] = acc;\n");
  CHECK(offered(task, "scanning") == "scanning|f/j");
  CHECK(has(grid_source_after(task, {"scanning|f/j"}),
            "  float acc = 0.0f;\n"
            "  for (int j_first = 0; j_first < N; j_first += 512) {\n"
            "    const int j_begin = j_first + 4 * lane;\n"
            "    float acc_own = 0.0f;\n"
            "    for (int j = j_begin; j < j_begin + 4 && j < N; ++j) {\n"
            "      acc_own += x[i * N + j];\n"
            "    }\n"
            "    float acc_here = sum_before_in_block(acc_own, acc);\n"
            "    for (int j = j_begin; j < j_begin + 4 && j < N; ++j) {\n"
            "      acc_here += x[i * N + j];\n"
            "      y[i * N + j] = acc_here;\n"
            "    }\n"
            "  }\n"
            "  if (lane == 0)\n"
            "    z[i] = acc;\n"));
  CHECK(has(grid_source_after(task, {"scanning|f/j@1"}), "    const int j = j_first + lane;\n"
                                                         "    float acc_own = 0.0f;\n"
                                                         "    if (j < N) {\n"
                                                         "      acc_own += x[i * N + j];\n"));
  if (!mtmc_test::can_emulate) return;
  const auto sources = all_variants(task, task.kernel, "scanning|f/j", 10);
  CHECK(sources.size() == 10);
  CHECK(worst_difference(task, sources) < 1e-5);
}

TEST_CASE("sums, products, extrema and first orders are scanned, forwards and backwards, in place, in part") {
  if (!mtmc_test::can_emulate) return;
  for (const char* const body :
       {// exclusive, of some elements
        "  float acc = 1.0f;\n  for (int j = 0; j < N; ++j) { const float v = x[i * N + j]; y[i * N + j] = "
        "acc; "
        "if (v > 0.0f) acc += v; }\n",
        // backwards, in place
        "  float acc = 0.0f;\n  for (int j = N - 1; j >= 0; j--) { acc = acc + y[i * N + j]; y[i * N + j] = "
        "acc; "
        "}\n",
        // the largest so far, from an element, which may be no number
        "  float top = i == 1 ? NAN : x[i * N];\n  for (int j = 0; j < N; ++j) { "
        "top = x[i * N + j] > top ? x[i * N + j] : top; y[i * N + j] = top > 0.5f ? 1.0f : 0.5f; }\n",
        // two at once, every other element, with doubles
        "  double product = 1.0; float top = -INFINITY;\n  for (int j = 0; j < N; j += 2) { "
        "product *= 1.0 + 0.01 * x[i * N + j]; top = fmaxf(top, x[i * N + j]); "
        "y[i * N + j] = (float)product + top; }\n",
        // an average that forgets
        "  float state = 0.25f;\n  for (int j = 0; j < N; ++j) { state = 0.5f * state + x[i * N + j]; "
        "y[i * N + j] = state; }\n",
        // runs that begin anew, and a count
        "  float run = 0.0f; int count = 0;\n  for (int j = 1; j < N; ++j) { float v = x[i * N + j]; "
        "run = v < -0.5f ? 0.0f : run + v; if (v > 0.5f) count++; y[i * N + j] = run + count; }\n"}) {
    CAPTURE(body);
    const double difference = difference_after(rows_by(body), "scanning");
    CHECK(difference >= 0);
    CHECK(difference < 1e-5);
  }
}

TEST_CASE("a branch in which all of a recurrence stands decides in every pass") {
  if (!mtmc_test::can_emulate) return;
  for (const char* const body :
       {"  float acc = 0.0f;\n  for (int j = 0; j < N; ++j) { if (x[i * N + j] > 0.0f) { acc += x[i * N + "
        "j]; "
        "y[i * N + j] = acc; } }\n",
        "  float acc = 1.0f;\n  for (int j = 0; j < N; ++j) { if (x[i * N + j] > 0.0f) acc = 0.5f * acc + "
        "x[i * N + j]; }\n  y[i * N] = acc;\n",
        "  int count = 0;\n  for (int j = 0; j < N; ++j) { if (x[i * N + j] > 0.0f) count += 1; }\n  y[i * "
        "N] = "
        "(float)count;\n"}) {
    CAPTURE(body);
    const Task task = rows_by(body);
    const Draft draft = grid_draft(task, task.kernel, "scanning|f/j"); // whether it is offered or not
    REQUIRE_MESSAGE(draft.kernel, draft.message);
    CHECK(grid_difference(task, draft.kernel->source) < 1e-5);
  }
}

TEST_CASE("other loops of the row are shared, and threads wait for what others stored") {
  const Task task = rows_by("  float total = 0.0f, acc = 0.0f;\n"
                            "  for (int j = 0; j < N; ++j) total += expf(x[i * N + j]);\n"
                            "  for (int j = 0; j < N; ++j) {\n"
                            "    acc += expf(x[i * N + j]) / total;\n"
                            "    y[i * N + j] = acc;\n"
                            "  }\n"
                            "  for (int j = 0; j < N; ++j) x[i * N + j] = y[i * N + N - 1 - j] * total;\n");
  CHECK(offered(task, "scanning") == "scanning|f/j#2");
  CHECK(has(grid_source_after(task, {"scanning|f/j#2"}), "  }\n  __syncthreads();\n  for (int j = lane;"));
  if (mtmc_test::can_emulate) CHECK(difference_after(task, "scanning") < 1e-5);
}

TEST_CASE("a recurrence through memory is scanned as one through a scalar") {
  const Task task = rows_by("  y[i * N] = x[i * N];\n"
                            "  for (int j = 1; j < N; ++j) {\n"
                            "    y[i * N + j] = y[i * N + j - 1] + x[i * N + j];\n"
                            "  }\n");
  CHECK(offered(task, "scanning") == "scanning|f/j");
  const std::string source = grid_source_after(task, {"scanning|f/j"});
  CHECK(has(source, "  __syncthreads();\n  float y_before = 1 < N ? y[i * N] : 0;\n"));
  CHECK(has(source, "      y_before_here = y_before_here + x[i * N + j];\n"
                    "      y[i * N + j] = y_before_here;\n"));
  const Task backwards =
      rows_by("  for (int j = N - 2; j >= 0; --j) y[i * N + j] += 0.5f * y[i * N + (j + 1)];\n");
  if (!mtmc_test::can_emulate) return;
  for (const Task* one : {&task, &backwards}) {
    const double difference = difference_after(*one, "scanning");
    CHECK(difference >= 0);
    CHECK(difference < 1e-5);
  }
}

TEST_CASE("what is no scan is declined") {
  CHECK(has(reason(rows_by("  float s = 0.0f;\n  for (int j = 0; j < N; ++j) { s = sinf(s) + x[i * N + j]; "
                           "y[i * N + j] = s; }\n")),
            "iterations of j depend on each other through s"));
  CHECK(has(reason(rows_by("  float s = 1.0f;\n  for (int j = 0; j < N; ++j) { s = 2.0f * s + x[i * N + j]; "
                           "y[i * N + j] = s; }\n")),
            "iterations of j depend on each other through s"));
  CHECK(has(reason(rows_by(
                "  float s = 1.0f, t = 0.0f;\n  for (int j = 0; j < N; ++j) { t += s; s += x[i * N + j]; "
                "y[i * N + j] = t; }\n")),
            "iterations of j depend on each other through t"));
  CHECK(has(reason(rows_by(
                "  float s = 1.0f;\n  for (int j = 0; j < N; ++j) { s = s > x[i * N + j] ? s : x[i * N + j]; "
                "y[i * N + j] = s; }\n")),
            "iterations of j depend on each other through s"));
  CHECK(has(reason(rows_by("  float s = 0.0f;\n  for (int j = 0; j < N; ++j) { y[i * N + j] = j; "
                           "s += y[i * N + j]; x[i * N + j] = s; }\n")),
            "j reads what its iteration wrote"));
  CHECK(has(reason(rows_by("  float s = 0.0f;\n  for (int j = 0; j < N; ++j) { s += y[i * N + j / 2]; "
                           "y[i * N + j] = s; }\n")),
            "may depend on each other through y"));
}

TEST_CASE("products of factors stay finite where states are zero; integers that are rounded are no scans") {
  const auto draft_of_scan = [](const std::string& statements) {
    const Task task = rows_by(statements);
    return grid_draft(task, task.kernel, "scanning|f/j");
  };
  const std::string gated = "  float r = 0.0f;\n  for (int j = 0; j < N; ++j) {\n"
                            "    r = r * (100.0f + x[i * N + j]) + (j + 1 == N ? 1.0f : 0.0f);\n"
                            "    y[i * N + j] = r;\n  }\n";
  const Draft draft = draft_of_scan(gated);
  REQUIRE_MESSAGE(draft.kernel, draft.message);
  if (mtmc_test::can_emulate) CHECK(grid_difference(rows_by(gated), draft.kernel->source) < 1e-5);
  CHECK(has(draft_of_scan("  int r = 0;\n  for (int j = 0; j < N; ++j) {\n    r += x[i * N + j] * 4.0f;\n"
                          "    y[i * N + j] = r;\n  }\n")
                .message,
            "depend on each other through r"));
}
