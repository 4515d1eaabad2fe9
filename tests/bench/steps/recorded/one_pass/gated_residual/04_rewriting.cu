// One launch for all operations, eight elements for each thread.

#include <cstddef>

#define THREADS 256
#define PER_BLOCK 2048

//@ launch gated_residual<<<ceil_div(M * N, 2048), 256>>>(x, b, mask, r, out, M * N, N)

__device__ __forceinline__ float gated(float x, float b, float mask, float r) {
  const float v = x + b;
  const float g = v / (1.0f + expf(-v));
  return g * mask * 1.25f + r;
}

__device__ __forceinline__ float4 gated4(float4 x, float4 b, float4 mask, float4 r) {
  float4 o;
  o.x = gated(x.x, b.x, mask.x, r.x);
  o.y = gated(x.y, b.y, mask.y, r.y);
  o.z = gated(x.z, b.z, mask.z, r.z);
  o.w = gated(x.w, b.w, mask.w, r.w);
  return o;
}

__global__ void __launch_bounds__(THREADS) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                          const float* __restrict__ mask, const float* __restrict__ r,
                                                          float* __restrict__ out, int n, int N) {
  const unsigned t = threadIdx.x;
  const unsigned start = blockIdx.x * (unsigned)PER_BLOCK;
  const unsigned count = (unsigned)n;
  const unsigned width = (unsigned)N;

  if ((width & 3u) == 0u && start + PER_BLOCK <= count) {
    const unsigned v0 = (start >> 2) + t;
    const unsigned v1 = v0 + THREADS;
    const unsigned vectors = width >> 2;
    const float4* x4 = reinterpret_cast<const float4*>(x);
    const float4* m4 = reinterpret_cast<const float4*>(mask);
    const float4* r4 = reinterpret_cast<const float4*>(r);
    const float4* b4 = reinterpret_cast<const float4*>(b);
    float4* o4 = reinterpret_cast<float4*>(out);
    const float4 x0 = __ldcs(x4 + v0);
    const float4 x1 = __ldcs(x4 + v1);
    const float4 m0 = __ldcs(m4 + v0);
    const float4 m1 = __ldcs(m4 + v1);
    const float4 r0 = __ldcs(r4 + v0);
    const float4 r1 = __ldcs(r4 + v1);
    const float4 b0 = __ldg(b4 + v0 % vectors);
    const float4 b1 = __ldg(b4 + v1 % vectors);
    __stcs(o4 + v0, gated4(x0, b0, m0, r0));
    __stcs(o4 + v1, gated4(x1, b1, m1, r1));
  } else {
    #pragma unroll 2
    for (unsigned k = 0; k < PER_BLOCK / THREADS; ++k) {
      const unsigned i = start + k * THREADS + t;
      if (i < count) {
        out[i] = gated(x[i], b[i % width], mask[i], r[i]);
      }
    }
  }
}
