// A linear recurrence along the steps. One warp owns 32 neighbouring channels of one sequence and
// walks the steps in order; its inputs come through a deep asynchronous ring in shared memory, so
// that the memory's latency is hidden by bytes in flight, not by more threads.

//@ launch decayed_scan<<<B * ceil_div(C, 32), 32>>>(x, a, out, B, T, C)

#include <cstdint>
#include <cstddef>

constexpr int STEPS = 16;   // steps in one stage
constexpr int STAGES = 12;  // stages in the ring: 12 * 2 * 16 * 32 * 4 = 48 KiB
constexpr int WIDTH = 32;   // channels of one warp
constexpr int PLANE = STEPS * WIDTH;  // floats of one input in one stage

__device__ __forceinline__ void copy16(uint32_t to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy4(uint32_t to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
template <int N>
__device__ __forceinline__ void wait_for() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

// Starts the copies of one stage: steps [t0, t0 + STEPS) of x and a.
template <bool VECTOR>
__device__ __forceinline__ void start_stage(uint32_t slot, const float* xs, const float* as, int t0,
                                            int T, int C, int width, int lane) {
  if (VECTOR) {
    const int row = lane >> 3;
    const int col = (lane & 7) * 4;
    if (col < width) {
      const size_t step4 = (size_t)4 * C;
      size_t from = (size_t)(t0 + row) * C + col;
      uint32_t to = slot + (uint32_t)((row * WIDTH + col) * sizeof(float));
      if (t0 + STEPS <= T) {
#pragma unroll
        for (int r = 0; r < STEPS / 4; ++r) {
          copy16(to, xs + from);
          copy16(to + (uint32_t)(PLANE * sizeof(float)), as + from);
          from += step4;
          to += (uint32_t)(4 * WIDTH * sizeof(float));
        }
      } else {
#pragma unroll
        for (int r = 0; r < STEPS / 4; ++r) {
          if (t0 + r * 4 + row < T) {
            copy16(to, xs + from);
            copy16(to + (uint32_t)(PLANE * sizeof(float)), as + from);
          }
          from += step4;
          to += (uint32_t)(4 * WIDTH * sizeof(float));
        }
      }
    }
  } else {
    if (lane < width) {
      size_t from = (size_t)t0 * C + lane;
      uint32_t to = slot + (uint32_t)(lane * sizeof(float));
#pragma unroll 4
      for (int r = 0; r < STEPS; ++r) {
        if (t0 + r < T) {
          copy4(to, xs + from);
          copy4(to + (uint32_t)(PLANE * sizeof(float)), as + from);
        }
        from += C;
        to += (uint32_t)(WIDTH * sizeof(float));
      }
    }
  }
}

template <bool VECTOR>
__device__ __forceinline__ void walk(float* ring, const float* xs, const float* as, float* os, int T,
                                     int C, int width, int lane) {
  const uint32_t ring_at = (uint32_t)__cvta_generic_to_shared(ring);
  const uint32_t stage_bytes = (uint32_t)(2 * PLANE * sizeof(float));
  const int stages = (T + STEPS - 1) / STEPS;

  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < stages) {
      start_stage<VECTOR>(ring_at + s * stage_bytes, xs, as, s * STEPS, T, C, width, lane);
    }
    commit();
  }

  const bool active = lane < width;
  float* to = os + lane;
  float state = 0.0f;
  int slot = 0;              // slot of the stage that is computed
  int free_slot = STAGES - 1;  // slot that was computed last, to be filled anew

  for (int s = 0; s < stages; ++s) {
    wait_for<STAGES - 2>();
    __syncwarp();

    const int next = s + STAGES - 1;
    if (next < stages) {
      start_stage<VECTOR>(ring_at + free_slot * stage_bytes, xs, as, next * STEPS, T, C, width, lane);
    }
    commit();

    const float* here = ring + slot * (2 * PLANE) + lane;
    float xv[STEPS];
    float av[STEPS];
#pragma unroll
    for (int r = 0; r < STEPS; ++r) {
      xv[r] = here[r * WIDTH];
      av[r] = here[PLANE + r * WIDTH];
    }
    const int left = T - s * STEPS;
    if (left >= STEPS) {
#pragma unroll
      for (int r = 0; r < STEPS; ++r) {
        state = fmaf(av[r], state, xv[r]);
        xv[r] = state;
      }
      if (active) {
        float* place = to;
#pragma unroll
        for (int r = 0; r < STEPS; ++r) {
          __stcs(place, xv[r]);
          place += C;
        }
      }
      to += (size_t)STEPS * C;
    } else {
#pragma unroll
      for (int r = 0; r < STEPS; ++r) {
        if (r < left) {
          state = fmaf(av[r], state, xv[r]);
          if (active) to[(size_t)r * C] = state;
        }
      }
    }

    free_slot = slot;
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }
  wait_for<0>();
}

__global__ void __launch_bounds__(32) decayed_scan(const float* __restrict__ x,
                                                   const float* __restrict__ a,
                                                   float* __restrict__ out, int B, int T, int C) {
  __shared__ __align__(128) float ring[STAGES * 2 * PLANE];
  const int lane = threadIdx.x;
  const int groups = (C + WIDTH - 1) / WIDTH;
  const int sequence = blockIdx.x / groups;
  const int first = (blockIdx.x % groups) * WIDTH;
  if (sequence >= B) return;
  const int width = C - first < WIDTH ? C - first : WIDTH;
  const size_t base = (size_t)sequence * T * C + first;

  const bool vector = (C & 3) == 0 && ((reinterpret_cast<uintptr_t>(x) & 15) == 0) &&
                      ((reinterpret_cast<uintptr_t>(a) & 15) == 0);
  if (vector) {
    walk<true>(ring, x + base, a + base, out + base, T, C, width, lane);
  } else {
    walk<false>(ring, x + base, a + base, out + base, T, C, width, lane);
  }
}
