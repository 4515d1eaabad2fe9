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
__global__ void __launch_bounds__(128, 6) causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  constexpr int CH = 12;
  constexpr float LOG2E = 1.4426950408889634f;
  const int lane = threadIdx.x & 31;
  const int index = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (index >= H * T) return;
  const int row = H * T - 1 - index;
  const int i = row % T;
  const float* xr = x + (size_t)row * T;
  float* orow = out + (size_t)row * T;
  const float NEG = __int_as_float(0xff800000);

  if ((T & 3) == 0 && T <= CH * 128) {
    float4 v[CH];
    const int j0 = lane * 4;
    // all loads of the row at once
#pragma unroll
    for (int k = 0; k < CH; ++k) {
      const int j = k * 128 + j0;
      v[k] = make_float4(NEG, NEG, NEG, NEG);
      if (j <= i) v[k] = __ldcs(reinterpret_cast<const float4*>(xr + j));
    }
    // zeros behind the diagonal need no data
#pragma unroll
    for (int k = 0; k < CH; ++k) {
      const int j = k * 128 + j0;
      if (j > i && j < T) __stcs(reinterpret_cast<float4*>(orow + j), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    }
    float largest = NEG;
#pragma unroll
    for (int k = 0; k < CH; ++k) {
      if (k * 128 <= i) {
        const int j = k * 128 + j0;
        if (j + 1 > i) v[k].y = NEG;
        if (j + 2 > i) v[k].z = NEG;
        if (j + 3 > i) v[k].w = NEG;
        largest = fmaxf(largest, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
      }
    }
    largest = warp_max(largest);
    float t0 = 0.0f, t1 = 0.0f, t2 = 0.0f, t3 = 0.0f;
#pragma unroll
    for (int k = 0; k < CH; ++k) {
      if (k * 128 <= i) {
        v[k].x = exp2f((v[k].x - largest) * LOG2E);
        v[k].y = exp2f((v[k].y - largest) * LOG2E);
        v[k].z = exp2f((v[k].z - largest) * LOG2E);
        v[k].w = exp2f((v[k].w - largest) * LOG2E);
        t0 += v[k].x;
        t1 += v[k].y;
        t2 += v[k].z;
        t3 += v[k].w;
      }
    }
    const float total = warp_sum((t0 + t1) + (t2 + t3));
    const float inv = 1.0f / total;
#pragma unroll
    for (int k = 0; k < CH; ++k) {
      const int j = k * 128 + j0;
      if (j <= i) {
        float4 r;
        r.x = v[k].x * inv;
        r.y = j + 1 <= i ? v[k].y * inv : 0.0f;
        r.z = j + 2 <= i ? v[k].z * inv : 0.0f;
        r.w = j + 3 <= i ? v[k].w * inv : 0.0f;
        __stcs(reinterpret_cast<float4*>(orow + j), r);
      }
    }
  } else {
    float largest = NEG;
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
      orow[j] = j <= i ? exp2f((xr[j] - largest) * LOG2E) * inv : 0.0f;
    }
  }
}
