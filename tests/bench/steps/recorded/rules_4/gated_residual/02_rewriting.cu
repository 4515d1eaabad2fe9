// Bias, gate, mask and residual in one launch: a thread takes four columns of two rows.

//@ launch gated_residual<<<ceil_div(N, 1024) * ceil_div(M, 2), 256>>>(x, b, mask, r, out, M, N)

__device__ __forceinline__ float one(float x, float b, float mask, float r) {
  const float v = x + b;
  const float g = __fdividef(v, 1.0f + expf(-v));
  return g * mask * 1.25f + r;
}

__device__ __forceinline__ float4 four(float4 x, float4 b, float4 mask, float4 r) {
  float4 o;
  o.x = one(x.x, b.x, mask.x, r.x);
  o.y = one(x.y, b.y, mask.y, r.y);
  o.z = one(x.z, b.z, mask.z, r.z);
  o.w = one(x.w, b.w, mask.w, r.w);
  return o;
}

__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                      const float* __restrict__ mask, const float* __restrict__ r,
                                                      float* __restrict__ out, int M, int N) {
  const int strips = (N + 1023) >> 10;
  const int pair = blockIdx.x / strips;
  const int strip = blockIdx.x - pair * strips;
  const int row = pair * 2;
  if ((N & 3) == 0) {
    const int c = strip * 1024 + threadIdx.x * 4;
    if (c >= N) return;
    const long long i = (long long)row * N + c;
    if (row + 1 < M) {
      const long long k = i + N;
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + i));
      const float4 x1 = __ldcs(reinterpret_cast<const float4*>(x + k));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + i));
      const float4 m1 = __ldcs(reinterpret_cast<const float4*>(mask + k));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + i));
      const float4 r1 = __ldcs(reinterpret_cast<const float4*>(r + k));
      const float4 bias = __ldg(reinterpret_cast<const float4*>(b + c));
      __stcs(reinterpret_cast<float4*>(out + i), four(x0, bias, m0, r0));
      __stcs(reinterpret_cast<float4*>(out + k), four(x1, bias, m1, r1));
    } else {
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + i));
      const float4 m0 = __ldcs(reinterpret_cast<const float4*>(mask + i));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + i));
      const float4 bias = __ldg(reinterpret_cast<const float4*>(b + c));
      __stcs(reinterpret_cast<float4*>(out + i), four(x0, bias, m0, r0));
    }
  } else {
    const int rows = min(2, M - row);
    const int end = min(N, strip * 1024 + 1024);
    for (int q = 0; q < rows; ++q) {
      const long long base = (long long)(row + q) * N;
      for (int c = strip * 1024 + threadIdx.x; c < end; c += 256) {
        out[base + c] = one(x[base + c], b[c], mask[base + c], r[base + c]);
      }
    }
  }
}
