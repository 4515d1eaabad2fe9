// Pooling by effective value, a block for 16 rows of windows; its input comes by one bulk copy.

//@ launch power_pooling<<<P * ceil_div(H, 16), 256>>>(x, out, P, H, W)

__device__ __forceinline__ float row_squares(const float* p) {
  const float a = p[0];
  const float b = p[1];
  const float c = p[2];
  return a * a + b * b + c * c;
}

__global__ void __launch_bounds__(256) power_pooling(const float* __restrict__ x, float* __restrict__ out,
                                                     int P, int H, int W) {
  constexpr int ROWS = 16;
  constexpr int CAPACITY = 8448;
  __shared__ __align__(128) float buf[CAPACITY];
  __shared__ __align__(8) unsigned long long barrier;

  const int t = threadIdx.x;
  const int tiles = (H + ROWS - 1) / ROWS;
  const int plane = blockIdx.x / tiles;
  const int i0 = (blockIdx.x - plane * tiles) * ROWS;
  const int nr = min(ROWS, H - i0);
  const int L = 2 * W + 1;
  const size_t plane_size = (size_t)(2 * H + 1) * (size_t)L;
  const size_t start = (size_t)plane * plane_size + (size_t)(2 * i0) * (size_t)L;
  const float* src;

  if ((2 * ROWS + 1) * (long long)L + 8 <= CAPACITY) {
    const size_t total = (size_t)P * plane_size;
    const int shift = (int)(start & 3);
    const size_t from = start - shift;
    const size_t end = start + (size_t)((2 * nr + 1) * L);
    size_t bulk_end = (end + 3) & ~(size_t)3;
    if (bulk_end > total) {
      bulk_end = total & ~(size_t)3;
    }
    const int count = (int)(bulk_end - from);
    const unsigned int bar = (unsigned int)__cvta_generic_to_shared(&barrier);
    if (t == 0) {
      const unsigned int dst = (unsigned int)__cvta_generic_to_shared(buf);
      const unsigned int bytes = (unsigned int)count * 4u;
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
          "l"(x + from), "r"(bytes), "r"(bar)
          : "memory");
    }
    // at the very end of x up to three elements lie behind the last whole vector
    if (bulk_end < end && t < (int)(end - bulk_end)) {
      buf[count + t] = x[bulk_end + t];
    }
    __syncthreads();
    unsigned int done = 0;
    while (!done) {
      asm volatile(
          "{\n"
          "  .reg .pred p;\n"
          "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "  selp.u32 %0, 1, 0, p;\n"
          "}\n"
          : "=r"(done)
          : "r"(bar), "r"(0u)
          : "memory");
    }
    src = buf + shift;

    const int half = t >> 7;
    const int first = half * (ROWS / 2);
    const int last = min(nr, first + ROWS / 2);
    if (first < last) {
      float* o = out + ((size_t)plane * (size_t)H + (size_t)(i0 + first)) * (size_t)W;
      for (int j = t & 127; j < W; j += 128) {
        const float* p = src + 2 * first * L + 2 * j;
        float* q = o + j;
        float previous = row_squares(p);
        if (last - first == ROWS / 2) {
#pragma unroll
          for (int i = 0; i < ROWS / 2; ++i) {
            const float middle = row_squares(p + L);
            const float next = row_squares(p + 2 * L);
            *q = sqrtf(previous + middle + next);
            previous = next;
            p += 2 * L;
            q += W;
          }
        } else {
          for (int i = first; i < last; ++i) {
            const float middle = row_squares(p + L);
            const float next = row_squares(p + 2 * L);
            *q = sqrtf(previous + middle + next);
            previous = next;
            p += 2 * L;
            q += W;
          }
        }
      }
    }
  } else {
    src = x + start;
    for (int j = t; j < W; j += 256) {
      const float* p = src + 2 * j;
      float* q = out + ((size_t)plane * (size_t)H + (size_t)i0) * (size_t)W + j;
      float previous = row_squares(p);
      for (int i = 0; i < nr; ++i) {
        const float middle = row_squares(p + L);
        const float next = row_squares(p + 2 * L);
        *q = sqrtf(previous + middle + next);
        previous = next;
        p += 2 * L;
        q += W;
      }
    }
  }
}
