// A linear recurrence along the steps, scanned by a block for 32 channels of a sequence.

#define SCAN_WARPS 16
#define SCAN_STEPS 8

__device__ __forceinline__ void load_steps(const float* __restrict__ px, const float* __restrict__ pa,
                                           int t, int T, int C, bool valid,
                                           float (&vx)[SCAN_STEPS], float (&va)[SCAN_STEPS]) {
  if (valid && t + SCAN_STEPS <= T) {
    const size_t base = (size_t)t * C;
    const float* qx = px + base;
    const float* qa = pa + base;
#pragma unroll
    for (int s = 0; s < SCAN_STEPS; ++s) {
      va[s] = __ldcs(qa + (size_t)s * C);
      vx[s] = __ldcs(qx + (size_t)s * C);
    }
  } else {
#pragma unroll
    for (int s = 0; s < SCAN_STEPS; ++s) {
      va[s] = 1.0f;
      vx[s] = 0.0f;
      if (valid && t + s < T) {
        va[s] = pa[(size_t)(t + s) * C];
        vx[s] = px[(size_t)(t + s) * C];
      }
    }
  }
}

//@ launch decayed_scan<<<(ceil_div(C, 32), B), 512>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(512, 2) decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  __shared__ float2 agg[2][SCAN_WARPS][32];
  constexpr int TILE = SCAN_WARPS * SCAN_STEPS;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int c = blockIdx.x * 32 + lane;
  const bool valid = c < C;
  const size_t first = (size_t)blockIdx.y * T * C + (valid ? c : 0);
  const float* px = x + first;
  const float* pa = a + first;
  float* po = out + first;

  float vx[SCAN_STEPS], va[SCAN_STEPS];
  float nx[SCAN_STEPS], na[SCAN_STEPS];
  int t = warp * SCAN_STEPS;
  load_steps(px, pa, t, T, C, valid, vx, va);

  float carry = 0.0f;
  int buf = 0;
  for (int t0 = 0; t0 < T; t0 += TILE) {
    // bring the next tile while this one is computed
    load_steps(px, pa, t + TILE, T, C, valid && t0 + TILE < T, nx, na);

    float product = va[0];
    float sum = vx[0];
#pragma unroll
    for (int s = 1; s < SCAN_STEPS; ++s) {
      sum = fmaf(va[s], sum, vx[s]);
      product *= va[s];
    }
    agg[buf][warp][lane] = make_float2(product, sum);
    __syncthreads();

    float state = carry;
#pragma unroll
    for (int k = 0; k < SCAN_WARPS; ++k) {
      if (k == warp) state = carry;
      const float2 p = agg[buf][k][lane];
      carry = fmaf(p.x, carry, p.y);
    }
    buf ^= 1;

    if (valid && t + SCAN_STEPS <= T) {
      float* qo = po + (size_t)t * C;
#pragma unroll
      for (int s = 0; s < SCAN_STEPS; ++s) {
        state = fmaf(va[s], state, vx[s]);
        __stcs(qo + (size_t)s * C, state);
      }
    } else if (valid) {
#pragma unroll
      for (int s = 0; s < SCAN_STEPS; ++s) {
        state = fmaf(va[s], state, vx[s]);
        if (t + s < T) po[(size_t)(t + s) * C] = state;
      }
    }

#pragma unroll
    for (int s = 0; s < SCAN_STEPS; ++s) {
      vx[s] = nx[s];
      va[s] = na[s];
    }
    t += TILE;
  }
}
