// A residual is added and each row is standardized in one launch: one warp for each row, the row kept in registers.

//@ launch add_standardize<<<ceil_div(M, 4), 128>>>(x, r, out, M, N)
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void __launch_bounds__(128, 4) add_standardize(const float* __restrict__ x, const float* __restrict__ r,
                                                          float* __restrict__ out, int M, int N) {
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= M) return;
  const size_t base = (size_t)row * (size_t)N;
  const float* xr = x + base;
  const float* rr = r + base;
  float* outr = out + base;

  if (N == 2048) {
    const float4* x4 = reinterpret_cast<const float4*>(xr) + lane;
    const float4* r4 = reinterpret_cast<const float4*>(rr) + lane;
    float4* o4 = reinterpret_cast<float4*>(outr) + lane;
    float4 v[16];
#pragma unroll
    for (int c = 0; c < 16; c += 8) {
      float4 t[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        v[c + k] = __ldcs(x4 + (c + k) * 32);
        t[k] = __ldcs(r4 + (c + k) * 32);
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        v[c + k].x += t[k].x;
        v[c + k].y += t[k].y;
        v[c + k].z += t[k].z;
        v[c + k].w += t[k].w;
      }
    }
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      s0 += v[k].x;
      s1 += v[k].y;
      s2 += v[k].z;
      s3 += v[k].w;
    }
    const float mean = warp_sum((s0 + s1) + (s2 + s3)) * (1.0f / 2048.0f);
    float q0 = 0.0f, q1 = 0.0f, q2 = 0.0f, q3 = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      v[k].x -= mean;
      v[k].y -= mean;
      v[k].z -= mean;
      v[k].w -= mean;
      q0 = fmaf(v[k].x, v[k].x, q0);
      q1 = fmaf(v[k].y, v[k].y, q1);
      q2 = fmaf(v[k].z, v[k].z, q2);
      q3 = fmaf(v[k].w, v[k].w, q3);
    }
    const float scale = rsqrtf(warp_sum((q0 + q1) + (q2 + q3)) * (1.0f / 2048.0f) + 1e-5f);
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float4 w;
      w.x = v[k].x * scale;
      w.y = v[k].y * scale;
      w.z = v[k].z * scale;
      w.w = v[k].w * scale;
      __stcs(o4 + k * 32, w);
    }
  } else {
    float sum = 0.0f;
    for (int j = lane; j < N; j += 32) {
      sum += xr[j] + rr[j];
    }
    const float mean = warp_sum(sum) / N;
    float variance = 0.0f;
    for (int j = lane; j < N; j += 32) {
      const float d = (xr[j] + rr[j]) - mean;
      variance = fmaf(d, d, variance);
    }
    const float scale = rsqrtf(warp_sum(variance) / N + 1e-5f);
    for (int j = lane; j < N; j += 32) {
      outr[j] = ((xr[j] + rr[j]) - mean) * scale;
    }
  }
}
