// A linear recurrence along the steps; a block for 32 channels of one sequence, its warps take neighbouring runs of steps.

#define DS_WARPS 16
#define DS_STEPS 8
#define DS_TILE (DS_WARPS * DS_STEPS)

//@ launch decayed_scan<<<ceil_div(C, 32) * B, 512>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(512, 2) decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  __shared__ float2 maps[2][DS_WARPS][32];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int groups = (C + 31) / 32;
  const int b = blockIdx.x / groups;
  const int c = (blockIdx.x % groups) * 32 + lane;
  const bool valid = c < C;

  // number of steps that this thread may touch, counted from its own first step
  int left = valid ? T - warp * DS_STEPS : 0;
  size_t at = ((size_t)b * (size_t)T + (size_t)(warp * DS_STEPS)) * (size_t)C + (size_t)c;
  const float* pa = a + at;
  const float* px = x + at;
  float* po = out + at;
  const size_t jump = (size_t)DS_TILE * (size_t)C;

  float ca[DS_STEPS], cx[DS_STEPS];
#pragma unroll
  for (int l = 0; l < DS_STEPS; ++l) {
    ca[l] = 0.0f;
    cx[l] = 0.0f;
    if (l < left) {
      ca[l] = __ldcs(pa + (size_t)l * C);
      cx[l] = __ldcs(px + (size_t)l * C);
    }
  }

  float carry = 0.0f;
  int buffer = 0;
  for (int t = 0; t < T; t += DS_TILE) {
    // bring the next tile
    float na[DS_STEPS], nx[DS_STEPS];
    pa += jump;
    px += jump;
    const int leftNext = left - DS_TILE;
#pragma unroll
    for (int l = 0; l < DS_STEPS; ++l) {
      na[l] = 0.0f;
      nx[l] = 0.0f;
      if (l < leftNext) {
        na[l] = __ldcs(pa + (size_t)l * C);
        nx[l] = __ldcs(px + (size_t)l * C);
      }
    }

    // the map of this warp's run of steps
    float factor = ca[0];
    float sum = cx[0];
#pragma unroll
    for (int l = 1; l < DS_STEPS; ++l) {
      factor *= ca[l];
      sum = fmaf(ca[l], sum, cx[l]);
    }
    maps[buffer][warp][lane] = make_float2(factor, sum);
    __syncthreads();

    float state = carry;
    float run = carry;
#pragma unroll
    for (int w = 0; w < DS_WARPS; ++w) {
      if (w == warp) state = run;
      const float2 m = maps[buffer][w][lane];
      run = fmaf(m.x, run, m.y);
    }
    carry = run;

#pragma unroll
    for (int l = 0; l < DS_STEPS; ++l) {
      state = fmaf(ca[l], state, cx[l]);
      if (l < left) __stcs(po + (size_t)l * C, state);
    }

    po += jump;
    left = leftNext;
    buffer ^= 1;
#pragma unroll
    for (int l = 0; l < DS_STEPS; ++l) {
      ca[l] = na[l];
      cx[l] = nx[l];
    }
  }
}
