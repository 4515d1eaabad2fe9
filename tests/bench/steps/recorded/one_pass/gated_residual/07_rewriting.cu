// Bias, gate, mask and residual in one launch, eight elements for each thread.

//@ launch gated_residual<<<ceil_div(M * N, 2048), 256>>>(x, b, mask, r, out, M * N, N)
__device__ __forceinline__ float element(float x, float b, float mask, float r) {
  const float biased = x + b;
  const float gated = biased / (1.0f + exp2f(biased * -1.4426950408889634f));
  return gated * mask * 1.25f + r;
}

__device__ __forceinline__ float4 element4(float4 x, float4 b, float4 mask, float4 r) {
  return make_float4(element(x.x, b.x, mask.x, r.x), element(x.y, b.y, mask.y, r.y), element(x.z, b.z, mask.z, r.z),
                     element(x.w, b.w, mask.w, r.w));
}

__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                      const float* __restrict__ mask, const float* __restrict__ r,
                                                      float* __restrict__ out, int n, int N) {
  const unsigned base = blockIdx.x * 2048u;
  const unsigned un = (unsigned)n;
  const unsigned uN = (unsigned)N;
  if ((uN & 3u) == 0u) {
    const unsigned i0 = base + threadIdx.x * 4u;
    const unsigned i1 = i0 + 1024u;
    if (i1 < un) {
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + i0));
      const float4 x1 = __ldcs(reinterpret_cast<const float4*>(x + i1));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + i0));
      const float4 m1 = __ldcs(reinterpret_cast<const float4*>(mask + i1));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + i0));
      const float4 r1 = __ldcs(reinterpret_cast<const float4*>(r + i1));
      const float4 b0 = __ldg(reinterpret_cast<const float4*>(b + i0 % uN));
      const float4 b1 = __ldg(reinterpret_cast<const float4*>(b + i1 % uN));
      __stcs(reinterpret_cast<float4*>(out + i0), element4(x0, b0, m0, r0));
      __stcs(reinterpret_cast<float4*>(out + i1), element4(x1, b1, m1, r1));
    } else if (i0 < un) {
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + i0));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + i0));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + i0));
      const float4 b0 = __ldg(reinterpret_cast<const float4*>(b + i0 % uN));
      __stcs(reinterpret_cast<float4*>(out + i0), element4(x0, b0, m0, r0));
    }
  } else {
#pragma unroll
    for (unsigned k = 0; k < 8u; ++k) {
      const unsigned i = base + threadIdx.x + k * 256u;
      if (i < un) {
        out[i] = element(x[i], b[i % uN], mask[i], r[i]);
      }
    }
  }
}
