// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.
#include <immintrin.h>
#include <cstdint>
#include <cstring>

static inline __mmask16 first_lanes(int n) {
  return n >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1u << n) - 1u);
}

// previous, current, next: sums of three rows for 16 columns each; lanes that are not in `inner` keep `center`.
static inline __m512 filter(__m512 previous, __m512 current, __m512 next, __m512 center, __m512 amount,
                            __m512 ninth, __mmask16 inner) {
  const __m512i c = _mm512_castps_si512(current);
  const __m512 left = _mm512_castsi512_ps(_mm512_alignr_epi32(c, _mm512_castps_si512(previous), 15));
  const __m512 right = _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(next), c, 1));
  const __m512 sum = _mm512_add_ps(_mm512_add_ps(left, right), current);
  const __m512 lack = _mm512_fnmadd_ps(sum, ninth, center);
  return _mm512_mask3_fmadd_ps(amount, lack, center, inner);
}

static inline void sharpen_row(const float* __restrict up, const float* __restrict mid,
                               const float* __restrict down, const float* ahead, float* __restrict out,
                               float amount, int W) {
  // Up to the first 64-byte boundary of the output row.
  int lead = (int)(((64 - ((std::uintptr_t)out & 63)) & 63) >> 2);
  if (lead > W) lead = W;
  for (int x = 0; x < lead; ++x) {
    if (x == 0 || x == W - 1) {
      out[x] = mid[x];
    } else {
      const float left = up[x - 1] + mid[x - 1] + down[x - 1];
      const float current = up[x] + mid[x] + down[x];
      const float right = up[x + 1] + mid[x + 1] + down[x + 1];
      const float lack = mid[x] - (left + right + current) * (1.0f / 9.0f);
      out[x] = mid[x] + amount * lack;
    }
  }
  if (lead >= W) return;

  const __m512 factor = _mm512_set1_ps(amount);
  const __m512 ninth = _mm512_set1_ps(1.0f / 9.0f);
  int x = lead;
  __m512 previous = _mm512_setzero_ps();
  __mmask16 inner = 0xFFFE;
  if (x > 0) {
    previous = _mm512_set1_ps(up[x - 1] + mid[x - 1] + down[x - 1]);
    inner = 0xFFFF;
  }
  const __mmask16 start = first_lanes(W - x);
  __m512 center = _mm512_maskz_loadu_ps(start, mid + x);
  __m512 current = _mm512_add_ps(_mm512_add_ps(_mm512_maskz_loadu_ps(start, up + x), center),
                                 _mm512_maskz_loadu_ps(start, down + x));

  // Whole vectors whose right neighbour is whole, too.
  for (; x + 32 <= W; x += 16) {
    _mm_prefetch((const char*)(ahead + x), _MM_HINT_T0);
    const __m512 next_center = _mm512_loadu_ps(mid + x + 16);
    const __m512 next = _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(up + x + 16), next_center),
                                      _mm512_loadu_ps(down + x + 16));
    _mm512_stream_ps(out + x, filter(previous, current, next, center, factor, ninth, inner));
    previous = current;
    current = next;
    center = next_center;
    inner = 0xFFFF;
  }

  // At most 31 pixels are left.
  while (x < W) {
    const int left_over = W - x;
    __m512 next_center = _mm512_setzero_ps();
    __m512 next = _mm512_setzero_ps();
    _mm_prefetch((const char*)(ahead + x), _MM_HINT_T0);
    if (left_over > 16) {
      const __mmask16 lanes = first_lanes(left_over - 16);
      next_center = _mm512_maskz_loadu_ps(lanes, mid + x + 16);
      next = _mm512_add_ps(_mm512_add_ps(_mm512_maskz_loadu_ps(lanes, up + x + 16), next_center),
                           _mm512_maskz_loadu_ps(lanes, down + x + 16));
    } else {
      inner = (__mmask16)(inner & ~(1u << (left_over - 1)));
    }
    const __m512 result = filter(previous, current, next, center, factor, ninth, inner);
    if (left_over >= 16) {
      _mm512_stream_ps(out + x, result);
    } else {
      _mm512_mask_storeu_ps(out + x, first_lanes(left_over), result);
    }
    previous = current;
    current = next;
    center = next_center;
    inner = 0xFFFF;
    x += 16;
  }
}

//@ launch sharpen(in, amount, out, H, W)
void sharpen(const float* in, float amount, float* out, int H, int W) {
  if (H <= 0 || W <= 0) return;
  std::memcpy(out, in, (std::size_t)W * sizeof(float));
  for (int y = 1; y < H - 1; ++y) {
    const float* mid = in + (long)y * W;
    const float* down = mid + W;
    const float* ahead = y + 2 < H ? down + W : down;
    sharpen_row(mid - W, mid, down, ahead, out + (long)y * W, amount, W);
  }
  if (H > 1) {
    std::memcpy(out + (long)(H - 1) * W, in + (long)(H - 1) * W, (std::size_t)W * sizeof(float));
  }
  _mm_sfence();
}
