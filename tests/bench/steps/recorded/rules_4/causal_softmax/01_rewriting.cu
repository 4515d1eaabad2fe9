// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row.

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)
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

__global__ void __launch_bounds__(128, 6)
causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  constexpr int CHUNKS = 12;
  const int lane = threadIdx.x & 31;
  const int index = blockIdx.x * 4 + (threadIdx.x >> 5);
  const int rows = H * T;
  if (index >= rows) return;
  const int row = rows - 1 - index;  // long rows first
  const int i = row % T;
  const float* __restrict__ source = x + (size_t)row * T;
  float* __restrict__ target = out + (size_t)row * T;
  const float lowest = __int_as_float(0xff800000);

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    float4 v[CHUNKS];
    // all loads first
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + lane * 4;
      v[c] = make_float4(lowest, lowest, lowest, lowest);
      if (j <= i) v[c] = __ldg(reinterpret_cast<const float4*>(source + j));
    }
    // zeros of the chunks wholly behind the diagonal
#pragma unroll
    for (int c = 1; c < CHUNKS; ++c) {
      const int j = c * 128 + lane * 4;
      if (c * 128 > i && j < T) {
        __stcs(reinterpret_cast<float4*>(target + j), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }
    float largest = lowest;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        const int j = c * 128 + lane * 4;
        if (j + 1 > i) v[c].y = lowest;
        if (j + 2 > i) v[c].z = lowest;
        if (j + 3 > i) v[c].w = lowest;
        largest = fmaxf(largest, fmaxf(fmaxf(v[c].x, v[c].y), fmaxf(v[c].z, v[c].w)));
      }
    }
    largest = warp_max(largest);
    float total = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        v[c].x = expf(v[c].x - largest);
        v[c].y = expf(v[c].y - largest);
        v[c].z = expf(v[c].z - largest);
        v[c].w = expf(v[c].w - largest);
        total += (v[c].x + v[c].y) + (v[c].z + v[c].w);
      }
    }
    total = warp_sum(total);
    const float scale = 1.0f / total;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + lane * 4;
      if (c * 128 <= i && j < T) {
        float4 r;
        r.x = j <= i ? v[c].x * scale : 0.0f;
        r.y = j + 1 <= i ? v[c].y * scale : 0.0f;
        r.z = j + 2 <= i ? v[c].z * scale : 0.0f;
        r.w = j + 3 <= i ? v[c].w * scale : 0.0f;
        __stcs(reinterpret_cast<float4*>(target + j), r);
      }
    }
  } else {
    float largest = lowest;
    for (int j = lane; j <= i; j += 32) largest = fmaxf(largest, source[j]);
    largest = warp_max(largest);
    float total = 0.0f;
    for (int j = lane; j <= i; j += 32) total += expf(source[j] - largest);
    total = warp_sum(total);
    const float scale = 1.0f / total;
    for (int j = lane; j < T; j += 32) {
      target[j] = j <= i ? expf(source[j] - largest) * scale : 0.0f;
    }
  }
}
