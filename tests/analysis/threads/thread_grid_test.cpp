// The threads of a launch as parallel loops: indices, bounds, shared memory, barriers.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../cuda_kernels.hpp"

using namespace cuda_kernels;
using mtmc::ThreadAxis;

namespace {

/// A kernel over M x N elements with this launch and this body.
mtmc::Task copy(const std::string& launch, const std::string& body, std::int64_t rows = 1000,
                std::int64_t columns = 1000) {
  return matrix_task(
      "//@ launch copy<<<" + launch +
          ">>>(in, out, M, N)\n__global__ void copy(const float* in, float* out, int M, int N) {\n" + body +
          "}\n",
      "in", "out", rows, columns);
}

std::string shown(const std::vector<ThreadAxis>& axes) {
  std::string text;
  for (const ThreadAxis& axis : axes)
    text += (text.empty() ? "" : "; ") + axis.axis + ' ' + axis.variable + " < " + axis.upper + ": " +
            std::to_string(axis.blocks) + " x " + std::to_string(axis.threads) + ", " +
            std::to_string(axis.trip_count) + " work" + (axis.constant ? "" : ", variable");
  return text;
}

std::string axes_of(const mtmc::Task& task) {
  return shown(region(structure_of(task), "copy").facts.threads);
}

} // namespace

