#pragma once
// CUDA kernels as an optimiser meets and writes them, and their structures.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/core/action.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace cuda_kernels {

/// Tiles of 32 x 32 in shared memory, the second one with a padded row.
inline const char* const tiled_gemm = R"(
//@ launch gemm<<<(ceil_div(N, 32), ceil_div(M, 32)), (32, 32)>>>(A, B, C, M, N, K)
constexpr int tile = 32;
__global__ void __launch_bounds__(1024) gemm(const float* __restrict__ A, const float* __restrict__ B,
                                             float* __restrict__ C, int M, int N, int K) {
  __shared__ float a[tile][tile];
  __shared__ float b[tile][tile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * tile + y;
  const int col = blockIdx.x * tile + x;
  float sum = 0.0f;
  for (int t = 0; t < K; t += tile) {
    a[y][x] = row < M && t + x < K ? A[row * K + t + x] : 0.0f;
    b[x][y] = t + y < K && col < N ? B[(t + y) * N + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile; ++k) sum += a[y][k] * b[x][k];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}
)";

/// A block for each row: shuffles, dynamic shared memory, an early return, loops over a thread's share.
inline const char* const block_softmax = R"(
//@ launch softmax<<<M, 256, 4 * 256>>>(x, y, M, N)
__device__ float warp_max(float v) {
  for (int offset = 16; offset > 0; offset >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, offset));
  return v;
}
__global__ void softmax(const float* x, float* y, int M, int N) {
  extern __shared__ float partial[];
  const int row = blockIdx.x;
  if (row >= M) return;
  float largest = -1e30f;
  for (int j = threadIdx.x; j < N; j += blockDim.x) largest = fmaxf(largest, x[row * N + j]);
  partial[threadIdx.x] = warp_max(largest);
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + s]);
    __syncthreads();
  }
  largest = partial[0];
  float total = 0.0f;
  for (int j = threadIdx.x; j < N; j += blockDim.x) total += expf(x[row * N + j] - largest);
  for (int j = threadIdx.x; j < N; j += blockDim.x) y[row * N + j] = expf(__ldg(&x[row * N + j]) - largest) / total;
}
)";

/// A tile whose columns are read: without padding all threads of a warp meet in one bank.
inline const char* const tiled_transpose = R"(
//@ launch transpose<<<(ceil_div(N, 32), ceil_div(M, 32)), (32, 8)>>>(in, out, M, N)
__global__ void transpose(const float* in, float* out, int M, int N) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < N && y + k < M) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * N + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < M && y + k < N) out[(y + k) * M + x] = tile[threadIdx.x][threadIdx.y + k];
}
)";

/// A task of two matrices of M x N (the first one given) and whatever scalars the kernel takes.
inline mtmc::Task matrix_task(const std::string& source, const std::string& input, const std::string& output,
                              std::int64_t rows = 1024, std::int64_t columns = 1024) {
  return mtmc::TaskBuilder{"matrix"}
      .kernel(mtmc::languages::cuda, source)
      .shape(input, {"M", "N"})
      .shape(output, {"M", "N"})
      .size({{"M", rows}, {"N", columns}})
      .build();
}

inline mtmc::Task gemm_task(const std::string& source) {
  return mtmc::TaskBuilder{"gemm"}
      .kernel(mtmc::languages::cuda, source)
      .shape("A", {"M", "K"})
      .shape("B", {"K", "N"})
      .shape("C", {"M", "N"})
      .size({{"M", 1024}, {"N", 1024}, {"K", 1024}})
      .build();
}

inline mtmc::Structure structure_of(const mtmc::Task& task) {
  return mtmc::AstRegionFinder{}.find(task, task.kernel);
}

/// The region of that path; throws if there is none.
inline const mtmc::Region& region(const mtmc::Structure& structure, const std::string& path) {
  const auto* found = structure.find_region(path);
  if (found == nullptr) throw std::runtime_error("no region " + path);
  return *found;
}

/// How a warp makes the n-th access to an array in a region; throws if there is none.
inline const mtmc::LaneFacts& lanes(const mtmc::Region& region, const std::string& array, int number = 1) {
  for (const auto& access : region.facts.accesses)
    if (access.array == array && access.lanes && --number == 0) return *access.lanes;
  throw std::runtime_error("no access to " + array);
}

inline mtmc::Device gpu() {
  mtmc::Device device;
  device.kind = "gpu";
  device.arch = "sm_90a";
  device.compute_units = 132;
  device.shared_memory_bytes = 228 << 10;
  device.memory_bandwidth = 3.35e12;
  device.peak_rates = {{"f32", 6e13}};
  return device;
}

/// Keys of the legal actions of the extended space on a GPU, `stop` left out.
inline std::vector<std::string> actions_of(const mtmc::Task& task) {
  std::vector<std::string> keys;
  for (const auto& action : mtmc::ActionSpace::extended().legal_actions(structure_of(task), gpu()))
    if (action.kind == mtmc::Action::Kind::optimize) keys.push_back(action.key());
  return keys;
}

} // namespace cuda_kernels
