// Pooling by effective value, a block for a strip of eight rows of windows, brought in by a bulk copy.

#include <cstdint>

//@ launch power_pooling<<<P * ceil_div(H, 8), 256>>>(x, out, P, H, W)

__device__ __forceinline__ float row_squares(const float* q) {
  float a = q[0];
  float b = q[1];
  float c = q[2];
  return a * a + b * b + c * c;
}

__global__ void __launch_bounds__(256) power_pooling(const float* __restrict__ x,
                                                     float* __restrict__ out, int P, int H, int W) {
  // 17 rows of at most 255 elements, and up to 3 before and behind them.
  __shared__ __align__(128) float tile[4352];
  __shared__ __align__(8) uint64_t bar;

  const int tid = threadIdx.x;
  const int strips = (H + 7) / 8;
  const int plane = blockIdx.x / strips;
  const int i0 = (blockIdx.x - plane * strips) * 8;
  const int n = min(8, H - i0);
  const int ld = 2 * W + 1;
  const size_t start = ((size_t)plane * (size_t)(2 * H + 1) + (size_t)(2 * i0)) * (size_t)ld;
  float* o = out + ((size_t)plane * (size_t)H + (size_t)i0) * (size_t)W;

  const int column = tid & 127;
  const int r0 = (tid >> 7) * 4;

  if (W <= 127 && (reinterpret_cast<uintptr_t>(x) & 15) == 0) {
    const size_t total = (size_t)P * (size_t)(2 * H + 1) * (size_t)ld;
    const size_t end = start + (size_t)((2 * n + 1) * ld);
    const size_t from = start & ~(size_t)3;
    size_t to = (end + 3) & ~(size_t)3;
    if (to > total) {
      to = end & ~(size_t)3;
    }
    const uint32_t bar_at = (uint32_t)__cvta_generic_to_shared(&bar);

    if (tid == 0) {
      const uint32_t tile_at = (uint32_t)__cvta_generic_to_shared(&tile[0]);
      const uint32_t bytes = (uint32_t)((to - from) * sizeof(float));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar_at), "r"(1) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar_at), "r"(bytes)
                   : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(tile_at),
          "l"(x + from), "r"(bytes), "r"(bar_at)
          : "memory");
    }
    // The last elements of the whole input, where they fill no 16 bytes.
    if (to + (size_t)tid < end) {
      tile[(int)(to - from) + tid] = x[to + tid];
    }
    __syncthreads();

    uint32_t ready = 0;
    while (!ready) {
      asm volatile(
          "{\n"
          ".reg .pred p;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.b32 %0, 1, 0, p;\n"
          "}\n"
          : "=r"(ready)
          : "r"(bar_at), "r"(0)
          : "memory");
    }

    if (column < W && r0 < n) {
      const float* q = tile + (int)(start - from) + 2 * r0 * ld + 2 * column;
      float* w = o + (size_t)r0 * (size_t)W + column;
      float top = row_squares(q);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (r0 + k < n) {
          float middle = row_squares(q + ld);
          float bottom = row_squares(q + 2 * ld);
          *w = sqrtf(top + middle + bottom);
          top = bottom;
          q += 2 * ld;
          w += W;
        }
      }
    }
  } else {
    for (int j = column; j < W; j += 128) {
      for (int k = r0; k < min(r0 + 4, n); ++k) {
        const float* q = x + start + (size_t)(2 * k) * (size_t)ld + 2 * j;
        o[(size_t)k * (size_t)W + j] = sqrtf(row_squares(q) + row_squares(q + ld) + row_squares(q + 2 * (size_t)ld));
      }
    }
  }
}
