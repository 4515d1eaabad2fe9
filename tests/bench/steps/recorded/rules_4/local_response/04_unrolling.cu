// Response normalization over five neighbouring channels; each thread holds 8 channels of 4 positions in registers.

//@ launch local_response<<<ceil_div(ceil_div(B * ceil_div(P, 4), 32) * ceil_div(C, 8), 12), 384>>>(x, out, B, C, P)

#define CHANNELS 8
#define WARPS 12

// value / s^0.75 for s >= 2 (or infinite, or not a number)
__device__ __forceinline__ float respond(float value, float squares) {
  const float s = 2.0f + 0.0001f / 5.0f * squares;
  float r, q;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(s));
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(q) : "f"(r));
  return value * (r * q);
}

__device__ __forceinline__ float squares_of(float a, float b, float c, float d, float e) {
  return fmaf(e, e, fmaf(d, d, fmaf(c, c, fmaf(b, b, a * a))));
}

__global__ void __launch_bounds__(384, 2)
local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int lane = threadIdx.x & 31;
  const int chunks = (C + CHANNELS - 1) / CHANNELS;
  const int w = blockIdx.x * WARPS + (threadIdx.x >> 5);
  const int column = w / chunks;
  const int c0 = (w - column * chunks) * CHANNELS;
  const int quads = (P + 3) / 4;
  const int at = column * 32 + lane;
  if (at >= B * quads) return;
  const int b = at / quads;
  const int p = (at - b * quads) * 4;
  const long long base = (long long)b * C * P + p;

  if ((P & 3) == 0) {
    const float* from = x + base;
    float4 v[CHANNELS + 4];
#pragma unroll
    for (int i = 0; i < CHANNELS + 4; ++i) {
      const int c = c0 - 2 + i;
      v[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) v[i] = __ldg(reinterpret_cast<const float4*>(from + (long long)c * P));
    }
    float* to = out + base + (long long)c0 * P;
#pragma unroll
    for (int i = 0; i < CHANNELS; ++i) {
      if (c0 + i < C) {
        float4 o;
        o.x = respond(v[i + 2].x, squares_of(v[i].x, v[i + 1].x, v[i + 2].x, v[i + 3].x, v[i + 4].x));
        o.y = respond(v[i + 2].y, squares_of(v[i].y, v[i + 1].y, v[i + 2].y, v[i + 3].y, v[i + 4].y));
        o.z = respond(v[i + 2].z, squares_of(v[i].z, v[i + 1].z, v[i + 2].z, v[i + 3].z, v[i + 4].z));
        o.w = respond(v[i + 2].w, squares_of(v[i].w, v[i + 1].w, v[i + 2].w, v[i + 3].w, v[i + 4].w));
        __stcs(reinterpret_cast<float4*>(to + (long long)i * P), o);
      }
    }
  } else {
    for (int e = 0; e < 4; ++e) {
      if (p + e >= P) break;
      const float* from = x + base + e;
      float* to = out + base + e;
#pragma unroll 1
      for (int i = 0; i < CHANNELS; ++i) {
        const int c = c0 + i;
        if (c >= C) break;
        const float* here = from + (long long)c * P;
        const long long step = P;
        const float v0 = c >= 2 ? here[-2 * step] : 0.0f;
        const float v1 = c >= 1 ? here[-step] : 0.0f;
        const float v2 = here[0];
        const float v3 = c + 1 < C ? here[step] : 0.0f;
        const float v4 = c + 2 < C ? here[2 * step] : 0.0f;
        to[(long long)c * P] = respond(v2, squares_of(v0, v1, v2, v3, v4));
      }
    }
  }
}
