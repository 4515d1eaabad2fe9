// Threads walk the channels: a window in registers, the next eight channels loaded while eight are worked on.

//@ launch local_response<<<ceil_div(B * P, 512), 256>>>(x, out, B, C, P)
#include <cstdint>

constexpr int GROUP = 8;               // channels for each step
constexpr int HELD = GROUP + 4;        // with two neighbours on each side

// The sum over the neighbours in the order of the channels; those beyond the ends are zero.
__device__ __forceinline__ float respond(float a, float b, float c, float d, float e) {
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(c, c, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  const float r = rsqrtf(2.0f + 0.0001f / 5.0f * squares);
  return c * (r * sqrtf(r));
}

__device__ __forceinline__ float2 respond(const float2& a, const float2& b, const float2& c, const float2& d,
                                          const float2& e) {
  return make_float2(respond(a.x, b.x, c.x, d.x, e.x), respond(a.y, b.y, c.y, d.y, e.y));
}

__device__ __forceinline__ void clear(float& v) { v = 0.0f; }
__device__ __forceinline__ void clear(float2& v) { v = make_float2(0.0f, 0.0f); }

// V holds one or two positions; width is the number of V in a channel.
template <typename V>
__device__ __forceinline__ void walk(const V* __restrict__ source, V* __restrict__ target, int C, int width) {
  V held[HELD];                        // channels first - 2 to first + GROUP + 1
  clear(held[0]);
  clear(held[1]);
#pragma unroll
  for (int n = 2; n < HELD; ++n) {
    clear(held[n]);
    if (n - 2 < C) held[n] = __ldcs(source + static_cast<size_t>(n - 2) * width);
  }
  const V* ahead = source + static_cast<size_t>(HELD - 2) * width;

#pragma unroll 1
  for (int first = 0; first < C; first += GROUP) {
    V coming[GROUP];                   // channels first + GROUP + 2 and on
    if (first + HELD - 2 + GROUP <= C) {
#pragma unroll
      for (int n = 0; n < GROUP; ++n) {
        coming[n] = __ldcs(ahead + static_cast<size_t>(n) * width);
      }
    } else {
#pragma unroll
      for (int n = 0; n < GROUP; ++n) {
        clear(coming[n]);
        if (first + HELD - 2 + n < C) coming[n] = __ldcs(ahead + static_cast<size_t>(n) * width);
      }
    }
    ahead += static_cast<size_t>(GROUP) * width;

#pragma unroll
    for (int n = 0; n < GROUP; ++n) {
      if (first + n < C) {
        __stcs(target + static_cast<size_t>(n) * width,
               respond(held[n], held[n + 1], held[n + 2], held[n + 3], held[n + 4]));
      }
    }
    target += static_cast<size_t>(GROUP) * width;

#pragma unroll
    for (int n = 0; n < 4; ++n) {
      held[n] = held[n + GROUP];
    }
#pragma unroll
    for (int n = 0; n < GROUP; ++n) {
      held[n + 4] = coming[n];
    }
  }
}

__global__ void __launch_bounds__(256, 3)
local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (P % 2 == 0 && ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(out)) & 7) == 0) {
    const int width = P / 2;
    if (thread < B * width) {
      const int b = thread / width;
      const int p = thread - b * width;
      const size_t at = static_cast<size_t>(b) * C * width + p;
      walk<float2>(reinterpret_cast<const float2*>(x) + at, reinterpret_cast<float2*>(out) + at, C, width);
    }
  } else {
    const int threads = gridDim.x * blockDim.x;
    for (int column = thread; column < B * P; column += threads) {
      const int b = column / P;
      const int p = column - b * P;
      const size_t at = static_cast<size_t>(b) * C * P + p;
      walk<float>(x + at, out + at, C, P);
    }
  }
}
