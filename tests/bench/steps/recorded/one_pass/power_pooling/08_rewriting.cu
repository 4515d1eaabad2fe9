// Pooling by effective value, one block for each 16 rows of windows, their input brought by one bulk copy.

#include <cstdint>

//@ launch power_pooling<<<ceil_div(H, 16) * P, 256, round_up(33 * (2 * W + 1) * 4 + 64, 128)>>>(x, out, P, H, W)

#define PP_ROWS 16
#define PP_GROUP 8

__global__ void __launch_bounds__(256) power_pooling(const float* __restrict__ x, float* __restrict__ out, int P, int H, int W) {
  extern __shared__ __align__(128) float tile[];
  __shared__ __align__(8) uint64_t bar;

  const int tid = threadIdx.x;
  const int strips = (H + PP_ROWS - 1) / PP_ROWS;
  const int plane = blockIdx.x / strips;
  const int i0 = (blockIdx.x - plane * strips) * PP_ROWS;
  const int rows = min(PP_ROWS, H - i0);
  const int width = 2 * W + 1;

  const long long total = (long long)P * (2 * H + 1) * width;
  const long long e0 = ((long long)plane * (2 * H + 1) + 2 * i0) * width;
  const long long e1 = e0 + (long long)(2 * rows + 1) * width;
  const long long a0 = e0 & ~3LL;
  long long a1 = (e1 + 3) & ~3LL;
  if (a1 > total) {
    a1 = total & ~3LL;
  }
  if (a1 < a0) {
    a1 = a0;
  }
  const uint32_t bytes = (uint32_t)(a1 - a0) * 4u;
  const uint32_t bar_at = (uint32_t)__cvta_generic_to_shared(&bar);

  if (tid == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar_at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar_at), "r"(bytes) : "memory");
    if (bytes > 0) {
      const uint32_t tile_at = (uint32_t)__cvta_generic_to_shared(tile);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                   :: "r"(tile_at), "l"(x + a0), "r"(bytes), "r"(bar_at) : "memory");
    }
  }
  // The last elements of the whole input, where 16 bytes would reach beyond its end.
  if (a1 < e1) {
    const int tail = (int)(e1 - a1);
    if (tid < tail) {
      tile[(int)(a1 - a0) + tid] = x[a1 + tid];
    }
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
          : "=r"(ready) : "r"(bar_at), "r"(0u) : "memory");
    }
  }

  const float* data = tile + (int)(e0 - a0);
  const int groups = (rows + PP_GROUP - 1) / PP_GROUP;
  const int items = groups * W;
  for (int item = tid; item < items; item += 256) {
    const int g = item / W;
    const int j = item - g * W;
    const int first = g * PP_GROUP;
    const float* s = data + 2 * first * width + 2 * j;
    float* o = out + ((size_t)plane * H + i0 + first) * W + j;
    float v0 = s[0], v1 = s[1], v2 = s[2];
    float top = fmaf(v2, v2, fmaf(v1, v1, v0 * v0));
    const int count = min(PP_GROUP, rows - first);
    if (count == PP_GROUP) {
      #pragma unroll
      for (int k = 0; k < PP_GROUP; ++k) {
        const float* m = s + (2 * k + 1) * width;
        const float* b = s + (2 * k + 2) * width;
        float m0 = m[0], m1 = m[1], m2 = m[2];
        float b0 = b[0], b1 = b[1], b2 = b[2];
        float middle = fmaf(m2, m2, fmaf(m1, m1, m0 * m0));
        float bottom = fmaf(b2, b2, fmaf(b1, b1, b0 * b0));
        __stcs(o + (size_t)k * W, sqrtf((top + middle) + bottom));
        top = bottom;
      }
    } else {
      for (int k = 0; k < count; ++k) {
        const float* m = s + (2 * k + 1) * width;
        const float* b = s + (2 * k + 2) * width;
        float m0 = m[0], m1 = m[1], m2 = m[2];
        float b0 = b[0], b1 = b[1], b2 = b[2];
        float middle = fmaf(m2, m2, fmaf(m1, m1, m0 * m0));
        float bottom = fmaf(b2, b2, fmaf(b1, b1, b0 * b0));
        __stcs(o + (size_t)k * W, sqrtf((top + middle) + bottom));
        top = bottom;
      }
    }
  }
}
