// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

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

// The lanes of a line that starts at column x which hold the columns first .. end-1.
static inline __mmask16 lanes(int x, int first, int end) {
  int low = first - x;
  int high = end - x;
  if (low < 0) {
    low = 0;
  }
  if (high > 16) {
    high = 16;
  }
  if (low >= high) {
    return 0;
  }
  return static_cast<__mmask16>(((1u << high) - 1u) & ~((1u << low) - 1u));
}

// The line of a row that starts at column x (which may be negative) and holds border pixels or lanes outside the
// row; up, mid, down and dst are the starts of the rows.
static inline void sharpen_edge(const float* up, const float* mid, const float* down, float* dst, __m512 amount,
                                int x, int W) {
  const __mmask16 row = lanes(x, 0, W);
  const __mmask16 inner = lanes(x, 1, W - 1);
  up += x;
  mid += x;
  down += x;
  dst += x;
  const __m512 centre = _mm512_maskz_loadu_ps(row, mid);
  __m512 sum = _mm512_maskz_loadu_ps(inner, up - 1);
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(inner, up));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(inner, up + 1));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(inner, mid - 1));
  sum = _mm512_add_ps(sum, centre);
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(inner, mid + 1));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(inner, down - 1));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(inner, down));
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(inner, down + 1));
  const __m512 blurred = _mm512_div_ps(sum, _mm512_set1_ps(9.0f));
  const __m512 sharp = _mm512_fmadd_ps(amount, _mm512_sub_ps(centre, blurred), centre);
  const __m512 value = _mm512_mask_blend_ps(inner, centre, sharp);
  if (row == 0xffffu) {
    _mm512_stream_ps(dst, value);
  } else {
    _mm512_mask_storeu_ps(dst, row, value);
  }
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
    // The first line of the row starts at a 64-byte boundary of dst, at column 0 or before it.
    int x = -static_cast<int>((reinterpret_cast<std::uintptr_t>(dst) & 63u) / sizeof(float));
    for (; x < 1 && x < W; x += 16) {
      sharpen_edge(up, mid, down, dst, factor, x, W);
    }
    for (; x + 16 <= W - 1; x += 16) {
      _mm512_stream_ps(dst + x, sharpen_full(up + x, mid + x, down + x, factor));
    }
    for (; x < W; x += 16) {
      sharpen_edge(up, mid, down, dst, factor, x, W);
    }
  }
  _mm_sfence();
}

//@ launch sharpen(in, amount, out, H, W)