TEST_CASE("the usual index of a thread runs up to its guard") {
  CHECK(axes_of(copy("(ceil_div(N, 16), ceil_div(M, 8)), (16, 8)", R"(
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) out[i * N + j] = in[i * N + j];
)")) == "x j < N: 63 x 16, 1000 work; y i < M: 125 x 8, 1000 work");
}

TEST_CASE("a guard that returns early bounds the threads as well") {
  for (const char* guard :
       {"if (i >= M * N) return;", "if (!(i < M * N)) return;", "if (M * N <= i) { return; }"})
    CHECK(axes_of(copy("ceil_div(M * N, 256), 256",
                       std::string("  int i = threadIdx.x + blockIdx.x * blockDim.x;\n  ") + guard +
                           "\n  out[i] = in[i];\n")) == "x i < M*N: 3907 x 256, 1000000 work");
}

TEST_CASE("a guard around one of several results bounds nothing") {
  CHECK(axes_of(copy("ceil_div(M * N, 256), 256", R"(
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) out[i] = 0.0f;
  out[i + 1] = in[i];
)")) == "x i < : 3907 x 256, 1000192 work");
}

TEST_CASE("a block index alone and a thread index alone are named as they are") {
  CHECK(axes_of(copy("(M, 2), 128", "  for (int j = threadIdx.x; j < N; j += 128) out[blockIdx.x * N + j] = "
                                    "in[blockIdx.x * N + j];\n")) ==
        "x blockIdx.x, threadIdx.x < : 1000 x 128, 128000 work; y  < : 2 x 1, 2 work");
}

TEST_CASE("an extent of the block that the launch line computes is no constant") {
  CHECK(axes_of(copy("M, min(N, 256)",
                     "  out[blockIdx.x * N + threadIdx.x] = in[blockIdx.x * N + threadIdx.x];\n")) ==
        "x blockIdx.x, threadIdx.x < : 1000 x 256, 256000 work, variable");
}

TEST_CASE("blockDim is the launch line's number, so that strided loops are counting loops") {
  const auto structure = structure_of(copy("M, 256", R"(
  for (int j = threadIdx.x; j < N; j += blockDim.x) out[blockIdx.x * N + j] = in[blockIdx.x * N + j];
)"));
  const auto& loop = region(structure, "copy/j").facts;
  CHECK(loop.loops[0].lower == "threadIdx.x");
  CHECK(loop.loops[0].step == 256);
  CHECK(loop.loops[0].trip_count == 4);
  CHECK(loop.loops[0].parallel);
  CHECK(lanes(region(structure, "copy/j"), "in").pattern == mtmc::LanePattern::coalesced);
}

TEST_CASE("a loop over the whole grid's share of an index range keeps its accesses' addresses") {
  const auto structure = structure_of(copy("2 * compute_units, 256", R"(
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < M * N; i += gridDim.x * blockDim.x) out[i] = in[i];
)"));
  const auto loop = region(structure, "copy/i");
  CHECK(loop.facts.loops[0].trip_count == 16); // 1e6 elements, 256 blocks of 256 threads counted
  CHECK(lanes(loop, "in").pattern == mtmc::LanePattern::coalesced);
  CHECK(lanes(loop, "in").sectors == 4);
  CHECK_FALSE(loop.facts.opaque);
}

TEST_CASE("operations and bytes count the threads that work") {
  const auto structure = structure_of(gemm_task(R"(
//@ launch gemm<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, C, M, N, K)
__global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M || j >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
  C[i * N + j] = sum;
}
)"));
  CHECK(structure.flops == 2.0 * 1024 * 1024 * 1024);
  CHECK(region(structure, "gemm/k").facts.bytes == 2.0 * 4 * 1024 * 1024 * 1024);
  CHECK(region(structure, "gemm/store:C").facts.bytes == 4.0 * 1024 * 1024);
  CHECK(region(structure, "gemm/k").facts.reuse == 1024); // each element of A and B is used by 1024 threads
}

TEST_CASE("tiles in shared memory: bytes, barriers, and what may not move across them") {
  const auto structure = structure_of(gemm_task(tiled_gemm));
  CHECK(structure.opaque_statements == 0);
  const auto& nest = region(structure, "gemm/threads:xy").facts;
  CHECK(nest.shared_bytes == 4 * 32 * 32 + 4 * 32 * 33);
  CHECK(nest.block_barriers == 2);
  CHECK_FALSE(nest.tileable);
  CHECK(nest.reads == std::vector<std::string>{"A", "B"}); // tiles are no buffers
  const auto& loop = region(structure, "gemm/t").facts;
  CHECK(loop.staged);
  CHECK_FALSE(loop.loops[0].parallel);
  CHECK_FALSE(loop.loops[0].reduction);
  CHECK_FALSE(loop.interchangeable);
  CHECK(region(structure, "gemm/t/k").facts.loops[0].reduction);
  CHECK_FALSE(region(structure, "gemm/t/k").facts.staged);
}

TEST_CASE("shuffles, dynamic shared memory and an early return are understood") {
  const auto structure = structure_of(matrix_task(block_softmax, "x", "y"));
  CHECK(structure.opaque_statements == 0);
  CHECK(structure.notes.empty());
  const auto& nest = region(structure, "softmax/threads:x").facts;
  CHECK(nest.shared_bytes == 1024);
  CHECK(nest.block_barriers == 2);
  CHECK(nest.warp_exchanges == 1); // in the function it calls
  CHECK(nest.reductions == std::vector<std::string>{"largest max", "total +"});
  CHECK_FALSE(region(structure, "softmax/j+s").facts.fusable);
}

TEST_CASE("loops on both sides of a barrier are not fused") {
  const char* const body = R"(
  __shared__ float tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  for (int k = 0; k < 4; ++k) out[i + k] = in[i + k];
  BARRIER
  for (int k = 0; k < 4; ++k) out[i + k] += 1.0f;
)";
  const auto with = [body](const std::string& between) {
    std::string text = body;
    text.replace(text.find("BARRIER"), 7, between);
    return region(structure_of(copy("M, 256", text)), "copy/k+k#2").facts.fusable;
  };
  CHECK(with(""));
  CHECK_FALSE(with("__syncthreads();"));
  CHECK_FALSE(with("__syncwarp();"));
  CHECK_FALSE(with("block.sync();"));
}

TEST_CASE("two kernels with a tile of one name hand nothing on through it") {
  const auto task = matrix_task(R"(
//@ scratch T: f32[M, N]
//@ launch first<<<M, 256>>>(x, T, N)
//@ launch second<<<M, 256>>>(T, y, N)
__global__ void first(const float* in, float* out, int N) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * N + threadIdx.x] = tile[255 - threadIdx.x];
}
__global__ void second(const float* in, float* out, int N) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * N + threadIdx.x] = tile[255 - threadIdx.x];
}
)",
                                "x", "y");
  const auto structure = structure_of(task);
  REQUIRE(structure.edges.size() == 1);
  CHECK(structure.edges[0].producer == "launch:first");
  CHECK(structure.edges[0].consumer == "launch:second");
  CHECK(structure.edges[0].buffer == "T");
}
