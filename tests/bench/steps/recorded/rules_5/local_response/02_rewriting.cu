#include <cstddef>
// Response normalization over five neighbouring channels; a warp holds 12 channels and their
// neighbours of 128 positions in registers.

//@ launch local_response<<<(ceil_div(B * P, 128), ceil_div(C, 96)), 256>>>(x, out, B, C, P)
__device__ __forceinline__ float respond(float a, float b, float c, float d, float e) {
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(c, c, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  const float base = fmaf(0.0001f / 5.0f, squares, 2.0f);
  const float r = rsqrtf(base);  // base^-1/2
  float h;                       // base^-1/4
  asm("sqrt.approx.f32 %0, %1;" : "=f"(h) : "f"(r));
  return c * (r * h);
}

__global__ void __launch_bounds__(256, 3) local_response(const float* __restrict__ x, float* __restrict__ out, int B,
                                                         int C, int P) {
  constexpr int CH = 12;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int c0 = blockIdx.y * 96 + warp * CH;
  if (c0 >= C) return;

  if ((P & 3) == 0) {
    const int P4 = P >> 2;
    const int index = blockIdx.x * 32 + lane;
    if (index >= B * P4) return;
    const int b = index / P4;
    const int p = index - b * P4;
    const size_t start = ((size_t)b * C + c0) * P4 + p;
    const float4* __restrict__ from = reinterpret_cast<const float4*>(x) + start;
    float4* __restrict__ to = reinterpret_cast<float4*>(out) + start;

    float4 v[CH + 4];
#pragma unroll
    for (int n = 0; n < CH + 4; ++n) {
      const int c = c0 + n - 2;
      v[n] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) v[n] = __ldg(from + (ptrdiff_t)(n - 2) * P4);
    }
#pragma unroll
    for (int n = 0; n < CH; ++n) {
      if (c0 + n < C) {
        float4 r;
        r.x = respond(v[n].x, v[n + 1].x, v[n + 2].x, v[n + 3].x, v[n + 4].x);
        r.y = respond(v[n].y, v[n + 1].y, v[n + 2].y, v[n + 3].y, v[n + 4].y);
        r.z = respond(v[n].z, v[n + 1].z, v[n + 2].z, v[n + 3].z, v[n + 4].z);
        r.w = respond(v[n].w, v[n + 1].w, v[n + 2].w, v[n + 3].w, v[n + 4].w);
        __stcs(to + (size_t)n * P4, r);
      }
    }
  } else {
    for (int s = 0; s < 4; ++s) {
      const int index = blockIdx.x * 128 + s * 32 + lane;
      if (index >= B * P) return;
      const int b = index / P;
      const int p = index - b * P;
      const size_t image = (size_t)b * C * P + p;
      float w0 = c0 >= 2 ? x[image + (size_t)(c0 - 2) * P] : 0.0f;
      float w1 = c0 >= 1 ? x[image + (size_t)(c0 - 1) * P] : 0.0f;
      float w2 = x[image + (size_t)c0 * P];
      float w3 = c0 + 1 < C ? x[image + (size_t)(c0 + 1) * P] : 0.0f;
      const int end = min(C, c0 + CH);
      for (int c = c0; c < end; ++c) {
        const float w4 = c + 2 < C ? x[image + (size_t)(c + 2) * P] : 0.0f;
        out[image + (size_t)c * P] = respond(w0, w1, w2, w3, w4);
        w0 = w1;
        w1 = w2;
        w2 = w3;
        w3 = w4;
      }
    }
  }
}
