// A residual is added and each row is standardized in one launch: one warp for each row, the row held in registers.

//@ launch add_standardize<<<ceil_div(M, 2), 64>>>(x, r, out, M, N)
#include <cstdint>

__device__ __forceinline__ float warp_sum(float value) {
  // Butterfly: every lane ends with the same bits, in a fixed order.
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void __launch_bounds__(64, 8)
add_standardize(const float* __restrict__ x, const float* __restrict__ r, float* __restrict__ out, int M, int N) {
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * 2 + (threadIdx.x >> 5);
  if (row >= M) return;  // the whole warp leaves together

  const long long base = (long long)row * N;
  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(r) | reinterpret_cast<uintptr_t>(out)) & 15) == 0;

  if (N == 2048 && aligned) {
    constexpr int VECTORS = 16;  // 16 vectors * 32 lanes * 4 floats = 2048
    constexpr int BATCH = 8;
    const float4* xv = reinterpret_cast<const float4*>(x + base) + lane;
    const float4* rv = reinterpret_cast<const float4*>(r + base) + lane;
    float4* ov = reinterpret_cast<float4*>(out + base) + lane;

    float4 v[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
      v[k] = __ldcs(xv + k * 32);
    }

    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
    for (int b = 0; b < VECTORS; b += BATCH) {
      float4 t[BATCH];
#pragma unroll
      for (int k = 0; k < BATCH; ++k) {
        t[k] = __ldcs(rv + (b + k) * 32);
      }
#pragma unroll
      for (int k = 0; k < BATCH; ++k) {
        v[b + k].x += t[k].x;
        v[b + k].y += t[k].y;
        v[b + k].z += t[k].z;
        v[b + k].w += t[k].w;
        s0 += v[b + k].x;
        s1 += v[b + k].y;
        s2 += v[b + k].z;
        s3 += v[b + k].w;
      }
    }
    const float mean = warp_sum((s0 + s1) + (s2 + s3)) * (1.0f / 2048.0f);

    float q0 = 0.0f, q1 = 0.0f, q2 = 0.0f, q3 = 0.0f;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
      v[k].x -= mean;
      v[k].y -= mean;
      v[k].z -= mean;
      v[k].w -= mean;
      q0 = fmaf(v[k].x, v[k].x, q0);
      q1 = fmaf(v[k].y, v[k].y, q1);
      q2 = fmaf(v[k].z, v[k].z, q2);
      q3 = fmaf(v[k].w, v[k].w, q3);
    }
    const float variance = warp_sum((q0 + q1) + (q2 + q3)) * (1.0f / 2048.0f);
    const float scale = rsqrtf(variance + 1e-5f);

#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
      float4 o;
      o.x = v[k].x * scale;
      o.y = v[k].y * scale;
      o.z = v[k].z * scale;
      o.w = v[k].w * scale;
      ov[k * 32] = o;
    }
  } else {
    const float* xr = x + base;
    const float* rr = r + base;
    float* orow = out + base;

    float sum = 0.0f;
#pragma unroll 4
    for (int j = lane; j < N; j += 32) {
      sum += xr[j] + rr[j];
    }
    const float mean = warp_sum(sum) / N;

    float squares = 0.0f;
#pragma unroll 4
    for (int j = lane; j < N; j += 32) {
      const float d = (xr[j] + rr[j]) - mean;
      squares = fmaf(d, d, squares);
    }
    const float scale = rsqrtf(warp_sum(squares) / N + 1e-5f);

#pragma unroll 4
    for (int j = lane; j < N; j += 32) {
      orow[j] = ((xr[j] + rr[j]) - mean) * scale;
    }
  }
}
