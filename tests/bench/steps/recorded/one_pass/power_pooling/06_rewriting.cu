// Pooling by effective value: a block for 16 rows of a plane, its input rows brought to shared memory by one bulk copy.

#include <cstddef>
#include <cstdint>

#define THREADS 256
#define ROWS 16
#define GROUP_ROWS 8
#define COLUMNS 128
#define MAX_W 127
#define TILE_FLOATS 8432

//@ launch power_pooling<<<P * ceil_div(H, 16), 256>>>(x, out, P, H, W)

__device__ __forceinline__ float row_squares(const float* p) {
  const float a = p[0];
  const float b = p[1];
  const float c = p[2];
  return a * a + b * b + c * c;
}

__global__ void __launch_bounds__(THREADS, 6) power_pooling(const float* __restrict__ x, float* __restrict__ out,
                                                            int P, int H, int W) {
  __shared__ __align__(128) float tile[TILE_FLOATS];
  __shared__ __align__(8) unsigned long long barrier;
  const int t = threadIdx.x;
  const int tiles = (H + ROWS - 1) / ROWS;
  const int plane = blockIdx.x / tiles;
  const int first = (blockIdx.x - plane * tiles) * ROWS;
  const int rows = min(ROWS, H - first);
  const int width = 2 * W + 1;
  const int height = 2 * H + 1;
  const size_t start = ((size_t)plane * height + 2 * first) * (size_t)width;
  float* to = out + ((size_t)plane * H + first) * (size_t)W;
  const int r0 = (t / COLUMNS) * GROUP_ROWS;
  const int r1 = min(r0 + GROUP_ROWS, rows);

  if (W <= MAX_W) {
    // whole groups of 16 bytes that cover the rows; what would go past the end of x is fetched by threads
    const size_t aligned = start & ~(size_t)3;
    const size_t end = start + (size_t)(2 * rows + 1) * width;
    const size_t all = (size_t)P * height * (size_t)width;
    size_t aligned_end = (end + 3) & ~(size_t)3;
    if (aligned_end > all) {
      aligned_end = all & ~(size_t)3;
    }
    const uint32_t bar = (uint32_t)__cvta_generic_to_shared(&barrier);
    if (t == 0) {
      const uint32_t bytes = (uint32_t)(aligned_end - aligned) * 4u;
      const uint32_t dst = (uint32_t)__cvta_generic_to_shared(tile);
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
          "l"(__cvta_generic_to_global(x + aligned)), "r"(bytes), "r"(bar)
          : "memory");
    }
    if (aligned_end + t < end) {
      tile[(int)(aligned_end - aligned) + t] = x[aligned_end + t];
    }
    __syncthreads();
    {
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
    }
    const int j = t % COLUMNS;
    if (j < W && r0 < rows) {
      const float* p = tile + (int)(start - aligned) + 2 * r0 * width + 2 * j;
      float* o = to + r0 * W + j;
      float above = row_squares(p);
      if (r1 - r0 == GROUP_ROWS) {
        #pragma unroll
        for (int r = 0; r < GROUP_ROWS; ++r) {
          const float middle = row_squares(p + width);
          const float below = row_squares(p + 2 * width);
          __stcs(o, sqrtf(above + middle + below));
          above = below;
          p += 2 * width;
          o += W;
        }
      } else {
        for (int r = r0; r < r1; ++r) {
          const float middle = row_squares(p + width);
          const float below = row_squares(p + 2 * width);
          __stcs(o, sqrtf(above + middle + below));
          above = below;
          p += 2 * width;
          o += W;
        }
      }
    }
  } else {
    for (int j = t % COLUMNS; j < W; j += COLUMNS) {
      if (r0 < rows) {
        const float* p = x + start + (size_t)(2 * r0) * width + 2 * j;
        float* o = to + (size_t)r0 * W + j;
        float above = row_squares(p);
        for (int r = r0; r < r1; ++r) {
          const float middle = row_squares(p + width);
          const float below = row_squares(p + 2 * (size_t)width);
          *o = sqrtf(above + middle + below);
          above = below;
          p += 2 * (size_t)width;
          o += W;
        }
      }
    }
  }
}
