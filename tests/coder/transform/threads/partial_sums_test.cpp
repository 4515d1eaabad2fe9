// Long sums of few results that come from two directions: parts of each sum, of which tiles are made, and a
// second launch that adds them up.

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grid_variants.hpp"
#include "idle_kernels.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
using Shapes = std::vector<std::pair<std::string, std::vector<std::string>>>;

constexpr std::string_view plane = "<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>";
constexpr std::string_view numbers = "  int i = blockIdx.y * blockDim.y + threadIdx.y;\n"
                                     "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n";

/// A function `f` that a launch of one thread for each result calls with what it reads, `C`, `M`, `N` and
/// `K`.
Task product(const std::string& body, const Shapes& inputs, std::string_view grid = plane) {
  std::string given, declared;
  for (const auto& input : inputs) {
    given += input.first + ", ";
    declared += "const float* " + input.first + ", ";
  }
  Shapes shapes = inputs;
  shapes.push_back({"C", {"M", "N"}});
  return idle_task("f",
                   "//@ launch f" + std::string(grid) + "(" + given + "C, M, N, K)\n__global__ void f(" +
                       declared + "float* C, int M, int N, int K) {\n" + std::string(numbers) + body + "}\n",
                   shapes,
                   {{{"M", 128}, {"N", 128}, {"K", 32768}},
                    {{"M", 1}, {"N", 1}, {"K", 1}},
                    {{"M", 61}, {"N", 37}, {"K", 29}},
                    {{"M", 5}, {"N", 70}, {"K", 1001}}});
}
Task plain_product() {
  return product("  if (i < M && j < N) {\n"
                 "    float sum = 0.0f;\n"
                 "    for (int k = 0; k < K; ++k) {\n"
                 "      sum += A[i * K + k] * B[k * N + j];\n"
                 "    }\n"
                 "    C[i * N + j] = sum;\n"
                 "  }\n",
                 {{"A", {"M", "K"}}, {"B", {"K", "N"}}});
}
/// The sum starts with a bias, and a function of it is stored; threads beyond the last result return early.
Task with_bias() {
  return product("  if (i >= M || j >= N) return;\n"
                 "  float sum = b[j];\n"
                 "  for (size_t k = 0; k < K; k++) sum = fmaf(A[k * M + i], B[k * N + j], sum);\n"
                 "  C[i * N + j] = sum > 0.0f ? sum : 0.1f * sum;\n",
                 {{"A", {"K", "M"}}, {"B", {"K", "N"}}, {"b", {"N"}}});
}
Task distances() {
  return product("  if (i < M && j < N) {\n"
                 "    double sum = 1.0;\n"
                 "    for (int k = 0; k < K; ++k) {\n"
                 "      float d = A[i * K + k] - B[j * K + k];\n"
                 "      sum += d * d;\n"
                 "    }\n"
                 "    C[i * N + j] = sum;\n"
                 "  }\n",
                 {{"A", {"M", "K"}}, {"B", {"N", "K"}}});
}
/// `C = 2 A B + C`.
Task in_place() {
  Task task = product("  if (i < M && j < N) {\n"
                      "    float sum = 0.0f;\n"
                      "    for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];\n"
                      "    C[i * N + j] = 2.0f * sum + C[i * N + j];\n"
                      "  }\n",
                      {{"A", {"M", "K"}}, {"B", {"K", "N"}}});
  for (Argument& argument : task.arguments)
    if (argument.name == "C") argument.role = ArgumentRole::inout;
  return task;
}
/// Products of one right side with several left ones.
Task batched() {
  return idle_task("f",
                   "//@ launch f<<<(ceil_div(N, 16), ceil_div(M, 16), P), (16, 16)>>>(A, B, C, M, N, K)\n"
                   "__global__ void f(const float* A, const float* B, float* C, int M, int N, int K) {\n" +
                       std::string(numbers) +
                       "  int p = blockIdx.z;\n"
                       "  const float* Ap = A + p * M * K;\n"
                       "  if (i < M && j < N) {\n"
                       "    float sum = 0.0f;\n"
                       "    for (int k = 0; k < K; ++k) sum += Ap[i * K + k] * B[(p * K + k) * N + j];\n"
                       "    C[(p * M + i) * N + j] = sum;\n"
                       "  }\n"
                       "}\n",
                   {{"A", {"P", "M", "K"}}, {"B", {"P", "K", "N"}}, {"C", {"P", "M", "N"}}},
                   {{{"P", 4}, {"M", 64}, {"N", 64}, {"K", 16384}},
                    {{"P", 1}, {"M", 1}, {"N", 1}, {"K", 1}},
                    {{"P", 3}, {"M", 21}, {"N", 37}, {"K", 300}}});
}
/// Few places of many channels; the number of a thread is taken apart, and the border is skipped.
Task convolution() {
  return idle_task(
      "f",
      "//@ launch f<<<ceil_div(F * H * W, 128), 128>>>(x, w, y, C, H, W, F)\n"
      "__global__ void f(const float* x, const float* w, float* y, int C, int H, int W, int F) {\n"
      "  int place = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (place >= F * H * W) return;\n"
      "  int column = place % W;\n"
      "  int row = (place / W) % H;\n"
      "  int f = place / (W * H);\n"
      "  float sum = 0.0f;\n"
      "  for (int c = 0; c < C; ++c)\n"
      "    for (int r = -1; r <= 1; ++r)\n"
      "      for (int s = -1; s <= 1; ++s) {\n"
      "        if (row + r < 0 || row + r >= H || column + s < 0 || column + s >= W) continue;\n"
      "        sum += x[(c * H + row + r) * W + column + s] * w[((f * C + c) * 3 + r + 1) * 3 + s + 1];\n"
      "      }\n"
      "  y[place] = fmaxf(sum, 0.0f);\n"
      "}\n",
      {{"x", {"C", "H", "W"}}, {"w", {"F", "C", "3", "3"}}, {"y", {"F", "H", "W"}}},
      {{{"C", 2048}, {"H", 7}, {"W", 7}, {"F", 256}},
       {{"C", 1}, {"H", 1}, {"W", 1}, {"F", 1}},
       {{"C", 70}, {"H", 3}, {"W", 5}, {"F", 3}}});
}
/// The product at another main size.
Task of_size(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  Task task = plain_product();
  task.sizes.front().symbols = {{"M", rows}, {"N", columns}, {"K", depth}};
  return task;
}
std::string reason(const Task& task, const std::string& key = "splitting|f/k") {
  return grid_draft(task, task.kernel, key).message;
}
} // namespace

