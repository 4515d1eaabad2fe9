// A linear recurrence along the steps: one warp for 32 channels of a sequence, fed by a ring of asynchronously copied tiles.

//@ launch decayed_scan<<<(ceil_div(C, 32), B, 1), 32>>>(x, a, out, B, T, C)
constexpr int STEPS = 32;
constexpr int STAGES = 6;

__device__ __forceinline__ void copy16(unsigned dst, const float* src) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}

__device__ __forceinline__ void copy4(unsigned dst, const float* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(dst), "l"(src) : "memory");
}

__global__ void __launch_bounds__(32) decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  __shared__ __align__(128) float ring[STAGES][2][STEPS][32];
  const int lane = threadIdx.x;
  const int c0 = blockIdx.x * 32;
  const size_t base = (size_t)blockIdx.y * T * C + c0;
  const float* xb = x + base;
  const float* ab = a + base;
  const bool live = c0 + lane < C;
  const bool wide = (C & 3) == 0;
  const int tiles = (T + STEPS - 1) / STEPS;
  const unsigned ring0 = (unsigned)__cvta_generic_to_shared(&ring[0][0][0][0]);
  constexpr unsigned HALF = STEPS * 32 * 4;

  auto fetch = [&](int tile, int stage) {
    if (tile < tiles) {
      const int t0 = tile * STEPS;
      const unsigned dst = ring0 + stage * (2 * HALF);
      if (wide) {
        const int r = lane >> 3;
        const int c = (lane & 7) * 4;
        if (c0 + c < C) {
          const size_t off = (size_t)(t0 + r) * C + c;
          const float* xp = xb + off;
          const float* ap = ab + off;
          const size_t step = (size_t)4 * C;
          const unsigned d = dst + (r * 32 + c) * 4;
          if (t0 + STEPS <= T) {
#pragma unroll
            for (int q = 0; q < STEPS / 4; ++q) {
              copy16(d + q * 512, xp + q * step);
              copy16(d + HALF + q * 512, ap + q * step);
            }
          } else {
            for (int q = 0; q < STEPS / 4; ++q) {
              if (t0 + r + q * 4 < T) {
                copy16(d + q * 512, xp + q * step);
                copy16(d + HALF + q * 512, ap + q * step);
              }
            }
          }
        }
      } else if (live) {
        const int n = min(STEPS, T - t0);
        for (int q = 0; q < n; ++q) {
          const size_t off = (size_t)(t0 + q) * C + lane;
          copy4(dst + (q * 32 + lane) * 4, xb + off);
          copy4(dst + HALF + (q * 32 + lane) * 4, ab + off);
        }
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };

#pragma unroll 1
  for (int s = 0; s < STAGES - 1; ++s) {
    fetch(s, s);
  }

  float state = 0.0f;
  int stage = 0;
  int next = STAGES - 1;
  float* op = out + base + lane;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(STAGES - 2) : "memory");
    __syncwarp();
    // the stage that was used up in the last iteration takes the tile that is STAGES - 1 ahead
    fetch(tile + STAGES - 1, next);
    const int n = T - tile * STEPS;
    if (n >= STEPS) {
      float xs[STEPS], as[STEPS];
#pragma unroll
      for (int q = 0; q < STEPS; ++q) {
        xs[q] = ring[stage][0][q][lane];
        as[q] = ring[stage][1][q][lane];
      }
#pragma unroll
      for (int q = 0; q < STEPS; ++q) {
        state = as[q] * state + xs[q];
        xs[q] = state;
      }
      if (live) {
#pragma unroll
        for (int q = 0; q < STEPS; ++q) {
          __stcs(op + (size_t)q * C, xs[q]);
        }
      }
      op += (size_t)STEPS * C;
    } else if (live) {
      for (int q = 0; q < n; ++q) {
        state = ring[stage][1][q][lane] * state + ring[stage][0][q][lane];
        op[(size_t)q * C] = state;
      }
    }
    next = stage;
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}
