// Sums that people write in many ways and that are products of rows and columns all the same: flattened
// numbers of threads, layers, transposed operands, windows with borders, distances. Each is tiled and right
// at every size.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "grid_variants.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
using Shapes = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// A task of one launch with inputs and, last, the output.
Task task_of(const std::string& source, const Shapes& shapes, const std::vector<Symbols>& sizes) {
  TaskBuilder builder{"kernel"};
  builder.kernel(languages::cuda, source);
  for (const auto& [name, shape] : shapes) builder.shape(name, shape);
  builder.size(sizes.front());
  for (std::size_t i = 1; i < sizes.size(); ++i) builder.check(sizes[i]);
  return builder.build();
}

Task flattened() {
  return task_of(
      "//@ launch product<<<ceil_div(M * N, 256), 256>>>(A, B, C, M, N, K)\n"
      "__global__ void product(const float* __restrict__ A, const float* __restrict__ B, float* C,\n"
      "                        int M, int N, int K) {\n"
      "  const int at = threadIdx.x + blockIdx.x * blockDim.x;\n"
      "  if (at >= M * N) return;\n"
      "  const int row = at / N;\n"
      "  const int col = at % N;\n"
      "  float acc = 0.f;\n"
      "  for (int k = 0; k < K; k++) acc = acc + A[k * M + row] * B[col * K + k];\n"
      "  C[at] = acc > 0.0f ? acc : 0.01f * acc;\n"
      "}\n",
      {{"A", {"K", "M"}}, {"B", {"N", "K"}}, {"C", {"M", "N"}}},
      {{{"M", 1024}, {"N", 1024}, {"K", 512}},
       {{"M", 37}, {"N", 70}, {"K", 21}},
       {{"M", 1}, {"N", 1}, {"K", 1}}});
}

Task batched() {
  return task_of(
      "//@ launch product<<<(ceil_div(N, 32), ceil_div(M, 8), S), (32, 8)>>>(A, B, bias, C, M, N, K)\n"
      "__global__ void product(const float* A, const float* B, const float* bias, float* C, int M, int N,\n"
      "                        int K) {\n"
      "  size_t s = blockIdx.z;\n"
      "  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;\n"
      "  if (row >= M || col >= N) return;\n"
      "  const float* a = A + s * M * K + row * K;\n"
      "  const float* b = B + s * K * N;\n"
      "  float acc = bias[col];\n"
      "  for (int k = 0; k < K; ++k) acc = fmaf(a[k], b[k * N + col], acc);\n"
      "  C[(s * M + row) * N + col] = acc;\n"
      "}\n",
      {{"A", {"S", "M", "K"}}, {"B", {"S", "K", "N"}}, {"bias", {"N"}}, {"C", {"S", "M", "N"}}},
      {{{"S", 16}, {"M", 512}, {"N", 512}, {"K", 256}},
       {{"S", 3}, {"M", 37}, {"N", 70}, {"K", 21}},
       {{"S", 1}, {"M", 1}, {"N", 1}, {"K", 1}}});
}

/// Images with several channels, a border of zeros, a stride and a bias: as frameworks define it.
Task convolution() {
  return task_of("//@ launch conv<<<ceil_div(B * F * P * Q, 256), 256>>>(x, w, bias, y, B, C, H, W, F, R, P, "
                 "Q, stride, pad)\n"
                 "__global__ void conv(const float* x, const float* w, const float* bias, float* y, int B, "
                 "int C, int H,\n"
                 "                     int W, int F, int R, int P, int Q, int stride, int pad) {\n"
                 "  int idx = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  if (idx >= B * F * P * Q) return;\n"
                 "  int q = idx % Q;\n"
                 "  int p = (idx / Q) % P;\n"
                 "  int f = (idx / (P * Q)) % F;\n"
                 "  int b = idx / (F * P * Q);\n"
                 "  float sum = bias[f];\n"
                 "  for (int c = 0; c < C; ++c)\n"
                 "    for (int r = 0; r < R; ++r)\n"
                 "      for (int s = 0; s < R; ++s) {\n"
                 "        int h = p * stride + r - pad;\n"
                 "        int v = q * stride + s - pad;\n"
                 "        if (h >= 0 && h < H && v >= 0 && v < W)\n"
                 "          sum += x[((b * C + c) * H + h) * W + v] * w[((f * C + c) * R + r) * R + s];\n"
                 "      }\n"
                 "  y[idx] = sum;\n"
                 "}\n",
                 {{"x", {"B", "C", "H", "W"}},
                  {"w", {"F", "C", "R", "R"}},
                  {"bias", {"F"}},
                  {"y", {"B", "F", "P", "Q"}}},
                 {{{"B", 8},
                   {"C", 64},
                   {"H", 56},
                   {"W", 56},
                   {"F", 64},
                   {"R", 3},
                   {"P", 28},
                   {"Q", 28},
                   {"stride", 2},
                   {"pad", 1}},
                  {{"B", 2},
                   {"C", 5},
                   {"H", 9},
                   {"W", 11},
                   {"F", 7},
                   {"R", 3},
                   {"P", 5},
                   {"Q", 6},
                   {"stride", 2},
                   {"pad", 1}},
                  {{"B", 1},
                   {"C", 1},
                   {"H", 1},
                   {"W", 1},
                   {"F", 1},
                   {"R", 1},
                   {"P", 1},
                   {"Q", 1},
                   {"stride", 1},
                   {"pad", 0}}});
}

