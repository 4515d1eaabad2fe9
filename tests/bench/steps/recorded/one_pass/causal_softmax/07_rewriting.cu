// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row, the row kept in registers.

#include <math_constants.h>

constexpr int WARPS = 4;
constexpr int CHUNKS = 12;  // 12 * 128 = 1536 elements of a row in registers

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)
__global__ void __launch_bounds__(128) causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  const int lane = threadIdx.x & 31;
  const int r = blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (r >= H * T) return;
  // the longest rows of each matrix first
  const int h = r / T;
  const int i = T - 1 - (r - h * T);
  const size_t base = ((size_t)h * T + i) * (size_t)T;
  const float* xr = x + base;
  float* orow = out + base;

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    float4 v[CHUNKS];
    const int l4 = lane * 4;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + l4;
      v[c] = make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
      if (j <= i) v[c] = __ldcs(reinterpret_cast<const float4*>(xr + j));
    }
    // whole chunks behind the diagonal: zeros, while the loads are under way
#pragma unroll
    for (int c = 1; c < CHUNKS; ++c) {
      const int j = c * 128 + l4;
      if (c * 128 > i && j < T) {
        __stcs(reinterpret_cast<float4*>(orow + j), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }
    float m0 = -CUDART_INF_F, m1 = -CUDART_INF_F, m2 = -CUDART_INF_F, m3 = -CUDART_INF_F;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + l4;
      if (j + 1 > i) v[c].y = -CUDART_INF_F;
      if (j + 2 > i) v[c].z = -CUDART_INF_F;
      if (j + 3 > i) v[c].w = -CUDART_INF_F;
      m0 = fmaxf(m0, v[c].x);
      m1 = fmaxf(m1, v[c].y);
      m2 = fmaxf(m2, v[c].z);
      m3 = fmaxf(m3, v[c].w);
    }
    const float largest = warp_max(fmaxf(fmaxf(m0, m1), fmaxf(m2, m3)));

    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        v[c].x = expf(v[c].x - largest);
        v[c].y = expf(v[c].y - largest);
        v[c].z = expf(v[c].z - largest);
        v[c].w = expf(v[c].w - largest);
        s0 += v[c].x;
        s1 += v[c].y;
        s2 += v[c].z;
        s3 += v[c].w;
      }
    }
    const float total = warp_sum((s0 + s1) + (s2 + s3));
    const float inv = 1.0f / total;

#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + l4;
      if (c * 128 <= i && j < T) {
        float4 o;
        o.x = j <= i ? v[c].x * inv : 0.0f;
        o.y = j + 1 <= i ? v[c].y * inv : 0.0f;
        o.z = j + 2 <= i ? v[c].z * inv : 0.0f;
        o.w = j + 3 <= i ? v[c].w * inv : 0.0f;
        __stcs(reinterpret_cast<float4*>(orow + j), o);
      }
    }
  } else {
    float m = -CUDART_INF_F;
    for (int j = lane; j <= i; j += 32) m = fmaxf(m, xr[j]);
    const float largest = warp_max(m);
    float s = 0.0f;
    for (int j = lane; j <= i; j += 32) s += expf(xr[j] - largest);
    const float total = warp_sum(s);
    const float inv = 1.0f / total;
    for (int j = lane; j < T; j += 32) {
      orow[j] = j <= i ? expf(xr[j] - largest) * inv : 0.0f;
    }
  }
}
