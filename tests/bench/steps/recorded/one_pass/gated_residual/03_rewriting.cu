// One launch for all operations: a block for each 2048 elements of a row, eight elements for each thread.

//@ launch gated_residual<<<(M, ceil_div(N, 2048), 1), 256>>>(x, b, mask, r, out, M, N)

__device__ __forceinline__ float gated_residual_one(float x, float b, float mask, float r) {
  float v = x + b;
  float g = v / (1.0f + expf(-v));
  return g * mask * 1.25f + r;
}

__device__ __forceinline__ float4 gated_residual_four(float4 x, float4 b, float4 mask, float4 r) {
  float4 o;
  o.x = gated_residual_one(x.x, b.x, mask.x, r.x);
  o.y = gated_residual_one(x.y, b.y, mask.y, r.y);
  o.z = gated_residual_one(x.z, b.z, mask.z, r.z);
  o.w = gated_residual_one(x.w, b.w, mask.w, r.w);
  return o;
}

__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                      const float* __restrict__ mask, const float* __restrict__ r,
                                                      float* __restrict__ out, int M, int N) {
  const size_t base = (size_t)blockIdx.x * (size_t)N;
  const int first = blockIdx.y * 2048;
  if ((N & 3) == 0) {
    const int c0 = first + threadIdx.x * 4;
    const int c1 = c0 + 1024;
    if (c1 < N) {
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + base + c0));
      const float4 x1 = __ldcs(reinterpret_cast<const float4*>(x + base + c1));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + base + c0));
      const float4 m1 = __ldcs(reinterpret_cast<const float4*>(mask + base + c1));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + base + c0));
      const float4 r1 = __ldcs(reinterpret_cast<const float4*>(r + base + c1));
      const float4 b0 = __ldg(reinterpret_cast<const float4*>(b + c0));
      const float4 b1 = __ldg(reinterpret_cast<const float4*>(b + c1));
      __stcs(reinterpret_cast<float4*>(out + base + c0), gated_residual_four(x0, b0, m0, r0));
      __stcs(reinterpret_cast<float4*>(out + base + c1), gated_residual_four(x1, b1, m1, r1));
    } else if (c0 < N) {
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + base + c0));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + base + c0));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + base + c0));
      const float4 b0 = __ldg(reinterpret_cast<const float4*>(b + c0));
      __stcs(reinterpret_cast<float4*>(out + base + c0), gated_residual_four(x0, b0, m0, r0));
    }
  } else {
    const int last = min(first + 2048, N);
    for (int j = first + threadIdx.x; j < last; j += 256) {
      out[base + j] = gated_residual_one(x[base + j], b[j], mask[base + j], r[base + j]);
    }
  }
}
