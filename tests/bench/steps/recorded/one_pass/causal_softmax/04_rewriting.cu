// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row.

__device__ __forceinline__ float warp_largest(float v) {
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, s));
  }
  return v;
}

__device__ __forceinline__ float warp_total(float v) {
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, s);
  }
  return v;
}

template <int CHUNKS>
__device__ __forceinline__ void row_in_registers(const float* __restrict__ xr, float* __restrict__ outr, int i, int lane) {
  const float low = __int_as_float(0xff800000);
  const float4* x4 = reinterpret_cast<const float4*>(xr) + lane;
  float4* o4 = reinterpret_cast<float4*>(outr) + lane;
  const int col0 = lane * 4;
  float4 v[CHUNKS];
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    v[c] = make_float4(low, low, low, low);
    if (c * 128 + col0 <= i) {
      v[c] = __ldg(x4 + c * 32);
    }
  }
  // chunks wholly behind the diagonal do not wait for the loads
#pragma unroll
  for (int c = 1; c < CHUNKS; ++c) {
    if (c * 128 > i) {
      __stcs(o4 + c * 32, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    }
  }
  float m0 = low, m1 = low, m2 = low, m3 = low;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    const int col = c * 128 + col0;
    if (c * 128 <= i) {
      if (col + 1 > i) v[c].y = low;
      if (col + 2 > i) v[c].z = low;
      if (col + 3 > i) v[c].w = low;
      m0 = fmaxf(m0, v[c].x);
      m1 = fmaxf(m1, v[c].y);
      m2 = fmaxf(m2, v[c].z);
      m3 = fmaxf(m3, v[c].w);
    }
  }
  const float largest = warp_largest(fmaxf(fmaxf(m0, m1), fmaxf(m2, m3)));
  float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    if (c * 128 <= i) {
      const int col = c * 128 + col0;
      v[c].x = expf(v[c].x - largest);
      v[c].y = expf(v[c].y - largest);
      v[c].z = expf(v[c].z - largest);
      v[c].w = expf(v[c].w - largest);
      s0 += col <= i ? v[c].x : 0.0f;
      s1 += col + 1 <= i ? v[c].y : 0.0f;
      s2 += col + 2 <= i ? v[c].z : 0.0f;
      s3 += col + 3 <= i ? v[c].w : 0.0f;
    }
  }
  const float inverse = 1.0f / warp_total((s0 + s1) + (s2 + s3));
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    if (c * 128 <= i) {
      const int col = c * 128 + col0;
      float4 r;
      r.x = col <= i ? v[c].x * inverse : 0.0f;
      r.y = col + 1 <= i ? v[c].y * inverse : 0.0f;
      r.z = col + 2 <= i ? v[c].z * inverse : 0.0f;
      r.w = col + 3 <= i ? v[c].w * inverse : 0.0f;
      __stcs(o4 + c * 32, r);
    }
  }
}

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)
__global__ void __launch_bounds__(128, 6) causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  const int lane = threadIdx.x & 31;
  int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= H * T) {
    return;
  }
  row = H * T - 1 - row;  // long rows first
  const int i = row % T;
  const float* xr = x + (size_t)row * T;
  float* outr = out + (size_t)row * T;
  if (T == 1536) {
    row_in_registers<12>(xr, outr, i, lane);
    return;
  }
  float largest = __int_as_float(0xff800000);
  for (int j = lane; j <= i; j += 32) {
    largest = fmaxf(largest, xr[j]);
  }
  largest = warp_largest(largest);
  float total = 0.0f;
  for (int j = lane; j <= i; j += 32) {
    total += expf(xr[j] - largest);
  }
  total = warp_total(total);
  for (int j = lane; j < T; j += 32) {
    outr[j] = j <= i ? expf(xr[j] - largest) / total : 0.0f;
  }
}