TEST_CASE("blocks behind each other have a part of each sum, and a second launch adds them up in order") {
  const Task task = plain_product();
  CHECK(is_offered_on_grid(task, "splitting|f/k"));
  const std::string source = grid_source_after(task, {"splitting|f/k"});
  const std::string parts = "ceil_div(256, ceil_div(N, 64) * ceil_div(M, 128))";
  CHECK(has(source, "//@ scratch sum_parts: f32[" + parts + ", M, N]\n"));
  CHECK(has(source, "f_in_parts<<<(ceil_div(N, 16), ceil_div(M, 16), " + parts +
                        "), (16, 16)>>>(A, B, M, N, K, sum_parts, " + parts + ")\n"));
  CHECK(has(source, std::string(plane) + "(C, M, N, sum_parts, " + parts + ")\n"));
  CHECK(has(source, "  const int part = blockIdx.z;\n"
                    "  const int k_each = (K + parts * 32 - 1) / (parts * 32) * 32;\n"
                    "  const int k_first = part * k_each;\n"
                    "  const int k_end = k_first + k_each < K ? k_first + k_each : K;\n"
                    "  if (i < M && j < N) {\n"
                    "    float sum = 0.0f;\n"
                    "    for (int k = k_first; k < k_end; ++k) {\n"
                    "      sum += A[i * K + k] * B[k * N + j];\n"
                    "    }\n"
                    "    sum_parts[(part * M + i) * N + j] = sum;\n"));
  CHECK(has(source, "    for (int part = 0; part < parts; ++part) {\n"
                    "      sum += sum_parts[(part * M + i) * N + j];\n"
                    "    }\n"
                    "    C[i * N + j] = sum;\n"));
}

