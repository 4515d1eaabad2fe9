// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.

#include <cstddef>
#include <cstring>
#include <immintrin.h>

// 16 pixels whose upper, own and lower row start at up, mid and down; only the lanes in `mask` are touched.
static inline __m512 sharpen_masked(const float* up, const float* mid, const float* down, __m512 amount,
                                    __mmask16 mask) {
  __m512 sum = _mm512_maskz_loadu_ps(mask, up - 1);
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, up));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, up + 1));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, mid - 1));
  const __m512 centre = _mm512_maskz_loadu_ps(mask, mid);
  sum = _mm512_add_ps(sum, centre);
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, mid + 1));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, down - 1));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, down));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, down + 1));
  const __m512 blurred = _mm512_div_ps(sum, _mm512_set1_ps(9.0f));
  return _mm512_fmadd_ps(amount, _mm512_sub_ps(centre, blurred), centre);
}

static inline __m512 sharpen_full(const float* up, const float* mid, const float* down, __m512 amount) {
  __m512 sum = _mm512_loadu_ps(up - 1);
  sum = _mm512_add_ps(sum, _mm512_loadu_ps(up));
  sum = _mm512_add_ps(sum, _mm512_loadu_ps(up + 1));
  sum = _mm512_add_ps(sum, _mm512_loadu_ps(mid - 1));
  const __m512 centre = _mm512_loadu_ps(mid);
  sum = _mm512_add_ps(sum, centre);
  sum = _mm512_add_ps(sum, _mm512_loadu_ps(mid + 1));
  sum = _mm512_add_ps(sum, _mm512_loadu_ps(down - 1));
  sum = _mm512_add_ps(sum, _mm512_loadu_ps(down));
  sum = _mm512_add_ps(sum, _mm512_loadu_ps(down + 1));
  const __m512 blurred = _mm512_div_ps(sum, _mm512_set1_ps(9.0f));
  return _mm512_fmadd_ps(amount, _mm512_sub_ps(centre, blurred), centre);
}

void sharpen(const float* in, float amount, float* out, int H, int W) {
  const __m512 factor = _mm512_set1_ps(amount);
  for (int y = 0; y < H; ++y) {
    const float* mid = in + static_cast<std::size_t>(y) * W;
    float* dst = out + static_cast<std::size_t>(y) * W;
    if (y == 0 || y == H - 1) {
      std::memcpy(dst, mid, static_cast<std::size_t>(W) * sizeof(float));
      continue;
    }
    const float* up = mid - W;
    const float* down = mid + W;
    dst[0] = mid[0];
    int x = 1;
    for (; x + 16 <= W - 1; x += 16) {
      _mm512_storeu_ps(dst + x, sharpen_full(up + x, mid + x, down + x, factor));
    }
    if (x < W - 1) {
      const __mmask16 mask = static_cast<__mmask16>((1u << (W - 1 - x)) - 1u);
      _mm512_mask_storeu_ps(dst + x, mask, sharpen_masked(up + x, mid + x, down + x, factor, mask));
    }
    dst[W - 1] = mid[W - 1];
  }
}

//@ launch sharpen(in, amount, out, H, W)
