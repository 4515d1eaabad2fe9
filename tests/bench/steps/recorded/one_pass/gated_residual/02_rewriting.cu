// Bias, gate, mask and residual in one launch: a thread takes four neighbouring columns of two rows.

//@ launch gated_residual<<<ceil_div(M, 2) * ceil_div(N, 1024), 256>>>(x, b, mask, r, out, M, N)
__device__ __forceinline__ float gr_one(float x, float b, float mask, float r) {
  float biased = x + b;
  float gated = biased / (1.0f + expf(-biased));
  return gated * mask * 1.25f + r;
}

__device__ __forceinline__ float4 gr_four(float4 x, float4 b, float4 mask, float4 r) {
  return make_float4(gr_one(x.x, b.x, mask.x, r.x), gr_one(x.y, b.y, mask.y, r.y),
                     gr_one(x.z, b.z, mask.z, r.z), gr_one(x.w, b.w, mask.w, r.w));
}

__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                      const float* __restrict__ mask, const float* __restrict__ r,
                                                      float* __restrict__ out, int M, int N) {
  const unsigned strips = ((unsigned)N + 1023u) / 1024u;
  const unsigned pair = blockIdx.x / strips;
  const unsigned strip = blockIdx.x - pair * strips;
  const int row = (int)(pair * 2u);
  const bool two = row + 1 < M;

  if ((N & 3) == 0) {
    const int j = (int)(strip * 1024u) + (int)threadIdx.x * 4;
    if (j < N) {
      const size_t p = (size_t)row * (size_t)N + j;
      const size_t q = two ? p + (size_t)N : p;
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + p));
      const float4 x1 = __ldcs(reinterpret_cast<const float4*>(x + q));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + p));
      const float4 m1 = __ldcs(reinterpret_cast<const float4*>(mask + q));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + p));
      const float4 r1 = __ldcs(reinterpret_cast<const float4*>(r + q));
      const float4 bias = __ldg(reinterpret_cast<const float4*>(b + j));
      __stcs(reinterpret_cast<float4*>(out + p), gr_four(x0, bias, m0, r0));
      if (two) {
        __stcs(reinterpret_cast<float4*>(out + q), gr_four(x1, bias, m1, r1));
      }
    }
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int j = (int)(strip * 1024u) + k * 256 + (int)threadIdx.x;
      if (j < N) {
        const size_t p = (size_t)row * (size_t)N + j;
        const float bias = __ldg(b + j);
        out[p] = gr_one(x[p], bias, mask[p], r[p]);
        if (two) {
          const size_t q = p + (size_t)N;
          out[q] = gr_one(x[q], bias, mask[q], r[q]);
        }
      }
    }
  }
}
