// A residual is added, then each row is standardized: one launch, one block for each row, the row kept in registers.

//@ launch add_standardize<<<M, 256>>>(x, r, out, N)

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, o);
  }
  return v;
}

__device__ __forceinline__ float4 add4(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void __launch_bounds__(256) add_standardize(const float* __restrict__ x,
                                                       const float* __restrict__ r,
                                                       float* __restrict__ out, int N) {
  __shared__ float2 part[8];
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const size_t base = (size_t)blockIdx.x * (size_t)N;

  if (N == 2048) {
    const float4* x4 = reinterpret_cast<const float4*>(x + base);
    const float4* r4 = reinterpret_cast<const float4*>(r + base);
    float4* o4 = reinterpret_cast<float4*>(out + base);

    float4 xa = __ldcs(x4 + tid);
    float4 xb = __ldcs(x4 + tid + 256);
    float4 ra = __ldcs(r4 + tid);
    float4 rb = __ldcs(r4 + tid + 256);
    float4 a = add4(xa, ra);
    float4 b = add4(xb, rb);

    // Mean and squared deviations of the warp's 256 values.
    float s = ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
    s = warp_sum(s);
    float wm = s * (1.0f / 256.0f);
    float d0 = a.x - wm, d1 = a.y - wm, d2 = a.z - wm, d3 = a.w - wm;
    float d4 = b.x - wm, d5 = b.y - wm, d6 = b.z - wm, d7 = b.w - wm;
    float q = ((d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)) +
              ((d4 * d4 + d5 * d5) + (d6 * d6 + d7 * d7));
    q = warp_sum(q);
    if (lane == 0) {
      part[warp] = make_float2(wm, q);
    }
    __syncthreads();

    // Combine the eight warps, all with the same count.
    float mean = 0.0f;
    float m2 = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      float2 p = part[w];
      mean += p.x;
      m2 += p.y;
    }
    mean *= 0.125f;
    float between = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      float d = part[w].x - mean;
      between += d * d;
    }
    m2 += between * 256.0f;
    float scale = rsqrtf(m2 * (1.0f / 2048.0f) + 1e-5f);

    a.x = (a.x - mean) * scale;
    a.y = (a.y - mean) * scale;
    a.z = (a.z - mean) * scale;
    a.w = (a.w - mean) * scale;
    b.x = (b.x - mean) * scale;
    b.y = (b.y - mean) * scale;
    b.z = (b.z - mean) * scale;
    b.w = (b.w - mean) * scale;
    __stcs(o4 + tid, a);
    __stcs(o4 + tid + 256, b);
    return;
  }

  // Any other row length.
  const float* xr = x + base;
  const float* rr = r + base;
  float* orow = out + base;

  float s = 0.0f;
  for (int j = tid; j < N; j += 256) {
    s += xr[j] + rr[j];
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
  for (int j = tid; j < N; j += 256) {
    float d = (xr[j] + rr[j]) - mean;
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
  float scale = rsqrtf(variance / N + 1e-5f);

  for (int j = tid; j < N; j += 256) {
    orow[j] = ((xr[j] + rr[j]) - mean) * scale;
  }
}
