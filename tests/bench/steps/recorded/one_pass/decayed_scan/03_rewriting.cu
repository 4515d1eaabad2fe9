// A linear recurrence along the steps; a block for 32 channels, its warps scan neighbouring runs of steps.

__device__ __forceinline__ void load_run(const float* __restrict__ x, const float* __restrict__ a,
                                         size_t at, int C, int n, float (&xv)[8], float (&av)[8]) {
  if (n >= 8) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      av[k] = __ldcs(a + at + (size_t)k * C);
      xv[k] = __ldcs(x + at + (size_t)k * C);
    }
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      av[k] = 0.0f;
      xv[k] = 0.0f;
      if (k < n) {
        av[k] = __ldcs(a + at + (size_t)k * C);
        xv[k] = __ldcs(x + at + (size_t)k * C);
      }
    }
  }
}

//@ launch decayed_scan<<<ceil_div(B * C, 32), 512>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(512, 2) decayed_scan(const float* __restrict__ x, const float* __restrict__ a,
                                                       float* __restrict__ out, int B, int T, int C) {
  constexpr int WARPS = 16;
  constexpr int RUN = 8;
  constexpr int TILE = WARPS * RUN;
  __shared__ float2 part[2][WARPS][32];

  const int lane = threadIdx.x & 31;
  const int w = threadIdx.x >> 5;
  const int channel = blockIdx.x * 32 + lane;
  const bool active = channel < B * C;
  const int limit = active ? T : 0;

  int t = w * RUN;
  size_t at = 0;
  if (active) at = (size_t)(channel / C) * T * C + channel % C + (size_t)t * C;
  const size_t step = (size_t)TILE * C;

  float nx[RUN], na[RUN];
  load_run(x, a, at, C, limit - t, nx, na);

  float carry = 0.0f;
  int buf = 0;
  for (int t0 = 0; t0 < T; t0 += TILE) {
    float cx[RUN], ca[RUN];
#pragma unroll
    for (int k = 0; k < RUN; ++k) {
      cx[k] = nx[k];
      ca[k] = na[k];
    }
    const int n = limit - t;
    if (t0 + TILE < T) {
      load_run(x, a, at + step, C, n - TILE, nx, na);
    }

    float product = ca[0];
    float end = cx[0];
#pragma unroll
    for (int k = 1; k < RUN; ++k) {
      end = fmaf(ca[k], end, cx[k]);
      product *= ca[k];
    }
    part[buf][w][lane] = make_float2(product, end);
    __syncthreads();

    float state = carry;
#pragma unroll
    for (int k = 0; k < WARPS; ++k) {
      if (k == w) state = carry;
      const float2 p = part[buf][k][lane];
      carry = fmaf(p.x, carry, p.y);
    }

    if (n >= RUN) {
#pragma unroll
      for (int k = 0; k < RUN; ++k) {
        state = fmaf(ca[k], state, cx[k]);
        __stcs(out + at + (size_t)k * C, state);
      }
    } else {
#pragma unroll
      for (int k = 0; k < RUN; ++k) {
        if (k < n) {
          state = fmaf(ca[k], state, cx[k]);
          __stcs(out + at + (size_t)k * C, state);
        }
      }
    }

    buf ^= 1;
    t += TILE;
    at += step;
  }
}
