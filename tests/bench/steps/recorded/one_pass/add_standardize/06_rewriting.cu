// A residual is added and each row is standardized in one launch: one block for each row, the row in registers.

//@ launch standardize<<<M, 256>>>(x, r, out, M, N)
__device__ __forceinline__ float block_sum(float v, float* part) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, o);
  }
  if ((threadIdx.x & 31) == 0) {
    part[threadIdx.x >> 5] = v;
  }
  __syncthreads();
  float4 a = reinterpret_cast<const float4*>(part)[0];
  float4 b = reinterpret_cast<const float4*>(part)[1];
  return ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
}

__global__ void __launch_bounds__(256, 6) standardize(const float* __restrict__ x, const float* __restrict__ r,
                                                      float* __restrict__ out, int M, int N) {
  __shared__ __align__(16) float part[2][8];
  const int t = threadIdx.x;
  const size_t base = (size_t)blockIdx.x * (size_t)N;
  const float* xr = x + base;
  const float* rr = r + base;
  float* orow = out + base;

  if (N <= 2048 && (N & 3) == 0) {
    const int n4 = N >> 2;
    const float4* x4 = reinterpret_cast<const float4*>(xr);
    const float4* r4 = reinterpret_cast<const float4*>(rr);
    float4* o4 = reinterpret_cast<float4*>(orow);
    const bool p0 = t < n4;
    const bool p1 = t + 256 < n4;
    float4 a0 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 a1 = a0, b0 = a0, b1 = a0;
    if (p0) {
      a0 = __ldcs(x4 + t);
      b0 = __ldcs(r4 + t);
    }
    if (p1) {
      a1 = __ldcs(x4 + t + 256);
      b1 = __ldcs(r4 + t + 256);
    }
    a0.x += b0.x; a0.y += b0.y; a0.z += b0.z; a0.w += b0.w;
    a1.x += b1.x; a1.y += b1.y; a1.z += b1.z; a1.w += b1.w;
    float s = ((a0.x + a0.y) + (a0.z + a0.w)) + ((a1.x + a1.y) + (a1.z + a1.w));
    const float mean = block_sum(s, part[0]) / N;
    a0.x -= mean; a0.y -= mean; a0.z -= mean; a0.w -= mean;
    a1.x -= mean; a1.y -= mean; a1.z -= mean; a1.w -= mean;
    float q = 0.0f;
    if (p0) {
      q += (a0.x * a0.x + a0.y * a0.y) + (a0.z * a0.z + a0.w * a0.w);
    }
    if (p1) {
      q += (a1.x * a1.x + a1.y * a1.y) + (a1.z * a1.z + a1.w * a1.w);
    }
    const float variance = block_sum(q, part[1]);
    const float scale = rsqrtf(variance / N + 1e-5f);
    if (p0) {
      __stcs(o4 + t, make_float4(a0.x * scale, a0.y * scale, a0.z * scale, a0.w * scale));
    }
    if (p1) {
      __stcs(o4 + t + 256, make_float4(a1.x * scale, a1.y * scale, a1.z * scale, a1.w * scale));
    }
  } else if (N <= 2048) {
    float v[8];
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int j = t + k * 256;
      v[k] = j < N ? xr[j] + rr[j] : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      s += v[k];
    }
    const float mean = block_sum(s, part[0]) / N;
    float q = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int j = t + k * 256;
      v[k] -= mean;
      if (j < N) {
        q += v[k] * v[k];
      }
    }
    const float variance = block_sum(q, part[1]);
    const float scale = rsqrtf(variance / N + 1e-5f);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int j = t + k * 256;
      if (j < N) {
        orow[j] = v[k] * scale;
      }
    }
  } else {
    float s = 0.0f;
    for (int j = t; j < N; j += 256) {
      s += xr[j] + rr[j];
    }
    const float mean = block_sum(s, part[0]) / N;
    float q = 0.0f;
    for (int j = t; j < N; j += 256) {
      const float d = (xr[j] + rr[j]) - mean;
      q += d * d;
    }
    const float variance = block_sum(q, part[1]);
    const float scale = rsqrtf(variance / N + 1e-5f);
    for (int j = t; j < N; j += 256) {
      orow[j] = ((xr[j] + rr[j]) - mean) * scale;
    }
  }
}
