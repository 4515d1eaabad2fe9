// Response normalization over five neighbouring channels: a thread keeps a window of 16 channels
// by 4 positions in registers and writes the 12 channels in its middle.

#include <cstdint>
#include <cstddef>

//@ launch local_response<<<ceil_div(B * ceil_div(P, 4), 32) * ceil_div(C, 96), 256>>>(x, out, B, C, P)

constexpr int kChannels = 12;             // channels written by a thread
constexpr int kWindow = kChannels + 4;    // channels read by a thread
constexpr int kGroup = 8 * kChannels;     // channels of a block

__device__ __forceinline__ float normalize(float a, float b, float c, float d, float e) {
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(c, c, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  const float base = fmaf(0.0001f / 5.0f, squares, 2.0f);
  const float r = rsqrtf(base);           // base^(-1/2)
  return c * (r * sqrtf(r));              // c * base^(-3/4)
}

__global__ void __launch_bounds__(256, 3)
    local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int groups = (C + kGroup - 1) / kGroup;
  const int quads = (P + 3) / 4;
  const int column_block = blockIdx.x / groups;
  const int group = blockIdx.x - column_block * groups;
  const int column = column_block * 32 + (threadIdx.x & 31);
  const int c0 = group * kGroup + (threadIdx.x >> 5) * kChannels;
  if (column >= B * quads || c0 >= C) return;
  const int batch = column / quads;
  const int p = 4 * (column - batch * quads);
  const ptrdiff_t start = (static_cast<ptrdiff_t>(batch) * C + c0) * P + p;

  const uintptr_t bases = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(out);
  if ((P & 3) == 0 && (bases & 15) == 0) {
    const ptrdiff_t stride = P / 4;
    const float4* xs = reinterpret_cast<const float4*>(x) + start / 4;
    float4* outs = reinterpret_cast<float4*>(out) + start / 4;

    float4 v[kWindow];
#pragma unroll
    for (int k = 0; k < kWindow; ++k) {
      const int c = c0 + k - 2;
      v[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) v[k] = __ldg(xs + (k - 2) * stride);
    }
#pragma unroll
    for (int k = 0; k < kChannels; ++k) {
      if (c0 + k < C) {
        float4 o;
        o.x = normalize(v[k].x, v[k + 1].x, v[k + 2].x, v[k + 3].x, v[k + 4].x);
        o.y = normalize(v[k].y, v[k + 1].y, v[k + 2].y, v[k + 3].y, v[k + 4].y);
        o.z = normalize(v[k].z, v[k + 1].z, v[k + 2].z, v[k + 3].z, v[k + 4].z);
        o.w = normalize(v[k].w, v[k + 1].w, v[k + 2].w, v[k + 3].w, v[k + 4].w);
        __stcs(outs + k * stride, o);
      }
    }
  } else {
    const int width = min(4, P - p);
    const int last = min(C, c0 + kChannels);
    for (int e = 0; e < width; ++e) {
      // xs[c * P] is channel c at this position.
      const ptrdiff_t origin = static_cast<ptrdiff_t>(batch) * C * P + p + e;
      const float* xs = x + origin;
      float* outs = out + origin;
      const ptrdiff_t stride = P;
      float v0 = c0 >= 2 ? xs[(c0 - 2) * stride] : 0.0f;
      float v1 = c0 >= 1 ? xs[(c0 - 1) * stride] : 0.0f;
      float v2 = xs[c0 * stride];
      float v3 = c0 + 1 < C ? xs[(c0 + 1) * stride] : 0.0f;
      for (int c = c0; c < last; ++c) {
        const float v4 = c + 2 < C ? xs[(c + 2) * stride] : 0.0f;
        outs[c * stride] = normalize(v0, v1, v2, v3, v4);
        v0 = v1;
        v1 = v2;
        v2 = v3;
        v3 = v4;
      }
    }
  }
}
