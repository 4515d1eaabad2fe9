// Pooling by effective value: a block brings a strip of input rows into shared memory by one bulk copy.

#include <cstdint>

//@ launch power_pooling<<<ceil_div(H, 8) * P, 256, (17 * (2 * W + 1) + 8) * 4>>>(x, out, P, H, W)
__device__ __forceinline__ float row_squares(const float* p) {
  const float a = p[0];
  const float b = p[1];
  const float c = p[2];
  return a * a + b * b + c * c;
}

__global__ void __launch_bounds__(256) power_pooling(const float* __restrict__ x, float* __restrict__ out, int P, int H,
                                                     int W) {
  extern __shared__ __align__(128) float tile[];
  __shared__ __align__(8) uint64_t barrier;

  const int t = threadIdx.x;
  const int strips = (H + 7) / 8;
  const int plane = blockIdx.x / strips;
  const int i0 = (blockIdx.x - plane * strips) * 8;
  const int rows = min(8, H - i0);
  const int width = 2 * W + 1;

  const size_t base = ((size_t)plane * (size_t)(2 * H + 1) + (size_t)(2 * i0)) * (size_t)width;
  const size_t end = base + (size_t)(2 * rows + 1) * (size_t)width;
  const size_t total = (size_t)P * (size_t)(2 * H + 1) * (size_t)width;
  const size_t from = base & ~(size_t)3;
  size_t to = (end + 3) & ~(size_t)3;
  if (to > total) {
    to = end & ~(size_t)3;
  }
  const uint32_t bar = (uint32_t)__cvta_generic_to_shared(&barrier);

  if (t == 0) {
    const uint32_t bytes = (uint32_t)(to - from) * 4u;
    const uint32_t dst = (uint32_t)__cvta_generic_to_shared(tile);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"(x + from), "r"(bytes), "r"(bar)
                 : "memory");
  }
  // the last elements of x where they are no whole 16 bytes
  if (to + (size_t)t < end) {
    tile[(int)(to - from) + t] = x[to + (size_t)t];
  }
  __syncthreads();

  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(bar), "r"(0u)
        : "memory");
  }

  const float* in = tile + (int)(base - from);
  const int r0 = (t >> 7) * 4;
  float* o = out + ((size_t)plane * (size_t)H + (size_t)(i0 + r0)) * (size_t)W;
  const int mine = min(4, rows - r0);
  if (mine == 4) {
    for (int j = t & 127; j < W; j += 128) {
      const float* p = in + 2 * r0 * width + 2 * j;
      float above = row_squares(p);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float middle = row_squares(p + width);
        const float below = row_squares(p + 2 * width);
        o[(size_t)k * (size_t)W + j] = sqrtf(above + middle + below);
        above = below;
        p += 2 * width;
      }
    }
  } else if (mine > 0) {
    for (int j = t & 127; j < W; j += 128) {
      const float* p = in + 2 * r0 * width + 2 * j;
      float above = row_squares(p);
      for (int k = 0; k < mine; ++k) {
        const float middle = row_squares(p + width);
        const float below = row_squares(p + 2 * width);
        o[(size_t)k * (size_t)W + j] = sqrtf(above + middle + below);
        above = below;
        p += 2 * width;
      }
    }
  }
}
