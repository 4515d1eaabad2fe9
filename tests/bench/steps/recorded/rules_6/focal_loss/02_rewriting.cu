// One launch: each warp streams its rows through a private ring of bulk copies,
// the last block adds the partial sums of the blocks in a fixed order.

#include <cstdint>
#include <math_constants.h>

//@ scratch partial: f32[528]
//@ scratch arrived: i32[1] zero
//@ launch focal<<<528, 128>>>(x, label, partial, arrived, loss, M, N)

constexpr int kWarps = 4;
constexpr int kStages = 5;
constexpr int kRow = 512;

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(uint32_t barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void fetch_row(uint32_t slot, const float* source, uint32_t barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
               "r"(kRow * 4)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(slot),
      "l"(__cvta_generic_to_global(source)), "r"(kRow * 4), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{\n"
        "  .reg .pred p;\n"
        "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__device__ __forceinline__ float loss_of(float largest, float total, float picked) {
  const float log_probability = picked - largest - logf(total);
  const float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__global__ void __launch_bounds__(128) focal(const float* __restrict__ x, const int* __restrict__ label,
                                             float* partial, int* arrived, float* loss, int M, int N) {
  __shared__ __align__(128) float ring[kWarps][kStages][kRow];
  __shared__ __align__(8) unsigned long long full[kWarps][kStages];
  __shared__ float warp_part[kWarps];
  __shared__ int is_last;

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int blocks = gridDim.x;
  const int workers = blocks * kWarps;
  const int worker = warp * blocks + blockIdx.x;
  const int share = M / workers;
  const int extra = M % workers;
  const int first = worker * share + min(worker, extra);
  const int count = share + (worker < extra ? 1 : 0);

  float sum = 0.0f;

  if (N == kRow && (reinterpret_cast<uintptr_t>(x) & 15) == 0) {
    const float* source = x + static_cast<size_t>(first) * kRow;
    if (lane == 0) {
#pragma unroll
      for (int s = 0; s < kStages; ++s) barrier_init(shared_address(&full[warp][s]));
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#pragma unroll
      for (int s = 0; s < kStages; ++s) {
        if (s < count) {
          fetch_row(shared_address(&ring[warp][s][0]), source + static_cast<size_t>(s) * kRow,
                    shared_address(&full[warp][s]));
        }
      }
    }
    __syncwarp();

    int slot = 0;
    uint32_t parity = 0;
    for (int base = 0; base < count; base += 32) {
      const int rows = min(32, count - base);
      const int labels = lane < rows ? label[first + base + lane] : 0;
      float kept_largest = 0.0f, kept_total = 1.0f, kept_picked = 0.0f;
      for (int r = 0; r < rows; ++r) {
        const int column = __shfl_sync(0xffffffffu, labels, r);
        const uint32_t barrier = shared_address(&full[warp][slot]);
        const float* row = &ring[warp][slot][0];
        barrier_wait(barrier, parity);

        float4 v[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) v[q] = reinterpret_cast<const float4*>(row)[q * 32 + lane];
        const float picked = row[column];

        float top[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) top[q] = fmaxf(fmaxf(v[q].x, v[q].y), fmaxf(v[q].z, v[q].w));
        const float largest = warp_max(fmaxf(fmaxf(top[0], top[1]), fmaxf(top[2], top[3])));

        // All lanes hold their part of the row now: the slot can take a later one.
        __syncwarp();
        const int next = base + r + kStages;
        if (lane == 0 && next < count) {
          fetch_row(shared_address(row), source + static_cast<size_t>(next) * kRow, barrier);
        }

        float part[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          part[q] = (expf(v[q].x - largest) + expf(v[q].y - largest)) +
                    (expf(v[q].z - largest) + expf(v[q].w - largest));
        }
        const float total = warp_sum((part[0] + part[1]) + (part[2] + part[3]));

        if (lane == r) {
          kept_largest = largest;
          kept_total = total;
          kept_picked = picked;
        }
        if (++slot == kStages) {
          slot = 0;
          parity ^= 1u;
        }
      }
      if (lane < rows) sum += loss_of(kept_largest, kept_total, kept_picked);
    }
  } else {
    for (int base = 0; base < count; base += 32) {
      const int rows = min(32, count - base);
      float kept_largest = 0.0f, kept_total = 1.0f, kept_picked = 0.0f;
      for (int r = 0; r < rows; ++r) {
        const int i = first + base + r;
        const float* row = x + static_cast<size_t>(i) * N;
        float largest = -CUDART_INF_F;
        for (int j = lane; j < N; j += 32) largest = fmaxf(largest, row[j]);
        largest = warp_max(largest);
        float total = 0.0f;
        for (int j = lane; j < N; j += 32) total += expf(row[j] - largest);
        total = warp_sum(total);
        if (lane == r) {
          kept_largest = largest;
          kept_total = total;
          kept_picked = row[label[i]];
        }
      }
      if (lane < rows) sum += loss_of(kept_largest, kept_total, kept_picked);
    }
  }

  sum = warp_sum(sum);
  if (lane == 0) warp_part[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = (warp_part[0] + warp_part[1]) + (warp_part[2] + warp_part[3]);
    __threadfence();
    is_last = atomicAdd(arrived, 1) == blocks - 1;
  }
  __syncthreads();
  if (!is_last) return;

  __threadfence();
  float all = 0.0f;
  for (int b = threadIdx.x; b < blocks; b += 128) all += __ldcg(partial + b);
  all = warp_sum(all);
  if (lane == 0) warp_part[warp] = all;
  __syncthreads();
  if (threadIdx.x == 0) {
    loss[0] = ((warp_part[0] + warp_part[1]) + (warp_part[2] + warp_part[3])) / M;
  }
}
