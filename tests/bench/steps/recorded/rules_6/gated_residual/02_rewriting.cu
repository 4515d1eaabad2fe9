// One launch; a thread owns four columns, keeps their bias in registers and takes two rows at a time.

//@ launch gated_residual<<<(ceil_div(N, 1024), min(ceil_div(M, 2), 65535)), 256>>>(x, b, mask, r, out, M, N)

__device__ __forceinline__ float one(float x, float b, float mask, float r) {
  const float biased = x + b;
  const float gated = biased / (1.0f + expf(-biased));
  const float masked = __fmul_rn(__fmul_rn(gated, mask), 1.25f);
  return __fadd_rn(masked, r);
}

__device__ __forceinline__ float4 four(const float4& x, const float4& b, const float4& mask, const float4& r) {
  float4 o;
  o.x = one(x.x, b.x, mask.x, r.x);
  o.y = one(x.y, b.y, mask.y, r.y);
  o.z = one(x.z, b.z, mask.z, r.z);
  o.w = one(x.w, b.w, mask.w, r.w);
  return o;
}

__global__ void __launch_bounds__(256, 5) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                         const float* __restrict__ mask, const float* __restrict__ r,
                                                         float* __restrict__ out, int M, int N) {
  if ((N & 3) == 0) {
    const int columns = N >> 2;
    const int c = blockIdx.x * 256 + threadIdx.x;
    if (c >= columns) return;
    const float4* __restrict__ x4 = reinterpret_cast<const float4*>(x);
    const float4* __restrict__ mask4 = reinterpret_cast<const float4*>(mask);
    const float4* __restrict__ r4 = reinterpret_cast<const float4*>(r);
    float4* __restrict__ out4 = reinterpret_cast<float4*>(out);
    const float4 bias = __ldg(reinterpret_cast<const float4*>(b) + c);
    for (long long row = 2LL * blockIdx.y; row < M; row += 2LL * gridDim.y) {
      const long long p = row * columns + c;
      if (row + 1 < M) {
        const long long q = p + columns;
        const float4 xp = __ldcs(x4 + p);
        const float4 xq = __ldcs(x4 + q);
        const float4 mp = __ldcs(mask4 + p);
        const float4 mq = __ldcs(mask4 + q);
        const float4 rp = __ldcs(r4 + p);
        const float4 rq = __ldcs(r4 + q);
        __stcs(out4 + p, four(xp, bias, mp, rp));
        __stcs(out4 + q, four(xq, bias, mq, rq));
      } else {
        const float4 xp = __ldcs(x4 + p);
        const float4 mp = __ldcs(mask4 + p);
        const float4 rp = __ldcs(r4 + p);
        __stcs(out4 + p, four(xp, bias, mp, rp));
      }
    }
  } else {
    for (long long row = 2LL * blockIdx.y; row < M; row += 2LL * gridDim.y) {
#pragma unroll 1
      for (int d = 0; d < 2; ++d) {
        if (row + d >= M) break;
        const long long base = (row + d) * N;
#pragma unroll 1
        for (int k = 0; k < 4; ++k) {
          const long long c = (long long)blockIdx.x * 1024 + k * 256 + threadIdx.x;
          if (c >= N) break;
          const long long p = base + c;
          out[p] = one(x[p], b[c], mask[p], r[p]);
        }
      }
    }
  }
}
