// A linear recurrence along the steps, one thread for each channel of each sequence,
// fed by a deep ring of asynchronous copies.

//@ launch decayed_scan<<<(ceil_div(C, 64), B), 64, 131072>>>(x, a, out, B, T, C)
#include <cstdint>
#include <cstddef>

constexpr int CH = 64;      // channels of a block
constexpr int STEPS = 32;   // steps of a tile
constexpr int STAGES = 8;
constexpr int TILE = CH * STEPS;

__device__ __forceinline__ void copy16(uint32_t to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy4(uint32_t to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

__global__ void __launch_bounds__(64)
decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  extern __shared__ __align__(128) float ring[];  // [STAGES][2][STEPS][CH]
  const int tid = threadIdx.x;
  const int c0 = blockIdx.x * CH;
  const size_t base = (size_t)blockIdx.y * T * C;
  const uint32_t ring_at = (uint32_t)__cvta_generic_to_shared(ring);
  const int tiles = (T + STEPS - 1) / STEPS;
  const bool wide = (C & 3) == 0;
  const int column = (tid & 15) * 4;
  const int first_row = tid >> 4;
  const bool column_in = c0 + column < C;
  const bool channel_in = c0 + tid < C;

  auto fetch = [&](int tile) {
    if (tile < tiles) {
      const int t0 = tile * STEPS;
      const uint32_t stage = ring_at + (uint32_t)(tile % STAGES) * (2 * TILE * 4);
      if (wide) {
        if (column_in) {
          const size_t at = base + (size_t)(t0 + first_row) * C + c0 + column;
          const float* px = x + at;
          const float* pa = a + at;
          const uint32_t to = stage + (uint32_t)(first_row * CH + column) * 4;
          const size_t hop = (size_t)4 * C;
          if (t0 + STEPS <= T) {
#pragma unroll
            for (int k = 0; k < STEPS / 4; ++k) {
              copy16(to + k * (4 * CH * 4), px + k * hop);
              copy16(to + TILE * 4 + k * (4 * CH * 4), pa + k * hop);
            }
          } else {
#pragma unroll
            for (int k = 0; k < STEPS / 4; ++k) {
              if (t0 + first_row + 4 * k < T) {
                copy16(to + k * (4 * CH * 4), px + k * hop);
                copy16(to + TILE * 4 + k * (4 * CH * 4), pa + k * hop);
              }
            }
          }
        }
      } else if (channel_in) {
        const size_t at = base + (size_t)t0 * C + c0 + tid;
        const int steps = min(STEPS, T - t0);
        for (int k = 0; k < steps; ++k) {
          const uint32_t to = stage + (uint32_t)(k * CH + tid) * 4;
          copy4(to, x + at + (size_t)k * C);
          copy4(to + TILE * 4, a + at + (size_t)k * C);
        }
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

#pragma unroll 1
  for (int s = 0; s < STAGES - 1; ++s) fetch(s);

  float state = 0.0f;
  float* target = out + base + c0 + tid;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    fetch(tile + STAGES - 1);
    const float* xs = ring + (size_t)(tile % STAGES) * (2 * TILE) + tid;
    const float* as = xs + TILE;
    const int steps = min(STEPS, T - tile * STEPS);
    if (channel_in) {
      if (steps == STEPS) {
#pragma unroll
        for (int part = 0; part < STEPS; part += 16) {
          float vx[16], va[16];
#pragma unroll
          for (int k = 0; k < 16; ++k) {
            vx[k] = xs[(part + k) * CH];
            va[k] = as[(part + k) * CH];
          }
#pragma unroll
          for (int k = 0; k < 16; ++k) {
            state = fmaf(va[k], state, vx[k]);
            __stcs(target, state);
            target += C;
          }
        }
      } else {
        for (int k = 0; k < steps; ++k) {
          state = fmaf(as[k * CH], state, xs[k * CH]);
          __stcs(target, state);
          target += C;
        }
      }
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}
