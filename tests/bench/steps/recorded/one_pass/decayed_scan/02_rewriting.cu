// A linear recurrence along the steps, one block for 32 channels of a sequence, its warps side by side along the steps.

#define SCAN_WARPS 16
#define SCAN_STEPS 8

__device__ __forceinline__ void load_steps(const float* __restrict__ x, const float* __restrict__ a, size_t base, int t0, int T, int C,
                                           float (&xs)[SCAN_STEPS], float (&as)[SCAN_STEPS]) {
  const size_t at = base + (size_t)t0 * C;
  const float* xp = x + at;
  const float* ap = a + at;
#pragma unroll
  for (int s = 0; s < SCAN_STEPS; ++s) {
    as[s] = 1.0f;
    xs[s] = 0.0f;
    if (t0 + s < T) {
      as[s] = __ldcs(ap);
      xs[s] = __ldcs(xp);
    }
    ap += C;
    xp += C;
  }
}

//@ launch decayed_scan<<<B * ceil_div(C, 32), 512>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(512, 2) decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  __shared__ float2 maps[2][SCAN_WARPS][32];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int groups = (C + 31) / 32;
  const int b = blockIdx.x / groups;
  const int c = (blockIdx.x - b * groups) * 32 + lane;
  const bool inside = c < C;
  const size_t base = (size_t)b * T * C + (inside ? c : C - 1);

  float xs[SCAN_STEPS], as[SCAN_STEPS];
  load_steps(x, a, base, warp * SCAN_STEPS, T, C, xs, as);

  float carry = 0.0f;
  int buf = 0;
  for (int tile = 0; tile < T; tile += SCAN_WARPS * SCAN_STEPS) {
    const int t0 = tile + warp * SCAN_STEPS;
    float xn[SCAN_STEPS], an[SCAN_STEPS];
    load_steps(x, a, base, t0 + SCAN_WARPS * SCAN_STEPS, T, C, xn, an);

    float factor = as[0];
    float end = xs[0];
#pragma unroll
    for (int s = 1; s < SCAN_STEPS; ++s) {
      end = as[s] * end + xs[s];
      factor *= as[s];
    }
    maps[buf][warp][lane] = make_float2(factor, end);
    __syncthreads();

    float state = 0.0f;
#pragma unroll
    for (int w = 0; w < SCAN_WARPS; ++w) {
      const float2 m = maps[buf][w][lane];
      if (w == warp) state = carry;
      carry = m.x * carry + m.y;
    }
    buf ^= 1;

    float* op = out + base + (size_t)t0 * C;
#pragma unroll
    for (int s = 0; s < SCAN_STEPS; ++s) {
      state = as[s] * state + xs[s];
      if (inside && t0 + s < T) __stcs(op, state);
      op += C;
    }
#pragma unroll
    for (int s = 0; s < SCAN_STEPS; ++s) {
      as[s] = an[s];
      xs[s] = xn[s];
    }
  }
}
