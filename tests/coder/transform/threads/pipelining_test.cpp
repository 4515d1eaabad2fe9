// Tiles get two buffers: the next ones are on their way while threads compute on the present ones, and one
// barrier an iteration is enough. Results keep their bits; what could race is declined.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "grid_variants.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// A product as people write it, with other texts in some places.
Task product(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  Task task = cuda_task("gemm");
  task.kernel.source = R"(//@ launch gemm<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, C, M, N, K)
__global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a_tile[16][16], b_tile[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < K; t += 16) {
    const int k = t + threadIdx.x, l = t + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = (row < M && k < K) ? A[row * K + k] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = (col < N && l < K) ? B[l * N + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
      sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
    }
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}
)";
  for (const auto& [from, to] : changes) {
    auto& source = task.kernel.source;
    source.replace(source.find(from), from.size(), to);
  }
  return task;
}
std::string reason(const std::vector<std::pair<std::string, std::string>>& changes) {
  const Task task = product(changes);
  return grid_draft(task, task.kernel, "pipeline|gemm/t").message;
}
const std::string back = "    __syncthreads();\n  }\n";
const std::string front = "  for (int t = 0; t < K; t += 16) {\n";
} // namespace

TEST_CASE("copies into tiles become asynchronous, an iteration ahead") {
  const Task task = product();
  const std::string source = grid_source_after(task, {"pipeline|gemm/t"});
  CHECK(has(source, "#include <cuda_pipeline.h>\n"));
  CHECK(has(source, "  __shared__ float a_tile[2][16][16], b_tile[2][16][17];\n  int buffer = 0;\n"));
  CHECK(has(source,
            "__pipeline_memcpy_async(&a_tile[1 - buffer][threadIdx.y][threadIdx.x], &A[row * K + k], 4, "
            "row < M && k < K ? 0 : 4);\n"));
  CHECK(has(source, "    __pipeline_wait_prior(0);\n    __syncthreads();\n"));
  CHECK(has(source, "sum += a_tile[buffer][threadIdx.y][i] * b_tile[buffer][i][threadIdx.x];"));
  CHECK(has(source, "    buffer ^= 1;\n  }\n"));
}

TEST_CASE("tiles that are filled by other means are filled as before, in turns") {
  const Task task = product({{"? A[row * K + k] :", "? 2.0f * A[row * K + k] :"}});
  const std::string source = grid_source_after(task, {"pipeline|gemm/t"});
  CHECK(has(source,
            "a_tile[buffer][threadIdx.y][threadIdx.x] = (row < M && k < K) ? 2.0f * A[row * K + k] : 0.0f;"));
  CHECK_FALSE(has(source, "__pipeline"));
  CHECK(has(grid_draft(task, task.kernel, "pipeline|gemm/t", 1).message, "no further variant"));
}

TEST_CASE("results keep their bits at every size") {
  if (!mtmc_test::can_emulate) return;
  // A barrier in front of the filling instead of one behind the computing; two products in turns, whose loops
  // have an odd number of iterations; variables of the filling that the computing uses, too.
  const std::vector<std::vector<std::pair<std::string, std::string>>> forms{
      {},
      {{back, "  }\n"}, {front, front + "    __syncthreads();\n"}},
      {{front, "  for (int turn = 0; turn < 3; ++turn)\n" + front}},
      {{"sum += a", "sum += (k < K ? 1.0f : 0.5f) * a"}},
      {{"? A[row * K + k] :", "? 2.0f * A[row * K + k] :"},
       {front, "  for (int turn = 0; turn < 3; ++turn)\n" + front}}};
  for (const auto& changes : forms) {
    const Task task = product(changes);
    CAPTURE(task.kernel.source);
    const std::string loop = has(task.kernel.source, "turn") ? "gemm/turn/t" : "gemm/t";
    const auto sources = all_variants(task, task.kernel, "pipeline|" + loop, 2);
    CHECK_FALSE(sources.empty());
    CHECK(worst_difference(task, sources) == 0);
  }
}

TEST_CASE("tiles of the offline coder itself") {
  if (!mtmc_test::can_emulate) return;
  const Task task = cuda_task("gemm");
  const std::string source = grid_source_after(task, {"tiling|gemm/k", "pipeline|gemm/k_tile"});
  CHECK(has(source, "float A_tile[2][16][132];"));
  CHECK(grid_difference(task, source) == 0);
}

TEST_CASE("what could race is declined with the reason") {
  CHECK(has(reason({{back, "  }\n"}}), "has not two barriers"));
  CHECK(has(reason({{"  if (row < M &&", "  sum += a_tile[0][0];\n  if (row < M &&"}}),
            "a_tile is used outside of the t loop"));
  CHECK(has(reason({{"    for (int i", "    a_tile[threadIdx.y][0] *= 2.0f;\n    for (int i"}}),
            "a_tile is read and written in turns"));
  CHECK(has(reason({{"    for (int i", "    C[row] = sum;\n    for (int i"}}), "writes C"));
  CHECK(has(reason({{"sum += a", "sum += C[i] * a"}}), "threads may write C"));
  CHECK(has(reason({{"    for (int i", "    float* first = &a_tile[threadIdx.y][0];\n    for (int i"},
                    {"sum += a_tile[threadIdx.y][i]", "sum += first[i]"}}),
            "the address of an element of a_tile"));
  CHECK(has(reason({{"    for (int i", "    const float* first = a_tile[threadIdx.y];\n    for (int i"},
                    {"sum += a_tile[threadIdx.y][i]", "sum += first[i]"}}),
            "a_tile"));
  CHECK(has(reason({{"a_tile[16][16]", "a_tile[96][96]"}}), "more than a block has"));
  CHECK(has(reason({{"b_tile[16][17];", "b_tile[16][17], scale[16];"},
                    {"    for (int i", "    scale[threadIdx.x] = 1.0f;\n    for (int i"}}),
            "scale is in shared memory and no tile"));
}

TEST_CASE("what moves on by itself is not filled ahead") {
  // The place to read is changed while the threads compute.
  const Task task = product({{"  float sum", "  int from = 0;\n  float sum"},
                             {"A[row * K + k]", "A[row * K + from + threadIdx.x]"},
                             {back, "    from += 16;\n" + back}});
  const std::string source = grid_source_after(task, {"pipeline|gemm/t"});
  CHECK_FALSE(has(source, "__pipeline"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0);
}

TEST_CASE("what a member or a macro hides is not filled ahead") {
  const Task member = product({{"  float sum", "  struct { int from; } at = {0};\n  float sum"},
                               {"A[row * K + k]", "A[row * K + at.from + threadIdx.x]"},
                               {back, "    at.from += 16;\n" + back}});
  const Task macro = product({{"//@ launch", "#define PLACE (row * K + t + threadIdx.x)\n//@ launch"},
                              {"A[row * K + k]", "A[PLACE]"},
                              {"  float sum", "  int t = 0;\n  float sum"}});
  for (const Task& task : {member, macro}) {
    const std::string source = grid_source_after(task, {"pipeline|gemm/t"});
    CHECK_FALSE(has(source, "__pipeline"));
    if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0);
  }
}
