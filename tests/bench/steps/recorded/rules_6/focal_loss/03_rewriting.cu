// Rows stream through rings of bulk copies, one ring for each warp; the last block adds the blocks' sums.

//@ scratch partial: f32[132]
//@ scratch arrived: i32[1] zero
//@ launch focal<<<132, 512, 196608>>>(x, label, partial, arrived, loss, M, N)
#include <cstdint>

constexpr int WARPS = 16;
constexpr int STAGES = 3;
constexpr int WIDTH = 512;             // row length of the streaming path
constexpr int CHUNK_ROWS = 2;          // rows for each copy, one for each half of a warp
constexpr int CHUNK = WIDTH * CHUNK_ROWS;

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void wait_for(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
}

__device__ __forceinline__ void fetch_rows(uint32_t target, const float* source, uint32_t bytes, uint32_t barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
      "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ float row_result(float picked, float largest, float total) {
  const float log_probability = picked - largest - logf(total);
  const float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__global__ void __launch_bounds__(512, 1)
focal(const float* __restrict__ x, const int* __restrict__ label, float* partial, int* arrived, float* loss, int M,
      int N) {
  extern __shared__ __align__(128) float ring[];
  __shared__ __align__(8) uint64_t barriers[WARPS * STAGES];
  __shared__ float sums[WARPS];
  __shared__ int is_last;

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int stride = static_cast<int>(gridDim.x) * WARPS;
  const int first = warp * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  float sum = 0.0f;

  if (N == WIDTH && (reinterpret_cast<uintptr_t>(x) & 15) == 0) {
    const int half = lane >> 4;
    const int within = lane & 15;
    const int chunks = (M + CHUNK_ROWS - 1) / CHUNK_ROWS;
    float* const own = ring + warp * (STAGES * CHUNK);
    const uint32_t own_address = shared_address(own);
    const uint32_t own_barrier = shared_address(barriers + warp * STAGES);

    if (lane == 0) {
#pragma unroll
      for (int s = 0; s < STAGES; ++s) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(own_barrier + s * 8), "r"(1) : "memory");
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#pragma unroll
      for (int s = 0; s < STAGES; ++s) {
        const int c = first + s * stride;
        if (c < chunks) {
          const int rows = min(CHUNK_ROWS, M - c * CHUNK_ROWS);
          fetch_rows(own_address + s * (CHUNK * 4), x + static_cast<size_t>(c) * CHUNK, rows * (WIDTH * 4),
                     own_barrier + s * 8);
        }
      }
    }
    __syncwarp();

    int stage = 0;
    uint32_t parity = 0;
    const int first_row = first * CHUNK_ROWS + half;
    int ahead = first_row < M ? label[first_row] : 0;
    for (int c = first; c < chunks; c += stride) {
      const int row = c * CHUNK_ROWS + half;
      const int target = ahead;
      const int next_row = row + stride * CHUNK_ROWS;
      ahead = next_row < M ? label[next_row] : 0;

      wait_for(own_barrier + stage * 8, parity);
      const float* values = own + stage * CHUNK + half * WIDTH;
      const float4* vectors = reinterpret_cast<const float4*>(values);
      float4 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        v[k] = vectors[k * 16 + within];
      }
      const float picked = values[target];
      __syncwarp();
      // The rows are in registers: their place can be filled again while they are worked on.
      const int later = c + STAGES * stride;
      if (lane == 0 && later < chunks) {
        const int rows = min(CHUNK_ROWS, M - later * CHUNK_ROWS);
        fetch_rows(own_address + stage * (CHUNK * 4), x + static_cast<size_t>(later) * CHUNK, rows * (WIDTH * 4),
                   own_barrier + stage * 8);
      }
      __syncwarp();

      float4 top = v[0];
#pragma unroll
      for (int k = 1; k < 8; ++k) {
        top.x = fmaxf(top.x, v[k].x);
        top.y = fmaxf(top.y, v[k].y);
        top.z = fmaxf(top.z, v[k].z);
        top.w = fmaxf(top.w, v[k].w);
      }
      float largest = fmaxf(fmaxf(top.x, top.y), fmaxf(top.z, top.w));
#pragma unroll
      for (int d = 8; d > 0; d >>= 1) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, d));
      }
      float4 add = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        add.x += expf(v[k].x - largest);
        add.y += expf(v[k].y - largest);
        add.z += expf(v[k].z - largest);
        add.w += expf(v[k].w - largest);
      }
      float total = (add.x + add.y) + (add.z + add.w);
#pragma unroll
      for (int d = 8; d > 0; d >>= 1) {
        total += __shfl_xor_sync(0xffffffffu, total, d);
      }
      const float result = row_result(picked, largest, total);
      if (row < M) sum += result;

      if (++stage == STAGES) {
        stage = 0;
        parity ^= 1;
      }
    }
    // All lanes of a half hold the same sum.
    sum += __shfl_xor_sync(0xffffffffu, sum, 16);
  } else {
    for (int row = first; row < M; row += stride) {
      const float* values = x + static_cast<size_t>(row) * N;
      float largest = -INFINITY;
      for (int j = lane; j < N; j += 32) {
        largest = fmaxf(largest, values[j]);
      }
#pragma unroll
      for (int d = 16; d > 0; d >>= 1) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, d));
      }
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) {
        total += expf(values[j] - largest);
      }
#pragma unroll
      for (int d = 16; d > 0; d >>= 1) {
        total += __shfl_xor_sync(0xffffffffu, total, d);
      }
      sum += row_result(values[label[row]], largest, total);
    }
  }

  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float block_sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      block_sum += sums[w];
    }
    __stcg(partial + blockIdx.x, block_sum);
    __threadfence();
    is_last = atomicAdd(arrived, 1) == static_cast<int>(gridDim.x) - 1;
    __threadfence();
  }
  __syncthreads();
  if (is_last && warp == 0) {
    float all = 0.0f;
    for (int b = lane; b < static_cast<int>(gridDim.x); b += 32) {
      all += __ldcg(partial + b);
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
      all += __shfl_xor_sync(0xffffffffu, all, d);
    }
    if (lane == 0) loss[0] = all / M;
  }
}
