// Bias, gate, mask and residual in one launch, 2048 columns of a row for each block.

//@ launch gated_residual<<<(M, ceil_div(N, 2048)), 256>>>(x, b, mask, r, out, M, N)

__device__ __forceinline__ float gate_one(float x, float b, float m, float r) {
  const float v = x + b;
  const float g = __fdividef(v, 1.0f + expf(-v));
  return g * m * 1.25f + r;
}

__device__ __forceinline__ float4 gate_four(float4 x, float4 b, float4 m, float4 r) {
  float4 o;
  o.x = gate_one(x.x, b.x, m.x, r.x);
  o.y = gate_one(x.y, b.y, m.y, r.y);
  o.z = gate_one(x.z, b.z, m.z, r.z);
  o.w = gate_one(x.w, b.w, m.w, r.w);
  return o;
}

__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                      const float* __restrict__ mask, const float* __restrict__ r,
                                                      float* __restrict__ out, int M, int N) {
  const size_t base = (size_t)blockIdx.x * (size_t)N;
  if ((N & 3) == 0) {
    const int n4 = N >> 2;
    const int j0 = blockIdx.y * 512 + threadIdx.x;
    const int j1 = j0 + 256;
    const float4* x4 = reinterpret_cast<const float4*>(x + base);
    const float4* m4 = reinterpret_cast<const float4*>(mask + base);
    const float4* r4 = reinterpret_cast<const float4*>(r + base);
    const float4* b4 = reinterpret_cast<const float4*>(b);
    float4* o4 = reinterpret_cast<float4*>(out + base);
    if (j1 < n4) {
      const float4 xa = __ldcs(x4 + j0);
      const float4 xb = __ldcs(x4 + j1);
      const float4 ma = __ldcs(m4 + j0);
      const float4 mb = __ldcs(m4 + j1);
      const float4 ra = __ldcs(r4 + j0);
      const float4 rb = __ldcs(r4 + j1);
      const float4 ba = __ldg(b4 + j0);
      const float4 bb = __ldg(b4 + j1);
      __stcs(o4 + j0, gate_four(xa, ba, ma, ra));
      __stcs(o4 + j1, gate_four(xb, bb, mb, rb));
    } else if (j0 < n4) {
      __stcs(o4 + j0, gate_four(__ldcs(x4 + j0), __ldg(b4 + j0), __ldcs(m4 + j0), __ldcs(r4 + j0)));
    }
  } else {
    const int last = min(N, (int)(blockIdx.y + 1) * 2048);
    for (int j = blockIdx.y * 2048 + threadIdx.x; j < last; j += 256) {
      out[base + j] = gate_one(x[base + j], b[j], mask[base + j], r[base + j]);
    }
  }
}
