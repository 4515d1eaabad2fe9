// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

void sharpen(const float* __restrict in, float amount, float* __restrict out, int H, int W) {
  const float ninth = 1.0f / 9.0f;
  const std::size_t width = static_cast<std::size_t>(W);
#if defined(__AVX512F__)
  const __m512 ninths = _mm512_set1_ps(ninth);
  const __m512 amounts = _mm512_set1_ps(amount);
#endif

  for (int y = 0; y < H; ++y) {
    const float* mid = in + static_cast<std::size_t>(y) * width;
    float* o = out + static_cast<std::size_t>(y) * width;
    if (y == 0 || y == H - 1) {
      std::memcpy(o, mid, width * sizeof(float));
      continue;
    }
    const float* up = mid - width;
    const float* down = mid + width;

#if defined(__AVX512F__)
    // Up to the first pixel of the row that begins a cache line of the output.
    int x = static_cast<int>(((64 - (reinterpret_cast<std::uintptr_t>(o) & 63)) & 63) / sizeof(float));
    if (x > W) {
      x = W;
    }
    for (int k = 0; k < x; ++k) {
      if (k == 0 || k == W - 1) {
        o[k] = mid[k];
      } else {
        const float left = up[k - 1] + mid[k - 1] + down[k - 1];
        const float centre = up[k] + mid[k] + down[k];
        const float right = up[k + 1] + mid[k + 1] + down[k + 1];
        const float sum = left + centre + right;
        o[k] = mid[k] + amount * (mid[k] - sum * ninth);
      }
    }
    if (x >= W) {
      continue;
    }

    // Sums of columns: of the vector before x (only its last lane counts), at x and behind it.
    __m512 prev = _mm512_setzero_ps();
    if (x > 0) {
      prev = _mm512_set1_ps(up[x - 1] + mid[x - 1] + down[x - 1]);
    }
    const int first = W - x;
    const __mmask16 first_mask =
        first >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << first) - 1u);
    __m512 pixel = _mm512_maskz_loadu_ps(first_mask, mid + x);
    __m512 cur = _mm512_add_ps(_mm512_add_ps(_mm512_maskz_loadu_ps(first_mask, up + x), pixel),
                               _mm512_maskz_loadu_ps(first_mask, down + x));

    const float* ahead = y + 2 < H ? down + width : down;
    for (; x + 32 <= W; x += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead + x), _MM_HINT_T0);
      const __m512 next_pixel = _mm512_loadu_ps(mid + x + 16);
      const __m512 next = _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(up + x + 16), next_pixel),
                                        _mm512_loadu_ps(down + x + 16));
      const __m512 left = _mm512_castsi512_ps(
          _mm512_alignr_epi32(_mm512_castps_si512(cur), _mm512_castps_si512(prev), 15));
      const __m512 right = _mm512_castsi512_ps(
          _mm512_alignr_epi32(_mm512_castps_si512(next), _mm512_castps_si512(cur), 1));
      const __m512 sum = _mm512_add_ps(_mm512_add_ps(left, cur), right);
      __m512 result = _mm512_fmadd_ps(amounts, _mm512_fnmadd_ps(sum, ninths, pixel), pixel);
      if (x == 0) {
        result = _mm512_mask_mov_ps(result, static_cast<__mmask16>(1), pixel);
      }
      _mm512_stream_ps(o + x, result);
      prev = cur;
      cur = next;
      pixel = next_pixel;
    }

    // The last one or two vectors of the row.
    for (; x < W; x += 16) {
      const int rest = W - x;
      __m512 next_pixel = _mm512_setzero_ps();
      __m512 next = _mm512_setzero_ps();
      if (rest > 16) {
        const int behind = rest - 16;
        const __mmask16 m =
            behind >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << behind) - 1u);
        next_pixel = _mm512_maskz_loadu_ps(m, mid + x + 16);
        next = _mm512_add_ps(_mm512_add_ps(_mm512_maskz_loadu_ps(m, up + x + 16), next_pixel),
                             _mm512_maskz_loadu_ps(m, down + x + 16));
      }
      const __m512 left = _mm512_castsi512_ps(
          _mm512_alignr_epi32(_mm512_castps_si512(cur), _mm512_castps_si512(prev), 15));
      const __m512 right = _mm512_castsi512_ps(
          _mm512_alignr_epi32(_mm512_castps_si512(next), _mm512_castps_si512(cur), 1));
      const __m512 sum = _mm512_add_ps(_mm512_add_ps(left, cur), right);
      __m512 result = _mm512_fmadd_ps(amounts, _mm512_fnmadd_ps(sum, ninths, pixel), pixel);
      unsigned border = 0u;
      if (x == 0) {
        border |= 1u;
      }
      if (rest <= 16) {
        border |= 1u << (rest - 1);
      }
      result = _mm512_mask_mov_ps(result, static_cast<__mmask16>(border), pixel);
      if (rest >= 16) {
        _mm512_stream_ps(o + x, result);
      } else {
        _mm512_mask_storeu_ps(o + x, static_cast<__mmask16>((1u << rest) - 1u), result);
      }
      prev = cur;
      cur = next;
      pixel = next_pixel;
    }
#else
    o[0] = mid[0];
#pragma omp simd
    for (int x = 1; x < W - 1; ++x) {
      const float left = up[x - 1] + mid[x - 1] + down[x - 1];
      const float centre = up[x] + mid[x] + down[x];
      const float right = up[x + 1] + mid[x + 1] + down[x + 1];
      const float sum = left + centre + right;
      o[x] = mid[x] + amount * (mid[x] - sum * ninth);
    }
    o[W - 1] = mid[W - 1];
#endif
  }
#if defined(__AVX512F__)
  _mm_sfence();
#endif
}

//@ launch sharpen(in, amount, out, H, W)
