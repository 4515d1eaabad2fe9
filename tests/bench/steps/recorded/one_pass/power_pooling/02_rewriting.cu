// Pooling by effective value: a strip of 16 rows of windows for each block, its input brought in by one bulk copy.
#include <cstdint>

//@ launch power_pooling<<<P * ceil_div(H, 16), 256, min(round_up((33 * (2 * W + 1) + 8) * 4, 16), 48000)>>>(x, out, P, H, W)

__device__ __forceinline__ float squares_of_three(const float* p) {
  float a = p[0];
  float b = p[1];
  float c = p[2];
  return a * a + b * b + c * c;
}

__global__ void __launch_bounds__(256, 6) power_pooling(const float* __restrict__ x, float* __restrict__ out, int P, int H, int W) {
  extern __shared__ __align__(128) float tile[];
  __shared__ __align__(8) uint64_t ready;
  int strips = (H + 15) >> 4;
  int plane = blockIdx.x / strips;
  int strip = blockIdx.x - plane * strips;
  int i0 = strip * 16;
  int rows = H - i0;
  if (rows > 16) {
    rows = 16;
  }
  int stride = 2 * W + 1;
  int t = threadIdx.x;
  int group = t >> 7;
  int column = t & 127;
  size_t start = ((size_t)plane * (size_t)(2 * H + 1) + (size_t)(2 * i0)) * (size_t)stride;
  float* o = out + ((size_t)plane * (size_t)H + (size_t)i0) * (size_t)W;
  int r0 = group * 8;

  if ((33LL * (long long)stride + 8) * 4 <= 48000) {
    size_t end = start + (size_t)(2 * rows + 1) * (size_t)stride;
    size_t low = start & ~(size_t)3;
    size_t high = end & ~(size_t)3;
    uint32_t bar = (uint32_t)__cvta_generic_to_shared(&ready);
    if (t == 0) {
      uint32_t bytes = (uint32_t)(high - low) * 4u;
      uint32_t dst = (uint32_t)__cvta_generic_to_shared(tile);
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst), "l"(x + low), "r"(bytes), "r"(bar) : "memory");
    }
    // the last elements that fill no 16 bytes
    int rest = (int)(end - high);
    if (t >= 32 && t < 32 + rest) {
      tile[(int)(high - low) + t - 32] = x[high + (size_t)(t - 32)];
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
    const float* base = tile + (int)(start - low);
    if (r0 < rows) {
      for (int j = column; j < W; j += 128) {
        const float* p = base + 2 * r0 * stride + 2 * j;
        float* q = o + (size_t)r0 * (size_t)W + j;
        float above = squares_of_three(p);
        if (rows - r0 >= 8) {
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            p += stride;
            float middle = squares_of_three(p);
            p += stride;
            float below = squares_of_three(p);
            *q = sqrtf(above + middle + below);
            q += W;
            above = below;
          }
        } else {
          for (int k = r0; k < rows; ++k) {
            p += stride;
            float middle = squares_of_three(p);
            p += stride;
            float below = squares_of_three(p);
            *q = sqrtf(above + middle + below);
            q += W;
            above = below;
          }
        }
      }
    }
  } else {
    // rows too long for shared memory
    int last = r0 + 8;
    if (last > rows) {
      last = rows;
    }
    if (r0 < last) {
      for (int j = column; j < W; j += 128) {
        const float* p = x + start + (size_t)(2 * r0) * (size_t)stride + 2 * j;
        float* q = o + (size_t)r0 * (size_t)W + j;
        float above = squares_of_three(p);
        for (int k = r0; k < last; ++k) {
          p += stride;
          float middle = squares_of_three(p);
          p += stride;
          float below = squares_of_three(p);
          *q = sqrtf(above + middle + below);
          q += W;
          above = below;
        }
      }
    }
  }
}
