// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.

void sharpen(const float* in, float amount, float* out, int H, int W) {
  typedef float v16 __attribute__((vector_size(64)));
  typedef float v16u __attribute__((vector_size(64), aligned(4), may_alias));

  const float ninth = 1.0f / 9.0f;

  // The first and the last row.
  for (int x = 0; x < W; ++x) {
    out[x] = in[x];
  }
  {
    const float* src = in + (long)(H - 1) * W;
    float* dst = out + (long)(H - 1) * W;
    for (int x = 0; x < W; ++x) {
      dst[x] = src[x];
    }
  }

  if (W % 16 == 0) {
    const bool aligned = ((unsigned long)out & 63) == 0;
#if !defined(__clang__)
    typedef int i16 __attribute__((vector_size(64)));
    const i16 toLeft = {15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
    const i16 toRight = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
#endif
    for (int y = 1; y < H - 1; ++y) {
      const float* up = in + (long)(y - 1) * W;
      const float* mid = in + (long)y * W;
      const float* down = in + (long)(y + 1) * W;
      float* dst = out + (long)y * W;

      v16 pixel = *(const v16u*)mid;
      v16 current = *(const v16u*)up + pixel + *(const v16u*)down;
      v16 previous = current;
      for (int x = 0; x < W; x += 16) {
        const int n = x + 16 < W ? x + 16 : x;
        __builtin_prefetch(down + x + 1024, 0, 3);
        const v16 nextUp = *(const v16u*)(up + n);
        const v16 nextPixel = *(const v16u*)(mid + n);
        const v16 nextDown = *(const v16u*)(down + n);
        const v16 next = nextUp + nextPixel + nextDown;
#if defined(__clang__)
        const v16 left = __builtin_shufflevector(previous, current, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
                                                 27, 28, 29, 30);
        const v16 right = __builtin_shufflevector(current, next, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                                  16);
#else
        const v16 left = __builtin_shuffle(previous, current, toLeft);
        const v16 right = __builtin_shuffle(current, next, toRight);
#endif
        const v16 sum = left + current + right;
        v16 result = pixel + amount * (pixel - sum * ninth);
        if (x == 0) {
          result[0] = pixel[0];
        }
        if (x + 16 == W) {
          result[15] = pixel[15];
        }
        if (aligned) {
#if defined(__clang__)
          __builtin_nontemporal_store(result, (v16*)(dst + x));
#elif defined(__AVX512F__)
          __builtin_ia32_movntps512(dst + x, result);
#else
          *(v16u*)(dst + x) = result;
#endif
        } else {
          *(v16u*)(dst + x) = result;
        }
        previous = current;
        current = next;
        pixel = nextPixel;
      }
    }
    __builtin_ia32_sfence();
  } else {
    for (int y = 1; y < H - 1; ++y) {
      const float* up = in + (long)(y - 1) * W;
      const float* mid = in + (long)y * W;
      const float* down = in + (long)(y + 1) * W;
      float* dst = out + (long)y * W;
      dst[0] = mid[0];
#pragma omp simd
      for (int x = 1; x < W - 1; ++x) {
        const float left = up[x - 1] + mid[x - 1] + down[x - 1];
        const float middle = up[x] + mid[x] + down[x];
        const float right = up[x + 1] + mid[x + 1] + down[x + 1];
        const float sum = left + middle + right;
        dst[x] = mid[x] + amount * (mid[x] - sum * ninth);
      }
      dst[W - 1] = mid[W - 1];
    }
  }
}

//@ launch sharpen(in, amount, out, H, W)