Task distances() {
  return task_of("//@ launch cdist<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(a, b, out, M, N, D)\n"
                 "__global__ void cdist(const float* a, const float* b, float* out, int M, int N, int D) {\n"
                 "  unsigned int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  unsigned int i = blockIdx.y * blockDim.y + threadIdx.y;\n"
                 "  if (i < M && j < N) {\n"
                 "    float total = 0.0f;\n"
                 "    for (int d = 0; d < D; ++d) {\n"
                 "      float difference = a[i * D + d] - b[j * D + d];\n"
                 "      total += difference * difference;\n"
                 "    }\n"
                 "    out[i * N + j] = sqrtf(total);\n"
                 "  }\n"
                 "}\n",
                 {{"a", {"M", "D"}}, {"b", {"N", "D"}}, {"out", {"M", "N"}}},
                 {{{"M", 2048}, {"N", 2048}, {"D", 128}},
                  {{"M", 33}, {"N", 71}, {"D", 19}},
                  {{"M", 1}, {"N", 1}, {"D", 1}}});
}
} // namespace

TEST_CASE("the number of a thread is taken apart: rows and columns of a flattened product") {
  const Task task = flattened();
  const std::string source = grid_source_after(task, {"tiling|product/k"});
  CHECK(has(source, "<<<(ceil_div(N, 64), ceil_div(M, 128)), 256>>>"));
  CHECK(has(source, "A_next[n * 4 + e] = row + e < M && k < K ? A[k * M + (row + e)] : (float)0.0f;"));
  CHECK(has(source, "const int at = row * N + col;\n"));
}

TEST_CASE("layers stay where they are, pointers are written out, a first value is added behind the sum") {
  const std::string source = grid_source_after(batched(), {"tiling|product/k"});
  CHECK(has(source, ", S), 256>>>"));
  CHECK(has(source, "size_t s = blockIdx.z;\n"));
  CHECK(has(source, "(A + s * M * K + row * K)[k]"));
  CHECK(has(source, "float acc = bias[col] + accs[r][c];\n"));
}

TEST_CASE("windows: zeros in the border, and only the longest loop of the sum goes in tiles") {
  const std::string source = grid_source_after(convolution(), {"tiling|conv/c"});
  CHECK(has(source, "const int steps = c_tiles * R * R;\n"));
  CHECK(has(source, "p * stride + r - pad >= 0 &&"));
  CHECK(has(source, "const int idx = ((b * F + f) * P + p) * Q + q;\n"));
  Task special = convolution();
  special.special_values = true;
  CHECK(has(grid_draft(special, special.kernel, "tiling|conv/c").message, "infinities are among the values"));
}

TEST_CASE("where zeros would count, the last tile is shorter") {
  CHECK(has(grid_source_after(distances(), {"tiling|cdist/d"}), "d_inner < 16 && d_tile + d_inner < D;"));
}

TEST_CASE("every way of writing it is right at every size with every tile") {
  if (!mtmc_test::can_emulate) return;
  for (const auto& [task, key] : std::vector<std::pair<Task, std::string>>{{flattened(), "tiling|product/k"},
                                                                           {batched(), "tiling|product/k"},
                                                                           {convolution(), "tiling|conv/c"},
                                                                           {distances(), "tiling|cdist/d"}}) {
    const auto& shown = task;
    CAPTURE(shown.kernel.source);
    const auto sources = all_variants(task, task.kernel, key, 7);
    CHECK(sources.size() == 7);
    CHECK(worst_difference(task, sources) < 1e-5);
  }
}
