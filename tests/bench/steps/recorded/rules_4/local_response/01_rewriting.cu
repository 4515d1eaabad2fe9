// Response normalization over five neighbouring channels, four positions and 12 channels for each thread.

//@ launch local_response<<<ceil_div(B * P, 512) * ceil_div(C, 12), 128>>>(x, out, B, C, P)
#include <cstddef>

constexpr int RUN = 12;

__device__ __forceinline__ float factor(float squares) {
  const float t = rsqrtf(2.0f + 0.0001f / 5.0f * squares);
  return t * sqrtf(t);
}

__device__ __forceinline__ float nothing(float) { return 0.0f; }
__device__ __forceinline__ float4 nothing(float4) { return make_float4(0.0f, 0.0f, 0.0f, 0.0f); }

__device__ __forceinline__ float square(float v) { return v * v; }
__device__ __forceinline__ float4 square(float4 v) { return make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w); }

__device__ __forceinline__ float respond(float v, float a, float b, float c, float d, float e) {
  return v * factor(a + b + c + d + e);
}
__device__ __forceinline__ float4 respond(float4 v, float4 a, float4 b, float4 c, float4 d, float4 e) {
  return make_float4(respond(v.x, a.x, b.x, c.x, d.x, e.x), respond(v.y, a.y, b.y, c.y, d.y, e.y),
                     respond(v.z, a.z, b.z, c.z, d.z, e.z), respond(v.w, a.w, b.w, c.w, d.w, e.w));
}

// from and to point at channel c0 of a column; stride is the distance of channels in elements of type V
template <typename V>
__device__ __forceinline__ void run_of(const V* __restrict__ from, V* __restrict__ to, int c0, int C, int stride) {
  V v[RUN + 4];
#pragma unroll
  for (int r = 0; r < RUN + 4; ++r) {
    const int c = c0 + r - 2;
    v[r] = nothing(V());
    if (c >= 0 && c < C) v[r] = __ldg(from + (ptrdiff_t)(r - 2) * stride);
  }
  V q0 = square(v[0]);
  V q1 = square(v[1]);
  V q2 = square(v[2]);
  V q3 = square(v[3]);
#pragma unroll
  for (int r = 0; r < RUN; ++r) {
    const V q4 = square(v[r + 4]);
    if (c0 + r < C) __stcs(to + (ptrdiff_t)r * stride, respond(v[r + 2], q0, q1, q2, q3, q4));
    q0 = q1;
    q1 = q2;
    q2 = q3;
    q3 = q4;
  }
}

__global__ void __launch_bounds__(128)
local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int runs = (C + RUN - 1) / RUN;
  const int c0 = (blockIdx.x % runs) * RUN;
  const int block = blockIdx.x / runs;
  if ((P & 3) == 0) {
    const int P4 = P >> 2;
    const int column = block * 128 + threadIdx.x;
    if (column < B * P4) {
      const int b = column / P4;
      const size_t at = ((size_t)b * C + c0) * P4 + (column - b * P4);
      run_of<float4>(reinterpret_cast<const float4*>(x) + at, reinterpret_cast<float4*>(out) + at, c0, C, P4);
    }
  } else {
#pragma unroll 1
    for (int part = 0; part < 4; ++part) {
      const int column = block * 512 + part * 128 + threadIdx.x;
      if (column < B * P) {
        const int b = column / P;
        const size_t at = ((size_t)b * C + c0) * P + (column - b * P);
        run_of<float>(x + at, out + at, c0, C, P);
      }
    }
  }
}
