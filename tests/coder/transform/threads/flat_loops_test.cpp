// Two loops that go through neighbouring elements together become one, where threads share them.

#include <doctest/doctest.h>

#include <string>

#include "grid_variants.hpp"
#include "idle_kernels.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// A launch with a thread for each of P planes of H x W elements.
Task planes(const std::string& work, const std::string& w = "W") {
  return idle_task("norm",
                   "//@ launch norm<<<ceil_div(P, 64), 64>>>(x, y, P, H, " + w +
                       ")\n"
                       "__global__ void norm(const float* x, float* y, int P, int H, int W) {\n"
                       "  int p = blockIdx.x * blockDim.x + threadIdx.x;\n  if (p >= P) return;\n" +
                       work + "}\n",
                   {{"x", {"P", "H", "W"}}, {"y", {"P", "H", "W"}}},
                   {{{"P", 1024}, {"H", 64}, {"W", 64}},
                    {{"P", 1}, {"H", 1}, {"W", 1}},
                    {{"P", 5}, {"H", 9}, {"W", 7}},
                    {{"P", 3}, {"H", 1}, {"W", 130}}});
}
const std::string key = "parallelization|norm/threads:x";
const std::string two_passes = "  float sum = 0.0f;\n"
                               "  for (int h = 0; h < H; ++h)\n"
                               "    for (int w = 0; w < W; ++w)\n"
                               "      sum += x[(p * H + h) * W + w];\n"
                               "  // spread\n"
                               "  for (int h = 0; h < H; ++h)\n"
                               "    for (int w = 0; w < W; ++w)\n"
                               "      y[p * H * W + h * W + w] = x[p * H * W + h * W + w] - sum / (H * W);\n";
} // namespace

TEST_CASE("planes are rows: both loops become one, whatever the order of the products") {
  const std::string source = grid_source_after(planes(two_passes), {key});
  CHECK(has(source, "//@ launch norm<<<P, 512>>>(x, y, P, H, W)\n"));
  CHECK(has(source, "  for (int h_w = lane; h_w < H * W; h_w += 512)\n"
                    "    sum += x[H * W * p + h_w];\n"));
  CHECK(has(source, "  // spread\n  for (int h_w_2 = lane; h_w_2 < H * W; h_w_2 += 512)\n"
                    "    y[p * H * W + h_w_2] = x[p * H * W + h_w_2] - sum / (H * W);\n"));
}

TEST_CASE("planes that are rows are right in every shape, and their elements wait in registers") {
  if (!mtmc_test::can_emulate) return;
  const Task task = planes(two_passes);
  const auto sources = all_variants(task, task.kernel, key);
  CHECK(sources.size() >= 3);
  CHECK(worst_difference(task, sources) < 1e-5);
  const std::string kept = grid_source_after(task, {key, "retention|norm/threads:x"});
  CHECK(has(kept, "kept_x"));
  CHECK(grid_difference(task, kept) < 1e-5);
}

TEST_CASE("loops that do more with one of their variables stay two, and so do bounds that may be negative") {
  const auto shared = [](const std::string& work, const std::string& w = "W") {
    return grid_source_after(planes(work, w), {key});
  };
  const auto sum_of = [](const std::string& term) {
    return "  float sum = 0.0f;\n  for (int h = 0; h < H; ++h)\n    for (int w = 0; w < W; ++w)\n"
           "      sum += " +
           term + ";\n  y[p] = sum;\n";
  };
  const std::string stays = "for (int h = lane; h < H; h += ";
  CHECK_FALSE(has(shared(sum_of("x[(p * H + h) * W + w]")), stays));
  CHECK(has(shared(sum_of("x[(p * H + h) * W + w] * h")), stays));
  CHECK(has(shared(sum_of("x[(p * W + h) * H + w]")), stays));              // of another width
  CHECK(has(shared(sum_of("x[p * H * W + h * W + W - 1 - w]")), stays));    // backwards
  CHECK(has(shared(sum_of("x[((long long)p * H + h) * W + w]")), stays));   // in a wider type
  CHECK(has(shared(sum_of("x[(p * H + h) * W + w]"), "2 * W - W"), stays)); // no size of the task
}
