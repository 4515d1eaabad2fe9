// Bias, gate, mask and residual in one launch, two float4 for each thread.

//@ launch gated_residual<<<ceil_div(M * N, 2048), 256>>>(x, b, mask, r, out, M * N, N)
__device__ __forceinline__ float one(float x, float b, float mask, float r) {
  const float biased = x + b;
  const float gated = biased / (1.0f + expf(-biased));
  return gated * mask * 1.25f + r;
}

__device__ __forceinline__ float4 four(float4 x, float4 b, float4 mask, float4 r) {
  return make_float4(one(x.x, b.x, mask.x, r.x), one(x.y, b.y, mask.y, r.y), one(x.z, b.z, mask.z, r.z),
                     one(x.w, b.w, mask.w, r.w));
}

__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                      const float* __restrict__ mask, const float* __restrict__ r,
                                                      float* __restrict__ out, int n, int N) {
  const unsigned t = threadIdx.x;
  if ((N & 3) == 0) {
    const unsigned n4 = (unsigned)n >> 2;
    const unsigned N4 = (unsigned)N >> 2;
    const unsigned i0 = blockIdx.x * 512u + t;
    const unsigned i1 = i0 + 256u;
    const float4* xv = reinterpret_cast<const float4*>(x);
    const float4* mv = reinterpret_cast<const float4*>(mask);
    const float4* rv = reinterpret_cast<const float4*>(r);
    const float4* bv = reinterpret_cast<const float4*>(b);
    float4* ov = reinterpret_cast<float4*>(out);
    if (i1 < n4) {
      const float4 x0 = __ldcs(xv + i0);
      const float4 x1 = __ldcs(xv + i1);
      const float4 m0 = __ldcs(mv + i0);
      const float4 m1 = __ldcs(mv + i1);
      const float4 r0 = __ldcs(rv + i0);
      const float4 r1 = __ldcs(rv + i1);
      unsigned j0, j1;
      if (N4 == 512u) {
        j0 = i0 & 511u;
        j1 = i1 & 511u;
      } else {
        j0 = i0 % N4;
        j1 = i1 % N4;
      }
      const float4 b0 = __ldg(bv + j0);
      const float4 b1 = __ldg(bv + j1);
      __stcs(ov + i0, four(x0, b0, m0, r0));
      __stcs(ov + i1, four(x1, b1, m1, r1));
    } else if (i0 < n4) {
      __stcs(ov + i0, four(__ldcs(xv + i0), __ldg(bv + i0 % N4), __ldcs(mv + i0), __ldcs(rv + i0)));
    }
  } else {
    const unsigned first = blockIdx.x * 2048u + t;
#pragma unroll
    for (unsigned k = 0; k < 8u; ++k) {
      const unsigned i = first + k * 256u;
      if (i < (unsigned)n) out[i] = one(x[i], b[i % (unsigned)N], mask[i], r[i]);
    }
  }
}
