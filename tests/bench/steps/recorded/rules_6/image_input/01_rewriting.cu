// Intensities in [0, 1] made linear, standardized and moved to planes, in one pass: each warp turns
// 256 pixels from pixels by channel to planes in shared memory of its own.

//@ launch image_input<<<B * ceil_div(P, 2048), 256>>>(image, centre, spread, out, B, P)

#include <cstdint>
#include <cstddef>
#include <cfloat>

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int UNITS = 2;                           // groups of 4 pixels of one lane
constexpr int WARP_PIXELS = 32 * 4 * UNITS;        // 256
constexpr int BLOCK_PIXELS = WARPS * WARP_PIXELS;  // 2048
constexpr int WARP_VECTORS = WARP_PIXELS * 3 / 4;  // 192 vectors of 16 bytes

// n / d with r = 1 / d: the product, corrected by its remainder.
__device__ __forceinline__ float quotient(float n, float d, float r) {
  const float q = __fmul_rn(n, r);
  const float rest = __fmaf_rn(-q, d, n);
  const float better = __fmaf_rn(rest, r, q);
  return fabsf(q) <= FLT_MAX ? better : q;
}

template <bool PLAIN>
__device__ __forceinline__ float intensity(float value, float c, float s, float r) {
  float v, square, difference;
  if (PLAIN) {
    v = __fdiv_rn(value, 255.0f);
  } else {
    v = quotient(value, 255.0f, 1.0f / 255.0f);
  }
  square = __fmul_rn(v, v);
  difference = __fsub_rn(square, c);
  return PLAIN ? __fdiv_rn(difference, s) : quotient(difference, s, r);
}

template <bool PLAIN>
__device__ __forceinline__ void turn(const float4* mine, float* to, int P, int left, int lane, float c0,
                                     float c1, float c2, float s0, float s1, float s2) {
  float r0 = 0.0f, r1 = 0.0f, r2 = 0.0f;
  if (!PLAIN) {
    r0 = __frcp_rn(s0);
    r1 = __frcp_rn(s1);
    r2 = __frcp_rn(s2);
  }
#pragma unroll
  for (int u = 0; u < UNITS; ++u) {
    const int quad = u * 32 + lane;
    if (quad * 4 < left) {
      const float4 a = mine[quad * 3];
      const float4 b = mine[quad * 3 + 1];
      const float4 c = mine[quad * 3 + 2];
      float4 p0, p1, p2;
      p0.x = intensity<PLAIN>(a.x, c0, s0, r0);
      p1.x = intensity<PLAIN>(a.y, c1, s1, r1);
      p2.x = intensity<PLAIN>(a.z, c2, s2, r2);
      p0.y = intensity<PLAIN>(a.w, c0, s0, r0);
      p1.y = intensity<PLAIN>(b.x, c1, s1, r1);
      p2.y = intensity<PLAIN>(b.y, c2, s2, r2);
      p0.z = intensity<PLAIN>(b.z, c0, s0, r0);
      p1.z = intensity<PLAIN>(b.w, c1, s1, r1);
      p2.z = intensity<PLAIN>(c.x, c2, s2, r2);
      p0.w = intensity<PLAIN>(c.y, c0, s0, r0);
      p1.w = intensity<PLAIN>(c.z, c1, s1, r1);
      p2.w = intensity<PLAIN>(c.w, c2, s2, r2);
      float* place = to + quad * 4;
      __stcs(reinterpret_cast<float4*>(place), p0);
      __stcs(reinterpret_cast<float4*>(place + (size_t)P), p1);
      __stcs(reinterpret_cast<float4*>(place + (size_t)2 * P), p2);
    }
  }
}

__device__ __forceinline__ bool ordinary(float s) {
  return fabsf(s) >= 1e-18f && fabsf(s) <= 1e18f;
}

__global__ void __launch_bounds__(THREADS) image_input(const float* __restrict__ image,
                                                       const float* __restrict__ centre,
                                                       const float* __restrict__ spread,
                                                       float* __restrict__ out, int B, int P) {
  __shared__ float4 turned[WARPS][WARP_VECTORS];
  const int tiles = (P + BLOCK_PIXELS - 1) / BLOCK_PIXELS;
  const int picture = blockIdx.x / tiles;
  const int tile = blockIdx.x % tiles;
  if (picture >= B) return;
  const float* from = image + (size_t)picture * P * 3;
  float* to = out + (size_t)picture * P * 3;

  const bool vector = (P & 3) == 0 && (reinterpret_cast<uintptr_t>(image) & 15) == 0 &&
                      (reinterpret_cast<uintptr_t>(out) & 15) == 0;
  if (vector) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int first = tile * BLOCK_PIXELS + warp * WARP_PIXELS;
    const int left = P - first;  // pixels from here to the end of the picture
    if (left <= 0) return;       // the whole warp
    float4* mine = turned[warp];
    const float* start = from + (size_t)first * 3 + lane * 4;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(mine + lane);
    if (left >= WARP_PIXELS) {
#pragma unroll
      for (int i = 0; i < WARP_VECTORS / 32; ++i) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(at + i * 512),
                     "l"(start + i * 128)
                     : "memory");
      }
    } else {
      const int vectors = left * 3 / 4;
#pragma unroll
      for (int i = 0; i < WARP_VECTORS / 32; ++i) {
        if (i * 32 + lane < vectors) {
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(at + i * 512),
                       "l"(start + i * 128)
                       : "memory");
        }
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    const float c0 = __ldg(centre), c1 = __ldg(centre + 1), c2 = __ldg(centre + 2);
    const float s0 = __ldg(spread), s1 = __ldg(spread + 1), s2 = __ldg(spread + 2);
    const bool fast = ordinary(s0) && ordinary(s1) && ordinary(s2);

    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncwarp();

    if (fast) {
      turn<false>(mine, to + first, P, left, lane, c0, c1, c2, s0, s1, s2);
    } else {
      turn<true>(mine, to + first, P, left, lane, c0, c1, c2, s0, s1, s2);
    }
  } else {
    const int begin = tile * BLOCK_PIXELS;
    const int end = P - begin < BLOCK_PIXELS ? P : begin + BLOCK_PIXELS;
#pragma unroll 1
    for (int channel = 0; channel < 3; ++channel) {
      const float c = __ldg(centre + channel);
      const float s = __ldg(spread + channel);
#pragma unroll 1
      for (int p = begin + (int)threadIdx.x; p < end; p += THREADS) {
        to[(size_t)channel * P + p] =
            intensity<true>(__ldg(from + (size_t)p * 3 + channel), c, s, 0.0f);
      }
    }
  }
}
