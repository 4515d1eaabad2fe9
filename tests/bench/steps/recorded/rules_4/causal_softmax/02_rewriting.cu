// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row, the row in registers.

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)

#define CHUNKS 12

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__global__ void __launch_bounds__(128, 6)
causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  const int lane = threadIdx.x & 31;
  const int g = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (g >= H * T) return;
  const int head = g / T;
  const int r = g - head * T;
  // short and long rows in turn
  const int i = (r & 1) ? T - 1 - (r >> 1) : (r >> 1);
  const long long base = ((long long)head * T + i) * T;
  const float* __restrict__ src = x + base;
  float* __restrict__ dst = out + base;
  const float NEG = __int_as_float(0xff800000);

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    const int last = i >> 7;  // the chunk that holds the diagonal
    const int col0 = lane * 4;
    float4 v[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = c * 128 + col0;
      v[c] = make_float4(NEG, NEG, NEG, NEG);
      if (col <= i) v[c] = __ldg(reinterpret_cast<const float4*>(src + col));
    }
    // zeros behind the diagonal's chunk, while the loads are on their way
    for (int col = (last + 1) * 128 + col0; col < T; col += 128) {
      __stcs(reinterpret_cast<float4*>(dst + col), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    }

    float m = NEG;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c <= last) {
        if (c == last) {
          const int col = c * 128 + col0;
          if (col + 1 > i) v[c].y = NEG;
          if (col + 2 > i) v[c].z = NEG;
          if (col + 3 > i) v[c].w = NEG;
        }
        m = fmaxf(m, fmaxf(fmaxf(v[c].x, v[c].y), fmaxf(v[c].z, v[c].w)));
      }
    }
    m = warp_max(m);

    float s = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c <= last) {
        v[c].x = expf(v[c].x - m);
        v[c].y = expf(v[c].y - m);
        v[c].z = expf(v[c].z - m);
        v[c].w = expf(v[c].w - m);
        s += (v[c].x + v[c].y) + (v[c].z + v[c].w);
      }
    }
    s = warp_sum(s);
    const float inv = 1.0f / s;

#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c <= last) {
        const int col = c * 128 + col0;
        float4 o;
        o.x = v[c].x * inv;
        o.y = v[c].y * inv;
        o.z = v[c].z * inv;
        o.w = v[c].w * inv;
        if (c == last) {
          if (col > i) o.x = 0.0f;
          if (col + 1 > i) o.y = 0.0f;
          if (col + 2 > i) o.z = 0.0f;
          if (col + 3 > i) o.w = 0.0f;
        }
        if (col < T) __stcs(reinterpret_cast<float4*>(dst + col), o);
      }
    }
  } else {
    float m = NEG;
    for (int j = lane; j <= i; j += 32) m = fmaxf(m, src[j]);
    m = warp_max(m);
    float s = 0.0f;
    for (int j = lane; j <= i; j += 32) s += expf(src[j] - m);
    s = warp_sum(s);
    const float inv = 1.0f / s;
    for (int j = lane; j < T; j += 32) {
      dst[j] = j <= i ? expf(src[j] - m) * inv : 0.0f;
    }
  }
}
