// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row.

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
  constexpr int CHUNKS = 12;
  constexpr float LOG2E = 1.4426950408889634f;
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= H * T) return;
  const int i = row % T;
  const float* xr = x + (size_t)row * T;
  float* outr = out + (size_t)row * T;
  const float ninf = __int_as_float(0xff800000);

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    float4 v[CHUNKS];
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      const int j = k * 128 + lane * 4;
      v[k] = make_float4(ninf, ninf, ninf, ninf);
      if (j <= i) v[k] = __ldcs(reinterpret_cast<const float4*>(xr + j));
    }
    // zeros of the vectors wholly behind the diagonal, while the loads are under way
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      const int j = k * 128 + lane * 4;
      if (j > i && j < T) {
        __stcs(reinterpret_cast<float4*>(outr + j), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }
    float m0 = ninf, m1 = ninf;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      if (k * 128 <= i) {
        const int j = k * 128 + lane * 4;
        if (j + 1 > i) v[k].y = ninf;
        if (j + 2 > i) v[k].z = ninf;
        if (j + 3 > i) v[k].w = ninf;
        m0 = fmaxf(m0, fmaxf(v[k].x, v[k].y));
        m1 = fmaxf(m1, fmaxf(v[k].z, v[k].w));
      }
    }
    const float largest = warp_max(fmaxf(m0, m1));
    float s0 = 0.0f, s1 = 0.0f;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      if (k * 128 <= i) {
        v[k].x = exp2f((v[k].x - largest) * LOG2E);
        v[k].y = exp2f((v[k].y - largest) * LOG2E);
        v[k].z = exp2f((v[k].z - largest) * LOG2E);
        v[k].w = exp2f((v[k].w - largest) * LOG2E);
        s0 += v[k].x + v[k].y;
        s1 += v[k].z + v[k].w;
      }
    }
    const float total = warp_sum(s0 + s1);
    const float inv = 1.0f / total;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      const int j = k * 128 + lane * 4;
      if (j <= i) {
        float4 r;
        r.x = v[k].x * inv;
        r.y = j + 1 <= i ? v[k].y * inv : 0.0f;
        r.z = j + 2 <= i ? v[k].z * inv : 0.0f;
        r.w = j + 3 <= i ? v[k].w * inv : 0.0f;
        __stcs(reinterpret_cast<float4*>(outr + j), r);
      }
    }
  } else {
    float largest = ninf;
#pragma unroll 4
    for (int j = lane; j <= i; j += 32) largest = fmaxf(largest, xr[j]);
    largest = warp_max(largest);
    float total = 0.0f;
#pragma unroll 4
    for (int j = lane; j <= i; j += 32) total += exp2f((xr[j] - largest) * LOG2E);
    total = warp_sum(total);
    const float inv = 1.0f / total;
#pragma unroll 4
    for (int j = lane; j < T; j += 32) {
      outr[j] = j <= i ? exp2f((xr[j] - largest) * LOG2E) * inv : 0.0f;
    }
  }
}
