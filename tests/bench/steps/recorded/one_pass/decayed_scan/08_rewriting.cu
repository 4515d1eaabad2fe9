// A linear recurrence along the steps; a block scans 32 channels, its warps take neighbouring runs of steps.

#define DS_WARPS 16
#define DS_STEPS 8

__device__ __forceinline__ void ds_load(const float* __restrict__ x, const float* __restrict__ a, size_t base, int t, int T, int C,
                                        bool live, float (&av)[DS_STEPS], float (&xv)[DS_STEPS]) {
  if (live && t + DS_STEPS <= T) {
    const float* ap = a + base + (size_t)t * C;
    const float* xp = x + base + (size_t)t * C;
#pragma unroll
    for (int k = 0; k < DS_STEPS; ++k) {
      av[k] = __ldcs(ap);
      xv[k] = __ldcs(xp);
      ap += C;
      xp += C;
    }
  } else {
#pragma unroll
    for (int k = 0; k < DS_STEPS; ++k) {
      av[k] = 1.0f;
      xv[k] = 0.0f;
      if (live && t + k < T) {
        av[k] = __ldcs(a + base + (size_t)(t + k) * C);
        xv[k] = __ldcs(x + base + (size_t)(t + k) * C);
      }
    }
  }
}

//@ launch decayed_scan<<<ceil_div(B * C, 32), 512>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(512, 2) decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  __shared__ float2 part[2][DS_WARPS][32];
  const int tx = threadIdx.x & 31;
  const int w = threadIdx.x >> 5;
  const int lane = blockIdx.x * 32 + tx;
  const bool live = lane < B * C;
  const size_t base = live ? (size_t)(lane / C) * T * C + lane % C : 0;
  const int tile = DS_WARPS * DS_STEPS;

  float av[DS_STEPS], xv[DS_STEPS];
  int t = w * DS_STEPS;
  ds_load(x, a, base, t, T, C, live, av, xv);

  float carry = 0.0f;
  int buf = 0;
  for (int t0 = 0; t0 < T; t0 += tile) {
    float an[DS_STEPS], xn[DS_STEPS];
    ds_load(x, a, base, t + tile, T, C, live, an, xn);

    float factor = av[0];
    float sum = xv[0];
#pragma unroll
    for (int k = 1; k < DS_STEPS; ++k) {
      sum = av[k] * sum + xv[k];
      factor *= av[k];
    }
    part[buf][w][tx] = make_float2(factor, sum);
    __syncthreads();

    float state = carry;
#pragma unroll
    for (int v = 0; v < DS_WARPS; ++v) {
      const float2 p = part[buf][v][tx];
      if (v == w) {
        state = carry;
      }
      carry = p.x * carry + p.y;
    }

    if (live) {
      if (t + DS_STEPS <= T) {
        float* op = out + base + (size_t)t * C;
#pragma unroll
        for (int k = 0; k < DS_STEPS; ++k) {
          state = av[k] * state + xv[k];
          __stcs(op, state);
          op += C;
        }
      } else {
#pragma unroll
        for (int k = 0; k < DS_STEPS; ++k) {
          state = av[k] * state + xv[k];
          if (t + k < T) {
            __stcs(out + base + (size_t)(t + k) * C, state);
          }
        }
      }
    }

#pragma unroll
    for (int k = 0; k < DS_STEPS; ++k) {
      av[k] = an[k];
      xv[k] = xn[k];
    }
    t += tile;
    buf ^= 1;
  }
}
