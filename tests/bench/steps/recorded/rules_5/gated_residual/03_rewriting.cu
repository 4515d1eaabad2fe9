// One launch: bias, gate, mask and residual in registers; a thread has four columns of two rows.

//@ launch gated_residual<<<ceil_div(N, 1024) * ceil_div(M, 2), 256>>>(x, b, mask, r, out, M, N)
__device__ __forceinline__ float gated(float x, float b, float mask, float r) {
  const float v = x + b;
  const float g = v / (1.0f + expf(-v));
  return g * mask * 1.25f + r;
}

__device__ __forceinline__ float4 gated4(const float4& x, const float4& b, const float4& mask, const float4& r) {
  float4 o;
  o.x = gated(x.x, b.x, mask.x, r.x);
  o.y = gated(x.y, b.y, mask.y, r.y);
  o.z = gated(x.z, b.z, mask.z, r.z);
  o.w = gated(x.w, b.w, mask.w, r.w);
  return o;
}

__global__ void __launch_bounds__(256, 5) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                         const float* __restrict__ mask, const float* __restrict__ r,
                                                         float* __restrict__ out, int M, int N) {
  const unsigned tiles = ((unsigned)N + 1023u) / 1024u;
  const unsigned row_pair = blockIdx.x / tiles;
  const unsigned tile = blockIdx.x - row_pair * tiles;
  const int row = (int)row_pair * 2;
  if ((N & 3) == 0) {
    const int column = (int)tile * 1024 + (int)threadIdx.x * 4;
    if (column >= N) return;
    const size_t i = (size_t)row * (size_t)N + column;
    const size_t k = i + N;
    const float4 bias = __ldg(reinterpret_cast<const float4*>(b + column));
    if (row + 1 < M) {
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + i));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + i));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + i));
      const float4 x1 = __ldcs(reinterpret_cast<const float4*>(x + k));
      const float4 m1 = __ldcs(reinterpret_cast<const float4*>(mask + k));
      const float4 r1 = __ldcs(reinterpret_cast<const float4*>(r + k));
      __stcs(reinterpret_cast<float4*>(out + i), gated4(x0, bias, m0, r0));
      __stcs(reinterpret_cast<float4*>(out + k), gated4(x1, bias, m1, r1));
    } else {
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + i));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + i));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + i));
      __stcs(reinterpret_cast<float4*>(out + i), gated4(x0, bias, m0, r0));
    }
  } else {
    for (int c = 0; c < 4; ++c) {
      const int column = (int)tile * 1024 + c * 256 + (int)threadIdx.x;
      if (column < N) {
        const float bias = b[column];
        const size_t i = (size_t)row * (size_t)N + column;
        out[i] = gated(x[i], bias, mask[i], r[i]);
        if (row + 1 < M) {
          const size_t k = i + N;
          out[k] = gated(x[k], bias, mask[k], r[k]);
        }
      }
    }
  }
}
