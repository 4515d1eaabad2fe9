// Bias, gate, mask, scale and residual in one launch; a thread takes four columns of two rows.

__device__ __forceinline__ float gated_one(float x, float b, float mask, float r) {
  const float v = x + b;
  const float g = __fdividef(v, 1.0f + expf(-v));
  return g * mask * 1.25f + r;
}

__device__ __forceinline__ float4 gated_four(float4 x, float4 b, float4 mask, float4 r) {
  float4 o;
  o.x = gated_one(x.x, b.x, mask.x, r.x);
  o.y = gated_one(x.y, b.y, mask.y, r.y);
  o.z = gated_one(x.z, b.z, mask.z, r.z);
  o.w = gated_one(x.w, b.w, mask.w, r.w);
  return o;
}

//@ launch gated_residual<<<ceil_div(M, 2) * ceil_div(N, 1024), 256>>>(x, b, mask, r, out, M, N)
__global__ void __launch_bounds__(256)
gated_residual(const float* __restrict__ x, const float* __restrict__ b,
               const float* __restrict__ mask, const float* __restrict__ r,
               float* __restrict__ out, int M, int N) {
  const int tiles = (N + 1023) / 1024;
  const int pair = blockIdx.x / tiles;
  const int tile = blockIdx.x - pair * tiles;
  const int row = pair * 2;
  const bool two = row + 1 < M;

  if ((N & 3) == 0) {
    const int col = tile * 1024 + (int)threadIdx.x * 4;
    if (col < N) {
      const size_t i0 = (size_t)row * (size_t)N + col;
      const size_t i1 = i0 + N;
      if (two) {
        const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + i0));
        const float4 x1 = __ldcs(reinterpret_cast<const float4*>(x + i1));
        const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + i0));
        const float4 m1 = __ldcs(reinterpret_cast<const float4*>(mask + i1));
        const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + i0));
        const float4 r1 = __ldcs(reinterpret_cast<const float4*>(r + i1));
        const float4 bb = __ldg(reinterpret_cast<const float4*>(b + col));
        __stcs(reinterpret_cast<float4*>(out + i0), gated_four(x0, bb, m0, r0));
        __stcs(reinterpret_cast<float4*>(out + i1), gated_four(x1, bb, m1, r1));
      } else {
        const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + i0));
        const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + i0));
        const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + i0));
        const float4 bb = __ldg(reinterpret_cast<const float4*>(b + col));
        __stcs(reinterpret_cast<float4*>(out + i0), gated_four(x0, bb, m0, r0));
      }
    }
  } else {
    const int rows = two ? 2 : 1;
    for (int q = 0; q < rows; ++q) {
      const size_t base = (size_t)(row + q) * (size_t)N;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int col = tile * 1024 + k * 256 + (int)threadIdx.x;
        if (col < N) {
          out[base + col] = gated_one(x[base + col], b[col], mask[base + col], r[base + col]);
        }
      }
    }
  }
}
