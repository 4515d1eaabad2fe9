#pragma once
/// Kernels that use what a launch can have, without any toolkit: compiled where there is no GPU, run where
/// there is one. A and C are f32[M, K], and M and K are i32.

#include <mtmc/task/launch_lines.hpp>

#include <string>

namespace launch_kernels {

[[nodiscard]] inline mtmc::Task task(const std::string& text) {
  using namespace mtmc;
  Task task{.name = "launches", .kernel = {languages::cuda, text, {}}};
  task.arguments = {{.name = "A", .role = ArgumentRole::input, .shape = {"M", "K"}},
                    {.name = "C", .role = ArgumentRole::output, .shape = {"M", "K"}},
                    {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "K", .role = ArgumentRole::scalar, .type = DataType::i32}};
  return task;
}

/// C = 2 A, through the tensor memory accelerator. `box` ends both tensor maps.
[[nodiscard]] inline std::string tensor_maps(const std::string& box = "16, 32") {
  return "//@ launch twice<<<(ceil_div(K, 32), ceil_div(M, 16)), 128>>>(tensor_map(A, " + box +
         "), tensor_map(C, " + box + "))" + R"kernel(
#include <cuda.h>

__global__ void twice(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(1024) float tile[16 * 32];
  __shared__ alignas(8) unsigned long long arrived;
  const unsigned memory = __cvta_generic_to_shared(tile);
  const unsigned barrier = __cvta_generic_to_shared(&arrived);
  const int x = 32 * blockIdx.x;
  const int y = 16 * blockIdx.y;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"((unsigned)sizeof tile));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(memory), "l"(&from), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
  }
  __syncthreads();
  for (unsigned done = 0; done == 0;)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier)
                 : "memory");
  // Each element alone, so that it does not matter where a swizzle puts it.
  for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) tile[i] *= 2;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(x),
               "r"(y), "r"(memory)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
)kernel";
}

/// C = 2 A in clusters of so many blocks, each of which reads what its neighbour put into shared memory.
/// `launch`: what stands between the angle brackets; `attribute`: before the function's name.
[[nodiscard]] inline std::string cluster(const std::string& launch, const std::string& attribute = {}) {
  return "//@ launch twice<<<" + launch + ">>>(A, C, M * K)\n__global__ void " + attribute +
         R"kernel( twice(const float* A, float* C, int n) {
  __shared__ float mine[128];
  unsigned rank, blocks, theirs;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  const int first = (blockIdx.x - rank) * 128;
  const int own = first + rank * 128 + threadIdx.x;
  mine[threadIdx.x] = own < n ? 2 * A[own] : 0;
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
  const unsigned neighbour = (rank + 1) % blocks;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(theirs)
               : "r"((unsigned)__cvta_generic_to_shared(mine + threadIdx.x)), "r"(neighbour));
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(theirs) : "memory");
  const int i = first + neighbour * 128 + threadIdx.x;
  if (i < n) C[i] = value;
  // Nobody leaves while somebody reads its memory.
  asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}
)kernel";
}

/// C = 2 A through so many bytes of dynamic shared memory, all of which are used.
[[nodiscard]] inline std::string dynamic_memory(const std::string& bytes) {
  return "//@ launch twice<<<1, 256, " + bytes + ">>>(A, C, M * K, (" + bytes + ") / 4)" + R"kernel(
__global__ void twice(const float* A, float* C, int n, int words) {
  extern __shared__ float memory[];
  for (int first = 0; first < n; first += words) {
    for (int i = threadIdx.x; i < words && first + i < n; i += blockDim.x) memory[words - 1 - i] = A[first + i];
    __syncthreads();
    for (int i = threadIdx.x; i < words && first + i < n; i += blockDim.x) C[first + i] = 2 * memory[words - 1 - i];
    __syncthreads();
  }
}
)kernel";
}

/// C = 2 A in two launches, with a scratch buffer between them.
[[nodiscard]] inline std::string two_launches() {
  return R"kernel(//@ scratch T: f32[K, M]
//@ launch transpose<<<(ceil_div(K, 16), ceil_div(M, 16)), (16, 16)>>>(A, T, M, K)
//@ launch back<<<ceil_div(M * K, 256), 256>>>(T, C, M, K)
__global__ void transpose(const float* A, float* T, int M, int K) {
  const int k = blockIdx.x * 16 + threadIdx.x;
  const int m = blockIdx.y * 16 + threadIdx.y;
  if (m < M && k < K) T[k * M + m] = A[m * K + k];
}
__global__ void back(const float* T, float* C, int M, int K) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * K) C[i] = 2 * T[i % K * M + i / K];
}
)kernel";
}

} // namespace launch_kernels
