#include <cstdint>

// Pooling by effective value: a block takes a band of 16 rows of windows, whose input comes by one bulk copy.

constexpr int PP_ROWS = 16;
constexpr int PP_TILE = 8448;
constexpr int PP_THREADS = 256;
constexpr int PP_GROUPS = PP_THREADS / 128;
constexpr int PP_EACH = PP_ROWS / PP_GROUPS;

__device__ __forceinline__ float pp_squares(const float* p) {
  float a = p[0];
  float b = p[1];
  float c = p[2];
  return a * a + b * b + c * c;
}

//@ launch power_pooling<<<P * ceil_div(H, 16), 256>>>(x, out, P, H, W)
__global__ void __launch_bounds__(256, 6) power_pooling(const float* __restrict__ x, float* __restrict__ out, int P, int H, int W) {
  __shared__ __align__(128) float tile[PP_TILE];
  __shared__ __align__(8) uint64_t barrier;

  const int t = threadIdx.x;
  const int bands = (H + PP_ROWS - 1) / PP_ROWS;
  const int plane = blockIdx.x / bands;
  const int i0 = (blockIdx.x - plane * bands) * PP_ROWS;
  const int rows = min(PP_ROWS, H - i0);
  const int IW = 2 * W + 1;
  const int IH = 2 * H + 1;
  const size_t first = ((size_t)plane * IH + 2 * i0) * (size_t)IW;
  float* __restrict__ o = out + ((size_t)plane * H + i0) * (size_t)W;

  const bool staged = (long long)(2 * PP_ROWS + 1) * IW + 8 <= PP_TILE && (reinterpret_cast<uintptr_t>(x) & 15) == 0;
  if (staged) {
    const size_t total = (size_t)P * IH * (size_t)IW;
    const size_t end = first + (size_t)(2 * rows + 1) * IW;
    const size_t from = first & ~(size_t)3;
    size_t to = (end + 3) & ~(size_t)3;
    if (to > total) {
      to = end & ~(size_t)3;  // never past the end of x: the last elements come one by one
    }
    const int shift = (int)(first - from);
    const uint32_t bar = (uint32_t)__cvta_generic_to_shared(&barrier);

    if (t == 0) {
      const uint32_t bytes = (uint32_t)(to - from) * 4u;
      const uint32_t dst = (uint32_t)__cvta_generic_to_shared(tile);
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                   ::"r"(dst), "l"(__cvta_generic_to_global(x + from)), "r"(bytes), "r"(bar)
                   : "memory");
    }
    if (to < end && t < (int)(end - to)) {
      tile[(int)(to - from) + t] = x[to + t];
    }
    __syncthreads();

    uint32_t done = 0;
    while (!done) {
      asm volatile(
          "{\n"
          ".reg .pred p;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
          "selp.u32 %0, 1, 0, p;\n"
          "}\n"
          : "=r"(done)
          : "r"(bar)
          : "memory");
    }

    const int li = (t >> 7) * PP_EACH;
    const int count = min(PP_EACH, rows - li);
    if (count > 0) {
      for (int j = t & 127; j < W; j += 128) {
        const float* p = tile + shift + 2 * li * IW + 2 * j;
        float* q = o + (size_t)li * W + j;
        float top = pp_squares(p);
        if (count == PP_EACH) {
#pragma unroll
          for (int k = 0; k < PP_EACH; ++k) {
            const float middle = pp_squares(p + IW);
            p += 2 * IW;
            const float bottom = pp_squares(p);
            __stcs(q, sqrtf(top + middle + bottom));
            q += W;
            top = bottom;
          }
        } else {
          for (int k = 0; k < count; ++k) {
            const float middle = pp_squares(p + IW);
            p += 2 * IW;
            const float bottom = pp_squares(p);
            __stcs(q, sqrtf(top + middle + bottom));
            q += W;
            top = bottom;
          }
        }
      }
    }
  } else {
    const int li = (t >> 7) * PP_EACH;
    const int count = min(PP_EACH, rows - li);
    if (count > 0) {
      for (int j = t & 127; j < W; j += 128) {
        const float* p = x + first + (size_t)(2 * li) * IW + 2 * j;
        float* q = o + (size_t)li * W + j;
        float top = pp_squares(p);
        for (int k = 0; k < count; ++k) {
          const float middle = pp_squares(p + IW);
          p += 2 * (size_t)IW;
          const float bottom = pp_squares(p);
          *q = sqrtf(top + middle + bottom);
          q += W;
          top = bottom;
        }
      }
    }
  }
}
