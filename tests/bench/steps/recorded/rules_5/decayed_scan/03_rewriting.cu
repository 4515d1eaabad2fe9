// A linear recurrence along the steps; one warp for 32 channels, fed by a ring of asynchronous copies.
#include <cuda_pipeline.h>

//@ launch decayed_scan<<<B * ceil_div(C, 32), 32>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(32) decayed_scan(const float* __restrict__ x, const float* __restrict__ a,
                                                   float* __restrict__ out, int B, int T, int C) {
  constexpr int ROWS = 16;
  constexpr int STAGES = 12;
  __shared__ __align__(128) float sx[STAGES][ROWS][32];
  __shared__ __align__(128) float sa[STAGES][ROWS][32];

  const int lane = threadIdx.x;
  const int groups = (C + 31) / 32;
  const int b = blockIdx.x / groups;
  const int c0 = (blockIdx.x - b * groups) * 32;
  const int c = c0 + lane;
  const size_t base = (size_t)b * T * C;
  const bool vec = (C & 3) == 0;
  const int stages = (T + ROWS - 1) / ROWS;

  const int part = (lane & 7) * 4;
  const int sub = lane >> 3;
  const bool part_ok = c0 + part < C;
  const bool mine = c < C;

  auto issue = [&](int k, int slot) {
    const int t0 = k * ROWS;
    if (vec) {
      if (part_ok) {
        const size_t at = base + (size_t)(t0 + sub) * C + c0 + part;
        const float* px = x + at;
        const float* pa = a + at;
        const size_t step = (size_t)4 * C;
#pragma unroll
        for (int r = 0; r < ROWS; r += 4) {
          if (t0 + r + sub < T) {
            __pipeline_memcpy_async(&sx[slot][r + sub][part], px, 16);
            __pipeline_memcpy_async(&sa[slot][r + sub][part], pa, 16);
          }
          px += step;
          pa += step;
        }
      }
    } else {
      if (mine) {
        const size_t at = base + (size_t)t0 * C + c;
        for (int r = 0; r < ROWS; ++r) {
          if (t0 + r < T) {
            __pipeline_memcpy_async(&sx[slot][r][lane], x + at + (size_t)r * C, 4);
            __pipeline_memcpy_async(&sa[slot][r][lane], a + at + (size_t)r * C, 4);
          }
        }
      }
    }
  };

#pragma unroll 1
  for (int k = 0; k < STAGES - 1; ++k) {
    if (k < stages) issue(k, k);
    __pipeline_commit();
  }

  float state = 0.0f;
  float* po = out + base + c;
  int slot = 0;
  int fill = STAGES - 1;
#pragma unroll 1
  for (int k = 0; k < stages; ++k) {
    __pipeline_wait_prior(STAGES - 2);
    __syncwarp();
    // the slot to fill was read in the step before; the warp has met since
    if (k + STAGES - 1 < stages) issue(k + STAGES - 1, fill);
    __pipeline_commit();
    if (++fill == STAGES) fill = 0;

    const int t0 = k * ROWS;
    if (t0 + ROWS <= T) {
      float vx[ROWS], va[ROWS];
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        va[r] = sa[slot][r][lane];
        vx[r] = sx[slot][r][lane];
      }
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        state = fmaf(va[r], state, vx[r]);
        vx[r] = state;
      }
      if (mine) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          __stcs(po, vx[r]);
          po += C;
        }
      }
    } else {
      for (int r = 0; t0 + r < T; ++r) {
        state = fmaf(sa[slot][r][lane], state, sx[slot][r][lane]);
        if (mine) {
          *po = state;
          po += C;
        }
      }
    }
    if (++slot == STAGES) slot = 0;
  }
}
