// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row.

#include <math_constants.h>

#define CS_WARPS 4
#define CS_VECS 12

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)
__global__ void __launch_bounds__(128) causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * CS_WARPS + (threadIdx.x >> 5);
  if (row >= H * T) return;
  const int i = row % T;
  const float* xr = x + (size_t)row * (size_t)T;
  float* orow = out + (size_t)row * (size_t)T;

  if ((T & 3) == 0 && T <= CS_VECS * 128) {
    const int last = i >> 7;  // chunk of 128 elements that holds the diagonal
    const float4* xv = reinterpret_cast<const float4*>(xr);
    float4* ov = reinterpret_cast<float4*>(orow);
    float4 v[CS_VECS];

#pragma unroll
    for (int k = 0; k < CS_VECS; ++k) {
      v[k] = make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
      const int p = k * 32 + lane;
      if (p * 4 <= i) v[k] = __ldcs(xv + p);
    }

    // zeros of the chunks wholly behind the diagonal
#pragma unroll
    for (int k = 1; k < CS_VECS; ++k) {
      const int p = k * 32 + lane;
      if (k > last && p * 4 < T) {
        __stcs(ov + p, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }

    float largest = -CUDART_INF_F;
#pragma unroll
    for (int k = 0; k < CS_VECS; ++k) {
      if (k <= last) {
        if (k == last) {
          const int j = (k * 32 + lane) * 4;
          if (j > i) v[k].x = -CUDART_INF_F;
          if (j + 1 > i) v[k].y = -CUDART_INF_F;
          if (j + 2 > i) v[k].z = -CUDART_INF_F;
          if (j + 3 > i) v[k].w = -CUDART_INF_F;
        }
        largest = fmaxf(largest, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
      }
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, o));
    }

    float t0 = 0.0f, t1 = 0.0f, t2 = 0.0f, t3 = 0.0f;
#pragma unroll
    for (int k = 0; k < CS_VECS; ++k) {
      if (k <= last) {
        v[k].x = expf(v[k].x - largest);
        v[k].y = expf(v[k].y - largest);
        v[k].z = expf(v[k].z - largest);
        v[k].w = expf(v[k].w - largest);
        t0 += v[k].x;
        t1 += v[k].y;
        t2 += v[k].z;
        t3 += v[k].w;
      }
    }
    float total = (t0 + t1) + (t2 + t3);
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
      total += __shfl_xor_sync(0xffffffffu, total, o);
    }
    const float inv = 1.0f / total;

#pragma unroll
    for (int k = 0; k < CS_VECS; ++k) {
      if (k <= last) {
        const int p = k * 32 + lane;
        const int j = p * 4;
        float4 r;
        r.x = v[k].x * inv;
        r.y = v[k].y * inv;
        r.z = v[k].z * inv;
        r.w = v[k].w * inv;
        if (k == last) {
          if (j > i) r.x = 0.0f;
          if (j + 1 > i) r.y = 0.0f;
          if (j + 2 > i) r.z = 0.0f;
          if (j + 3 > i) r.w = 0.0f;
        }
        if (j < T) __stcs(ov + p, r);
      }
    }
  } else {
    float largest = -CUDART_INF_F;
#pragma unroll 4
    for (int j = lane; j <= i; j += 32) {
      largest = fmaxf(largest, xr[j]);
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, o));
    }
    float total = 0.0f;
#pragma unroll 4
    for (int j = lane; j <= i; j += 32) {
      total += expf(xr[j] - largest);
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
      total += __shfl_xor_sync(0xffffffffu, total, o);
    }
    const float inv = 1.0f / total;
#pragma unroll 4
    for (int j = lane; j < T; j += 32) {
      orow[j] = j <= i ? expf(xr[j] - largest) * inv : 0.0f;
    }
  }
}
