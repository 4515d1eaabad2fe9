// A linear recurrence along the steps; a block takes 32 channels of a sequence, its warps take neighbouring runs of steps.

constexpr int WARPS = 16;
constexpr int STEPS = 8;
constexpr int TILE = WARPS * STEPS;

__device__ __forceinline__ void load_steps(float (&va)[STEPS], float (&vx)[STEPS], const float* __restrict__ pa,
                                           const float* __restrict__ px, int left, int C) {
  if (left >= STEPS) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      va[s] = __ldcs(pa + (size_t)s * C);
      vx[s] = __ldcs(px + (size_t)s * C);
    }
  } else {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      va[s] = 1.0f;
      vx[s] = 0.0f;
      if (s < left) {
        va[s] = __ldcs(pa + (size_t)s * C);
        vx[s] = __ldcs(px + (size_t)s * C);
      }
    }
  }
}

//@ launch decayed_scan<<<B * ceil_div(C, 32), 512>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(512, 2) decayed_scan(const float* __restrict__ x, const float* __restrict__ a,
                                                       float* __restrict__ out, int B, int T, int C) {
  __shared__ float2 maps[2][WARPS][32];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int groups = (C + 31) / 32;
  const int b = blockIdx.x / groups;
  const int c = (blockIdx.x - b * groups) * 32 + lane;
  const bool mine = c < C;
  const size_t stride = (size_t)TILE * C;
  size_t at = ((size_t)b * T + warp * STEPS) * C + c;
  int left = mine ? T - warp * STEPS : 0;  // steps from this warp's first one to the end

  float va[STEPS], vx[STEPS];
  load_steps(va, vx, a + at, x + at, left, C);

  float carry = 0.0f;
  int buffer = 0;
#pragma unroll 2
  for (int t0 = 0; t0 < T; t0 += TILE) {
    float na[STEPS], nx[STEPS];
    load_steps(na, nx, a + at + stride, x + at + stride, left - TILE, C);

    float product = va[0];
    float sum = vx[0];
#pragma unroll
    for (int s = 1; s < STEPS; ++s) {
      product *= va[s];
      sum = fmaf(va[s], sum, vx[s]);
    }
    maps[buffer][warp][lane] = make_float2(product, sum);
    __syncthreads();
    float state = carry;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      if (w == warp) {
        state = carry;
      }
      const float2 m = maps[buffer][w][lane];
      carry = fmaf(m.x, carry, m.y);
    }
    float* po = out + at;
    if (left >= STEPS) {
#pragma unroll
      for (int s = 0; s < STEPS; ++s) {
        state = fmaf(va[s], state, vx[s]);
        __stcs(po + (size_t)s * C, state);
      }
    } else {
#pragma unroll
      for (int s = 0; s < STEPS; ++s) {
        state = fmaf(va[s], state, vx[s]);
        if (s < left) {
          __stcs(po + (size_t)s * C, state);
        }
      }
    }
    at += stride;
    left -= TILE;
    buffer ^= 1;
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      va[s] = na[s];
      vx[s] = nx[s];
    }
  }
}
