// Response normalization over five neighbouring channels: a lane takes four positions of eight channels.

#include <cstdint>
#include <cstddef>

//@ launch local_response<<<(ceil_div(B * ceil_div(P, 4), 32), ceil_div(C, 96)), (32, 12)>>>(x, out, B, C, P)

constexpr int CHANNELS = 8;   // channels of a warp
constexpr int WARPS = 12;     // warps of a block: 96 channels

__device__ __forceinline__ float respond(float a, float b, float c, float d, float e) {
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(c, c, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  const float s = 2.0f + 0.0001f / 5.0f * squares;
  const float y = rsqrtf(s);
  return c * (y * sqrtf(y));
}

__global__ void __launch_bounds__(32 * WARPS, 2)
local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int width = (P + 3) / 4;
  const int column = blockIdx.x * 32 + threadIdx.x;
  const int c0 = (blockIdx.y * WARPS + threadIdx.y) * CHANNELS;
  if (column >= B * width || c0 >= C) return;
  const int b = column / width;
  const int p = (column - b * width) * 4;
  const size_t base = ((size_t)b * C + c0) * P + p;
  const float* from = x + base;
  float* to = out + base;

  const uintptr_t address = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(out);
  if ((P & 3) == 0 && (address & 15) == 0) {
    float4 v[CHANNELS + 4];
#pragma unroll
    for (int k = 0; k < CHANNELS + 4; ++k) {
      const int c = c0 + k - 2;
      v[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) {
        v[k] = __ldg(reinterpret_cast<const float4*>(from + (ptrdiff_t)(k - 2) * P));
      }
    }
#pragma unroll
    for (int k = 0; k < CHANNELS; ++k) {
      if (c0 + k < C) {
        float4 y;
        y.x = respond(v[k].x, v[k + 1].x, v[k + 2].x, v[k + 3].x, v[k + 4].x);
        y.y = respond(v[k].y, v[k + 1].y, v[k + 2].y, v[k + 3].y, v[k + 4].y);
        y.z = respond(v[k].z, v[k + 1].z, v[k + 2].z, v[k + 3].z, v[k + 4].z);
        y.w = respond(v[k].w, v[k + 1].w, v[k + 2].w, v[k + 3].w, v[k + 4].w);
        __stcs(reinterpret_cast<float4*>(to + (ptrdiff_t)k * P), y);
      }
    }
  } else {
    for (int e = 0; e < 4 && p + e < P; ++e) {
      for (int k = 0; k < CHANNELS && c0 + k < C; ++k) {
        float v[5];
#pragma unroll
        for (int d = -2; d <= 2; ++d) {
          const int c = c0 + k + d;
          v[d + 2] = 0.0f;
          if (c >= 0 && c < C) v[d + 2] = from[(ptrdiff_t)(k + d) * P + e];
        }
        to[(ptrdiff_t)k * P + e] = respond(v[0], v[1], v[2], v[3], v[4]);
      }
    }
  }
}
