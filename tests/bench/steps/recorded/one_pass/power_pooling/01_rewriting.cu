// Pooling by effective value: strips of 16 rows of windows, brought into shared memory by a bulk copy.
#include <cstdint>

//@ launch power_pooling<<<P * ceil_div(H, 16), 256>>>(x, out, P, H, W)
__global__ void __launch_bounds__(256)
power_pooling(const float* __restrict__ x, float* __restrict__ out, int P, int H, int W) {
  __shared__ alignas(128) float tile[8448];
  __shared__ alignas(8) uint64_t bar;

  const int t = threadIdx.x;
  const int strips = (H + 15) / 16;
  const int plane = blockIdx.x / strips;
  const int i0 = (blockIdx.x - plane * strips) * 16;
  const int h = min(16, H - i0);
  const int width = 2 * W + 1;
  const long long area = (long long)(2 * H + 1) * width;
  const long long start = (long long)plane * area + (long long)(2 * i0) * width;
  float* o = out + ((size_t)plane * H + i0) * (size_t)W;

  if (W <= 127 && (reinterpret_cast<uintptr_t>(x) & 15) == 0) {
    const long long total = (long long)P * area;
    const long long first = start & ~3LL;
    const long long end = start + (long long)(2 * h + 1) * width;
    long long stop = (end + 3) & ~3LL;
    if (stop > total) {
      stop = end & ~3LL;
    }
    const uint32_t bar_at = (uint32_t)__cvta_generic_to_shared(&bar);
    if (t == 0) {
      const uint32_t tile_at = (uint32_t)__cvta_generic_to_shared(tile);
      const uint32_t bytes = (uint32_t)(stop - first) * 4u;
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar_at) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar_at), "r"(bytes)
                   : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
              tile_at),
          "l"(x + first), "r"(bytes), "r"(bar_at)
          : "memory");
    }
    if (stop < end && t < (int)(end - stop)) {
      tile[(int)(stop - first) + t] = x[stop + t];
    }
    __syncthreads();
    {
      uint32_t ready = 0;
      while (!ready) {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(ready)
            : "r"(bar_at), "r"(0u)
            : "memory");
      }
    }
    const int j = t & 127;
    const int ia = (t >> 7) * 8;
    const int ib = min(h, ia + 8);
    if (j < W && ia < ib) {
      const float* s = tile + (int)(start - first) + 2 * ia * width + 2 * j;
      float* op = o + (size_t)ia * W + j;
      float top = s[0] * s[0] + s[1] * s[1] + s[2] * s[2];
      if (ib - ia == 8) {
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          const float* s1 = s + (2 * k + 1) * width;
          const float* s2 = s + (2 * k + 2) * width;
          const float mid = s1[0] * s1[0] + s1[1] * s1[1] + s1[2] * s1[2];
          const float low = s2[0] * s2[0] + s2[1] * s2[1] + s2[2] * s2[2];
          __stcs(op + k * W, sqrtf((top + mid) + low));
          top = low;
        }
      } else {
        for (int k = 0; k < ib - ia; ++k) {
          const float* s1 = s + (2 * k + 1) * width;
          const float* s2 = s + (2 * k + 2) * width;
          const float mid = s1[0] * s1[0] + s1[1] * s1[1] + s1[2] * s1[2];
          const float low = s2[0] * s2[0] + s2[1] * s2[1] + s2[2] * s2[2];
          __stcs(op + k * W, sqrtf((top + mid) + low));
          top = low;
        }
      }
    }
  } else {
    for (int j = t; j < W; j += 256) {
      const float* s = x + start + 2 * j;
      float top = s[0] * s[0] + s[1] * s[1] + s[2] * s[2];
      for (int k = 0; k < h; ++k) {
        const float* s1 = s + (size_t)(2 * k + 1) * width;
        const float* s2 = s + (size_t)(2 * k + 2) * width;
        const float mid = s1[0] * s1[0] + s1[1] * s1[1] + s1[2] * s1[2];
        const float low = s2[0] * s2[0] + s2[1] * s2[1] + s2[2] * s2[2];
        o[(size_t)k * W + j] = sqrtf((top + mid) + low);
        top = low;
      }
    }
  }
}
