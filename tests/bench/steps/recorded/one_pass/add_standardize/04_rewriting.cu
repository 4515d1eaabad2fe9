// A residual is added, then each row is standardized: one launch, one block for each row, the row held in registers.

//@ launch add_standardize<<<M, 256>>>(x, r, out, M, N)
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, o);
  }
  return v;
}

__global__ void __launch_bounds__(256, 8)
add_standardize(const float* __restrict__ x, const float* __restrict__ r,
                float* __restrict__ out, int M, int N) {
  __shared__ float2 part[8];
  const int row = blockIdx.x;
  const int t = threadIdx.x;
  const int warp = t >> 5;
  const int lane = t & 31;
  const size_t base = (size_t)row * (size_t)N;

  if (N == 2048) {
    const float4* xp = reinterpret_cast<const float4*>(x + base);
    const float4* rp = reinterpret_cast<const float4*>(r + base);
    float4* op = reinterpret_cast<float4*>(out + base);
    float4 a0 = __ldcs(xp + t);
    float4 a1 = __ldcs(xp + t + 256);
    float4 b0 = __ldcs(rp + t);
    float4 b1 = __ldcs(rp + t + 256);
    a0.x += b0.x; a0.y += b0.y; a0.z += b0.z; a0.w += b0.w;
    a1.x += b1.x; a1.y += b1.y; a1.z += b1.z; a1.w += b1.w;

    float s = ((a0.x + a0.y) + (a0.z + a0.w)) + ((a1.x + a1.y) + (a1.z + a1.w));
    s = warp_sum(s);
    // each warp holds 256 elements
    const float wm = s * (1.0f / 256.0f);
    float q = 0.0f;
    float d;
    d = a0.x - wm; q += d * d;
    d = a0.y - wm; q += d * d;
    d = a0.z - wm; q += d * d;
    d = a0.w - wm; q += d * d;
    d = a1.x - wm; q += d * d;
    d = a1.y - wm; q += d * d;
    d = a1.z - wm; q += d * d;
    d = a1.w - wm; q += d * d;
    q = warp_sum(q);
    if (lane == 0) {
      part[warp] = make_float2(wm, q);
    }
    __syncthreads();
    float mean = 0.0f;
    float m2 = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      const float2 p = part[w];
      mean += p.x;
      m2 += p.y;
    }
    mean *= 0.125f;
    float between = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      const float e = part[w].x - mean;
      between += e * e;
    }
    m2 += 256.0f * between;
    const float scale = rsqrtf(m2 * (1.0f / 2048.0f) + 1e-5f);
    a0.x = (a0.x - mean) * scale;
    a0.y = (a0.y - mean) * scale;
    a0.z = (a0.z - mean) * scale;
    a0.w = (a0.w - mean) * scale;
    a1.x = (a1.x - mean) * scale;
    a1.y = (a1.y - mean) * scale;
    a1.z = (a1.z - mean) * scale;
    a1.w = (a1.w - mean) * scale;
    __stcs(op + t, a0);
    __stcs(op + t + 256, a1);
  } else {
    const float* xp = x + base;
    const float* rp = r + base;
    float* op = out + base;
    float s = 0.0f;
    for (int j = t; j < N; j += 256) {
      s += xp[j] + rp[j];
    }
    s = warp_sum(s);
    if (lane == 0) {
      part[warp].x = s;
    }
    __syncthreads();
    float mean = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      mean += part[w].x;
    }
    mean /= N;
    float q = 0.0f;
    for (int j = t; j < N; j += 256) {
      const float d = (xp[j] + rp[j]) - mean;
      q += d * d;
    }
    q = warp_sum(q);
    if (lane == 0) {
      part[warp].y = q;
    }
    __syncthreads();
    float variance = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      variance += part[w].y;
    }
    const float scale = rsqrtf(variance / N + 1e-5f);
    for (int j = t; j < N; j += 256) {
      op[j] = ((xp[j] + rp[j]) - mean) * scale;
    }
  }
}
