// A residual is added and each row is standardized in one launch: one block for each row, the row kept in registers.

//@ launch add_standardize<<<M, 256>>>(x, r, out, M, N)

__device__ __forceinline__ float block_sum(float v, float* red) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, o);
  }
  int warp = threadIdx.x >> 5;
  if ((threadIdx.x & 31) == 0) {
    red[warp] = v;
  }
  __syncthreads();
  float t = 0.0f;
  #pragma unroll
  for (int k = 0; k < 8; ++k) {
    t += red[k];
  }
  return t;
}

__global__ void __launch_bounds__(256) add_standardize(const float* __restrict__ x, const float* __restrict__ r,
                                                       float* __restrict__ out, int M, int N) {
  __shared__ float2 part[8];
  __shared__ float red0[8];
  __shared__ float red1[8];
  const int tid = threadIdx.x;
  const size_t base = (size_t)blockIdx.x * (size_t)N;

  if (N == 2048) {
    const float4* x4 = reinterpret_cast<const float4*>(x + base);
    const float4* r4 = reinterpret_cast<const float4*>(r + base);
    float4* o4 = reinterpret_cast<float4*>(out + base);
    float4 a0 = __ldcs(x4 + tid);
    float4 a1 = __ldcs(x4 + tid + 256);
    float4 b0 = __ldcs(r4 + tid);
    float4 b1 = __ldcs(r4 + tid + 256);
    float v[8];
    v[0] = a0.x + b0.x;
    v[1] = a0.y + b0.y;
    v[2] = a0.z + b0.z;
    v[3] = a0.w + b0.w;
    v[4] = a1.x + b1.x;
    v[5] = a1.y + b1.y;
    v[6] = a1.z + b1.z;
    v[7] = a1.w + b1.w;

    float s = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    float m = s * 0.125f;
    float q = 0.0f;
    #pragma unroll
    for (int k = 0; k < 8; ++k) {
      float d = v[k] - m;
      q = fmaf(d, d, q);
    }
    // Work with means of equally large parts: d^2 * n / 2 is what two parts of n elements add.
    float half_n = 4.0f;
    #pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      float m2 = __shfl_xor_sync(0xffffffffu, m, o);
      float q2 = __shfl_xor_sync(0xffffffffu, q, o);
      float d = m2 - m;
      q = fmaf(d * d, half_n, q + q2);
      m = 0.5f * (m + m2);
      half_n *= 2.0f;
    }
    if ((tid & 31) == 0) {
      part[tid >> 5] = make_float2(m, q);
    }
    __syncthreads();
    float mean = 0.0f;
    float pm[8];
    float var = 0.0f;
    #pragma unroll
    for (int k = 0; k < 8; ++k) {
      float2 p = part[k];
      pm[k] = p.x;
      mean += p.x;
      var += p.y;
    }
    mean *= 0.125f;
    float dev = 0.0f;
    #pragma unroll
    for (int k = 0; k < 8; ++k) {
      float d = pm[k] - mean;
      dev = fmaf(d, d, dev);
    }
    var = fmaf(dev, 256.0f, var);
    float scale = rsqrtf(var * (1.0f / 2048.0f) + 1e-5f);

    float4 w0, w1;
    w0.x = (v[0] - mean) * scale;
    w0.y = (v[1] - mean) * scale;
    w0.z = (v[2] - mean) * scale;
    w0.w = (v[3] - mean) * scale;
    w1.x = (v[4] - mean) * scale;
    w1.y = (v[5] - mean) * scale;
    w1.z = (v[6] - mean) * scale;
    w1.w = (v[7] - mean) * scale;
    __stcs(o4 + tid, w0);
    __stcs(o4 + tid + 256, w1);
  } else {
    const float* xr = x + base;
    const float* rr = r + base;
    float* orow = out + base;
    float s = 0.0f;
    for (int j = tid; j < N; j += 256) {
      s += xr[j] + rr[j];
    }
    float mean = block_sum(s, red0) / N;
    float q = 0.0f;
    for (int j = tid; j < N; j += 256) {
      float d = (xr[j] + rr[j]) - mean;
      q = fmaf(d, d, q);
    }
    float variance = block_sum(q, red1);
    float scale = rsqrtf(variance / N + 1e-5f);
    for (int j = tid; j < N; j += 256) {
      orow[j] = ((xr[j] + rr[j]) - mean) * scale;
    }
  }
}
