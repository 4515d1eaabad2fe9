// Bias, gate, mask, scale and residual in one launch, eight elements for each thread.

//@ launch gated_residual<<<(M, ceil_div(N, 2048), 1), 256>>>(x, b, mask, r, out, N)

__device__ __forceinline__ float gated(float x, float b, float mask, float r) {
  float v = x + b;
  float g = __fdividef(v, 1.0f + expf(-v));
  return g * mask * 1.25f + r;
}

__device__ __forceinline__ float4 gated4(float4 x, float4 b, float4 mask, float4 r) {
  return make_float4(gated(x.x, b.x, mask.x, r.x), gated(x.y, b.y, mask.y, r.y),
                     gated(x.z, b.z, mask.z, r.z), gated(x.w, b.w, mask.w, r.w));
}

__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x,
                                                      const float* __restrict__ b,
                                                      const float* __restrict__ mask,
                                                      const float* __restrict__ r,
                                                      float* __restrict__ out, int N) {
  const int tid = threadIdx.x;
  const int first = blockIdx.y * 2048;
  const size_t base = (size_t)blockIdx.x * (size_t)N + (size_t)first;
  const int left = N - first;

  if ((N & 3) == 0) {
    const float4* x4 = reinterpret_cast<const float4*>(x + base) + tid;
    const float4* m4 = reinterpret_cast<const float4*>(mask + base) + tid;
    const float4* r4 = reinterpret_cast<const float4*>(r + base) + tid;
    const float4* b4 = reinterpret_cast<const float4*>(b + first) + tid;
    float4* o4 = reinterpret_cast<float4*>(out + base) + tid;
    if (left >= 2048) {
      float4 xa = __ldcs(x4);
      float4 xb = __ldcs(x4 + 256);
      float4 ma = __ldcs(m4);
      float4 mb = __ldcs(m4 + 256);
      float4 ra = __ldcs(r4);
      float4 rb = __ldcs(r4 + 256);
      float4 ba = __ldg(b4);
      float4 bb = __ldg(b4 + 256);
      __stcs(o4, gated4(xa, ba, ma, ra));
      __stcs(o4 + 256, gated4(xb, bb, mb, rb));
    } else {
      const int count = left >> 2;
      if (tid < count) {
        __stcs(o4, gated4(__ldcs(x4), __ldg(b4), __ldcs(m4), __ldcs(r4)));
      }
      if (tid + 256 < count) {
        __stcs(o4 + 256, gated4(__ldcs(x4 + 256), __ldg(b4 + 256), __ldcs(m4 + 256), __ldcs(r4 + 256)));
      }
    }
  } else {
    const int count = min(left, 2048);
    for (int j = tid; j < count; j += 256) {
      out[base + j] = gated(x[base + j], b[first + j], mask[base + j], r[base + j]);
    }
  }
}
