// A block makes a tile of results from tiles of operands in shared memory: legal, the same bits as before,
// and right where tiles are incomplete.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "grid_variants.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// A product with something else in the place of its sum, its guard or its results.
Task product(const std::pair<std::string, std::string>& changed = {}) {
  Task task = cuda_task("gemm");
  if (!changed.first.empty()) {
    auto& source = task.kernel.source;
    source.replace(source.find(changed.first), changed.first.size(), changed.second);
  }
  return task;
}
std::string reason(const Task& task) { return grid_draft(task, task.kernel, "tiling|gemm/k").message; }
} // namespace

TEST_CASE("a product: tiles of both operands in shared memory, results in registers") {
  const std::string source = grid_source_after(cuda_task("gemm"), {"tiling|gemm/k"});
  CHECK(has(source, "//@ launch gemm<<<(ceil_div(N, 64), ceil_div(M, 128)), 256>>>(A, B, C, M, N, K)\n"));
  CHECK(has(source, "  __shared__ __align__(16) float A_tile[16][132];\n"));
  CHECK(has(source, "  __shared__ __align__(16) float B_tile[16][64];\n"));
  CHECK(has(source, "A_next[n * 4 + e] = i < M && k + e < K ? A[i * K + (k + e)] : (float)0.0f;"));
  CHECK(has(source, "A_tile[at % 16 + e][at / 16] = A_next[n * 4 + e];"));
  CHECK(has(source, "sums[r][c] += A_values[r] * B_values[c];"));
}

TEST_CASE("neighbours come by one access where they are aligned and all of them exist") {
  const std::string source = grid_source_after(cuda_task("gemm"), {"tiling|gemm/k"});
  CHECK(has(source, "if (i < M && k + 3 < K && reinterpret_cast<size_t>(&A[i * K + k]) % 16 == 0) {\n"));
  CHECK(has(source, "*reinterpret_cast<float4*>(&A_next[n * 4]) = "
                    "*reinterpret_cast<const float4*>(&A[i * K + k]);\n"));
  // Every second one of B is no run of neighbours.
  const Task task = product({"B[k * N + j]", "B[(k * N + j) / 2]"});
  const std::string apart = grid_source_after(task, {"tiling|gemm/k"});
  CHECK(has(apart, "B_next[n] = j < N && k < K ? B[(k * N + j) / 2] : (float)0.0f;"));
}

TEST_CASE("rows that begin at any address are brought right") {
  if (!mtmc_test::can_emulate) return;
  Task task = cuda_task("gemm");
  for (ProblemSize& size : task.sizes)
    if (size.symbols.at("M") == 61) size.symbols["N"] = 38, size.symbols["K"] = 30;
  CHECK(worst_difference(task, all_variants(task, task.kernel, "tiling|gemm/k", 3)) == 0);
}

TEST_CASE("tiled sums have the bits of the plain ones, at every size and with every tile") {
  if (!mtmc_test::can_emulate) return;
  for (const auto& [name, key] :
       std::vector<std::pair<std::string, std::string>>{{"gemm", "tiling|gemm/k"},
                                                        {"gemm_bias_gelu", "tiling|linear/k"},
                                                        {"attention", "tiling|score/d"},
                                                        {"attention", "tiling|gather/j"}}) {
    const auto& shown_name = name;
    CAPTURE(shown_name);
    const auto& shown = key;
    CAPTURE(shown);
    const Task task = cuda_task(name);
    const auto sources = all_variants(task, task.kernel, key, 6);
    CHECK(sources.size() >= 3);
    CHECK(worst_difference(task, sources) == 0);
  }
}