TEST_CASE("tiles are made of the parts, which begin with a number of their block") {
  const Task task = plain_product();
  const Kernel split{task.kernel.language, grid_source_after(task, {"splitting|f/k"})};
  CHECK(is_offered_on_grid(task, split, "tiling|f_in_parts/k"));
  CHECK_FALSE(is_offered_on_grid(task, split, "splitting|f_in_parts/k"));
  const std::string source = grid_source_after(task, {"splitting|f/k", "tiling|f_in_parts/k"});
  CHECK(has(source, "f_in_parts<<<(ceil_div(N, 64), ceil_div(M, 128), ceil_div(256, "));
  CHECK(has(source, "  for (int k_tile = k_first; k_tile < k_end; k_tile += 16) {\n"));
  CHECK(has(source, "A_next[n * 4 + e] = i < M && k + e < k_end ? A[i * K + (k + e)] : (float)0.0f;"));
}

TEST_CASE("parts share the axis of blocks that number layers") {
  const std::string source = grid_source_after(batched(), {"splitting|f/k"});
  CHECK(has(source, "  const int layer = blockIdx.z;\n"
                    "  const int part = layer % parts;\n"
                    "  int p = layer / parts;\n"));
  CHECK(has(source, "sum_parts[((part * blocks_z + p) * M + i) * N + j] = sum;"));
}

TEST_CASE("sums in parts are right at every size, in every number of parts, before and after tiles") {
  if (!mtmc_test::can_emulate) return;
  for (const auto& [task, loop] : std::vector<std::pair<Task, std::string>>{{plain_product(), "k"},
                                                                            {with_bias(), "k"},
                                                                            {distances(), "k"},
                                                                            {batched(), "k"},
                                                                            {convolution(), "c"}}) {
    const auto& shown = task;
    CAPTURE(shown.kernel.source);
    CHECK(is_offered_on_grid(task, "splitting|f/" + loop));
    std::vector<std::string> sources = all_variants(task, task.kernel, "splitting|f/" + loop, 3);
    CHECK(sources.size() == 3);
    for (const std::string& split : std::vector<std::string>(sources))
      for (const std::string& tiled :
           all_variants(task, {task.kernel.language, split}, "tiling|f_in_parts/" + loop, 2))
        sources.push_back(tiled);
    CHECK(sources.size() == 9);
    CHECK(worst_difference(task, sources) < 1e-5);
  }
}

TEST_CASE("what follows the sum reads its own result once") {
  if (!mtmc_test::can_emulate) return;
  const Task task = in_place();
  CHECK(grid_difference(task, grid_source_after(task, {"splitting|f/k", "tiling|f_in_parts/k"})) < 1e-5);
}

TEST_CASE("sums are split where tiles of whole ones leave multiprocessors idle, and nowhere else") {
  for (const Task& task : {of_size(512, 512, 2048), of_size(768, 768, 4096), of_size(8, 1024, 16384)}) {
    CHECK(is_offered_on_grid(task, "splitting|f/k"));
    CHECK(has(grid_source_after(task, {"splitting|f/k"}), "f_in_parts"));
  }
  for (const Task& task : {of_size(1024, 1024, 1024), of_size(512, 512, 512), of_size(4096, 64, 128)})
    CHECK_FALSE(is_offered_on_grid(task, "splitting|f/k"));
  CHECK(reason(of_size(1024, 1024, 1024)) ==
        "tiles of the results fill the device, or nearly so, with whole sums");
}

TEST_CASE("so few results that a tile is nearly empty are made by threads that share each sum") {
  const std::string source = grid_source_after(of_size(16, 16, 65536), {"splitting|f/k"});
  CHECK(has(source, "sum_of_lanes"));
}

TEST_CASE("sums that cannot be split are declined with the reason") {
  const Task task = plain_product();
  const Kernel split{task.kernel.language, grid_source_after(task, {"splitting|f/k"})};
  CHECK(has(grid_draft(task, split, "splitting|f_in_parts/k").message,
            "the k loop goes through a part of a sum already"));
}
