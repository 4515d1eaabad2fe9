// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.
#include <immintrin.h>
#include <cstdint>
#include <cstring>

static inline __mmask16 first_lanes(int n) {
  return n >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1u << n) - 1u);
}

static inline __m512 finish(__m512 sum, __m512 center, __m512 amount, __m512 ninth) {
  return _mm512_fmadd_ps(amount, _mm512_fnmadd_ps(sum, ninth, center), center);
}

// previous, current, next: sums of three rows for 16 columns each.
static inline __m512 three_columns(__m512 previous, __m512 current, __m512 next) {
  const __m512i c = _mm512_castps_si512(current);
  const __m512 left = _mm512_castsi512_ps(_mm512_alignr_epi32(c, _mm512_castps_si512(previous), 15));
  const __m512 right = _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(next), c, 1));
  return _mm512_add_ps(_mm512_add_ps(left, right), current);
}

static inline __m512 three_loads(const float* p, __mmask16 lanes) {
  return _mm512_add_ps(_mm512_add_ps(_mm512_maskz_loadu_ps(lanes, p - 1), _mm512_maskz_loadu_ps(lanes, p + 1)),
                       _mm512_maskz_loadu_ps(lanes, p));
}

// Pixels x to x + n - 1 (n from 1 to 16) of one inner row; the first and the last pixel of the row are copied.
static inline void piece(const float* mid, float* out, long W, long x, int n, __m512 amount, __m512 ninth) {
  const __mmask16 lanes = first_lanes(n);
  unsigned inside = lanes;
  if (x == 0) inside &= ~1u;
  if (x + n == W) inside &= ~(1u << (n - 1));
  const __mmask16 inner = (__mmask16)inside;
  const float* p = mid + x;
  const __m512 sum =
      _mm512_add_ps(_mm512_add_ps(three_loads(p - W, inner), three_loads(p, inner)), three_loads(p + W, inner));
  const __m512 center = _mm512_maskz_loadu_ps(lanes, p);
  const __m512 result = _mm512_mask_mov_ps(center, inner, finish(sum, center, amount, ninth));
  _mm512_mask_storeu_ps(out + x, lanes, result);
}

// The inner rows that begin at mid0 and at mid0 + W.
static inline void sharpen_two_rows(const float* __restrict mid0, float* __restrict out0, long W, __m512 amount,
                                    __m512 ninth) {
  const float* up = mid0 - W;
  const float* mid1 = mid0 + W;
  const float* down = mid1 + W;
  float* __restrict out1 = out0 + W;

  // Up to the first 64-byte boundary of the output row, but at least the pixel on the border.
  long x = (long)(((64 - ((std::uintptr_t)out0 & 63)) & 63) >> 2);
  if (x == 0) x = 16;
  if (x > W) x = W;
  piece(mid0, out0, W, 0, (int)x, amount, ninth);
  piece(mid1, out1, W, 0, (int)x, amount, ninth);

  // Whole vectors whose right neighbour is whole, too.
  if (x + 32 <= W) {
    const float middle = mid0[x - 1] + mid1[x - 1];
    __m512 previous0 = _mm512_set1_ps(up[x - 1] + middle);
    __m512 previous1 = _mm512_set1_ps(down[x - 1] + middle);
    __m512 center0 = _mm512_loadu_ps(mid0 + x);
    __m512 center1 = _mm512_loadu_ps(mid1 + x);
    const __m512 both = _mm512_add_ps(center0, center1);
    __m512 current0 = _mm512_add_ps(_mm512_loadu_ps(up + x), both);
    __m512 current1 = _mm512_add_ps(_mm512_loadu_ps(down + x), both);

    const long distance = 512;
    for (; x + 32 <= W; x += 16) {
      // What is new to this pair of rows, 2 KiB ahead; past their end, what is new to the next pair.
      const long there = (x + distance + (x + distance >= W ? W : 0)) * (long)sizeof(float);
      __builtin_prefetch((const char*)mid1 + there, 0, 3);
      __builtin_prefetch((const char*)down + there, 0, 3);
      __builtin_prefetch((char*)out0 + there, 1, 3);
      __builtin_prefetch((char*)out1 + there, 1, 3);

      const __m512 next_center0 = _mm512_loadu_ps(mid0 + x + 16);
      const __m512 next_center1 = _mm512_loadu_ps(mid1 + x + 16);
      const __m512 next_both = _mm512_add_ps(next_center0, next_center1);
      const __m512 next0 = _mm512_add_ps(_mm512_loadu_ps(up + x + 16), next_both);
      const __m512 next1 = _mm512_add_ps(_mm512_loadu_ps(down + x + 16), next_both);
      _mm512_storeu_ps(out0 + x, finish(three_columns(previous0, current0, next0), center0, amount, ninth));
      _mm512_storeu_ps(out1 + x, finish(three_columns(previous1, current1, next1), center1, amount, ninth));
      previous0 = current0;
      previous1 = current1;
      current0 = next0;
      current1 = next1;
      center0 = next_center0;
      center1 = next_center1;
    }
  }

  // At most 31 pixels are left.
  while (x < W) {
    const int n = W - x < 16 ? (int)(W - x) : 16;
    piece(mid0, out0, W, x, n, amount, ninth);
    piece(mid1, out1, W, x, n, amount, ninth);
    x += n;
  }
}

//@ launch sharpen(in, amount, out, H, W)
void sharpen(const float* in, float amount, float* out, int H, int W) {
  if (H <= 0 || W <= 0) return;
  const long width = W;
  const __m512 factor = _mm512_set1_ps(amount);
  const __m512 ninth = _mm512_set1_ps(1.0f / 9.0f);

  std::memcpy(out, in, (std::size_t)W * sizeof(float));
  int y = 1;
  for (; y + 1 < H - 1; y += 2) {
    sharpen_two_rows(in + y * width, out + y * width, width, factor, ninth);
  }
  if (y < H - 1) {
    const float* mid = in + y * width;
    float* row = out + y * width;
    for (long x = 0; x < width; x += 16) {
      const int n = width - x < 16 ? (int)(width - x) : 16;
      piece(mid, row, width, x, n, factor, ninth);
    }
  }
  if (H > 1) {
    std::memcpy(out + (H - 1) * width, in + (H - 1) * width, (std::size_t)W * sizeof(float));
  }
}