TEST_CASE("the loop may begin anywhere, also before 0 or behind its end") {
  const Task task = product({"int k = 0; k < K", "int k = K / 3; k < K - 7"});
  const std::string source = grid_source_after(task, {"tiling|gemm/k"});
  CHECK(has(source, "for (int k_tile = K / 3; k_tile < K - 7; k_tile += 16) {"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0);
}

TEST_CASE("extents of the grid are the task's, whatever the arguments are called") {
  Task task = product({"A, B, C, M, N, K)", "A, B, C, rows, N, K)"});
  for (Argument& argument : task.arguments)
    if (argument.name == "M") argument.name = "rows"; // of the value "M"
  const std::string source = grid_source_after(task, {"tiling|gemm/k"});
  CHECK(has(source, "<<<(ceil_div(N, 64), ceil_div(M, 128)), 256>>>(A, B, C, rows, N, K)"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0);
}

TEST_CASE("operands in half precision are converted once, when they are stored in the tile") {
  const std::string source = grid_source_after(cuda_task("gemm_f16"), {"tiling|gemm_f16/k"});
  CHECK(has(source, "__shared__ __align__(16) float A_tile"));
  CHECK(has(source, "__align__(16) __half A_next[8];"));
  CHECK(has(source, "*reinterpret_cast<uint4*>(&A_next[n * 8]) = *reinterpret_cast<const uint4*>(&A["));
  CHECK(has(source, "A_tile[at % 16 + e][at / 16] = __half2float(A_next[n * 8 + e]);"));
}

TEST_CASE("what has no tile of results is declined with the reason") {
  const std::string one_way = "what the k loop adds up does not come from two directions";
  CHECK(has(reason(product({"A[i * K + k] * B", "A[(i + j) * K + k] * B"})), one_way));
  CHECK(has(reason(product({"B[k * N + j]", "A[k]"})),
            "the threads of a block share no operand along one direction"));
  CHECK(has(reason(product({"B[k * N + j]", "2.0f"})),
            "the threads of a block share no operand along one direction"));
  CHECK(has(reason(product({"k < K", "k < i"})), "the bound of the k loop is not the same for all"));
  CHECK(has(reason(product({"C[i * N + j] = sum;", "C[i * N + j] = sum; if (i > 5) return;"})),
            "more than a result follows the k loop"));
  CHECK(has(reason(product({"sum += A", "C[i * N + j] += A"})), "the k loop"));
  CHECK(has(reason(product({"  if (i < M", "  int panel = blockIdx.x;\n  if (i < M"})),
            "speaks of threads or blocks"));
  CHECK(has(reason(product(
                {"sum += A[i * K + k] * B[k * N + j];", "if (i != j) sum += A[i * K + k] * B[k * N + j];"})),
            "a condition in the loops is about rows and columns together"));
}

TEST_CASE("a transposition goes through shared memory, in the order of its reads and then of its writes") {
  const Task task = cuda_task("transpose");
  const std::string source = grid_source_after(task, {"tiling|transpose/threads:xy"});
  CHECK(has(source, "<<<(ceil_div(N, 32), ceil_div(M, 32)), 256>>>"));
  CHECK(has(source, "out_tile[at / 32][at % 32] = in[i * N + j];"));
  CHECK(has(source, "out[j * M + i] = out_tile[at % 32][at / 32];"));
  Task swapped = task;
  auto& text = swapped.kernel.source;
  text.replace(text.find("out[j * M + i] = in[i * N + j]"), 30, "out[i + M * j] = in[j + N * i]");
  Task copied = task;
  auto& plain = copied.kernel.source;
  plain.replace(plain.find("out[j * M + i]"), 14, "out[i * N + j]");
  CHECK(has(grid_draft(copied, copied.kernel, "tiling|transpose/threads:xy").message,
            "want the same neighbours"));
  if (!mtmc_test::can_emulate) return;
  for (int sample = 0; sample < 4; ++sample) {
    const auto with = "tiling|transpose/threads:xy@" + std::to_string(sample);
    CHECK(grid_difference(task, grid_source_after(task, {with})) == 0);
    CHECK(grid_difference(swapped, grid_source_after(swapped, {with})) == 0);
  }
}
