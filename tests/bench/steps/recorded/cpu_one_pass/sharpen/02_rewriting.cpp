// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.
#include <immintrin.h>
#include <algorithm>
#include <cstdint>

static inline __attribute__((always_inline)) __m512 sharpened(__m512 center, __m512 sum, __m512 amount) {
  const __m512 mean = _mm512_div_ps(sum, _mm512_set1_ps(9.0f));
  return _mm512_fmadd_ps(amount, _mm512_sub_ps(center, mean), center);
}

// Pixels x to x + n - 1 (n <= 16) of one inner row, with those on the left and right border among them.
template <bool STREAM>
static void edge(const float* row, float* out, int x, int n, long W, float amount) {
  const int low = x < 1 ? 1 - x : 0;
  const int high = std::min((long)n, W - 1 - x);
  const __mmask16 all = (__mmask16)((1u << n) - 1u);
  const __mmask16 inner = (__mmask16)(((1u << high) - 1u) & ~((1u << low) - 1u));
  __m512 sum = _mm512_setzero_ps();
  const float* p = row - W + x;
  for (int dy = 0; dy < 3; ++dy) {
    const __m512 left = _mm512_maskz_loadu_ps(inner, p - 1);
    const __m512 middle = _mm512_maskz_loadu_ps(inner, p);
    const __m512 right = _mm512_maskz_loadu_ps(inner, p + 1);
    sum = _mm512_add_ps(sum, _mm512_add_ps(_mm512_add_ps(left, middle), right));
    p += W;
  }
  const __m512 center = _mm512_maskz_loadu_ps(all, row + x);
  const __m512 result = _mm512_mask_mov_ps(center, inner, sharpened(center, sum, _mm512_set1_ps(amount)));
  float* o = out + x;
  if (STREAM && n == 16 && ((uintptr_t)o & 63) == 0) {
    _mm512_stream_ps(o, result);
  } else {
    _mm512_mask_storeu_ps(o, all, result);
  }
}

// ROWS inner rows, the first of which begins at `in` and `out`; the first `head` pixels (1 to 16) of a row come
// from `edge`, behind them the vectors are aligned where they are streamed.
template <int ROWS, bool STREAM>
static void sharpen_rows(const float* in, float* out, long W, int head, float amount) {
  const int first = (int)std::min((long)head, W);
  for (int r = 0; r < ROWS; ++r) edge<STREAM>(in + r * W, out + r * W, 0, first, W, amount);
  const __m512 factor = _mm512_set1_ps(amount);
  long x = first;
  for (; x + 16 <= W - 1; x += 16) {
    const float* p = in + x - W;
    float* o = out + x;
    __m512 above = _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(p - 1), _mm512_loadu_ps(p)), _mm512_loadu_ps(p + 1));
    p += W;
    __m512 center = _mm512_loadu_ps(p);
    __m512 here = _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(p - 1), center), _mm512_loadu_ps(p + 1));
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; ++r) {
      p += W;
      _mm_prefetch((const char*)p + 1024, _MM_HINT_T0);
      const __m512 next = _mm512_loadu_ps(p);
      const __m512 below = _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(p - 1), next), _mm512_loadu_ps(p + 1));
      const __m512 result = sharpened(center, _mm512_add_ps(_mm512_add_ps(above, here), below), factor);
      if (STREAM) {
        _mm512_stream_ps(o, result);
      } else {
        _mm512_storeu_ps(o, result);
      }
      o += W;
      above = here;
      here = below;
      center = next;
    }
  }
  if (x < W) {
    for (int r = 0; r < ROWS; ++r) edge<STREAM>(in + r * W, out + r * W, (int)x, (int)(W - x), W, amount);
  }
}

template <bool STREAM>
static void sharpen_block(const float* in, float* out, int begin, int end, long W, int head, float amount) {
  if (end - begin == 4) {
    sharpen_rows<4, STREAM>(in + begin * W, out + begin * W, W, head, amount);
  } else {
    for (int y = begin; y < end; ++y) sharpen_rows<1, STREAM>(in + y * W, out + y * W, W, head, amount);
  }
}

static void copy_row(const float* in, float* out, long W) {
#pragma omp simd
  for (long x = 0; x < W; ++x) out[x] = in[x];
}

void sharpen(const float* in, float amount, float* out, int H, int W) {
  const long width = W;
  const int blocks = H > 2 ? (H - 2 + 3) / 4 : 0;
  const bool stream = W % 16 == 0 && H * width >= (1L << 20);
  const int head = stream ? 16 - (int)(((uintptr_t)out / sizeof(float)) % 16) : 16;
  copy_row(in, out, width);
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int b = 0; b < blocks; ++b) {
      const int begin = 1 + b * 4;
      const int end = std::min(begin + 4, H - 1);
      if (stream) {
        sharpen_block<true>(in, out, begin, end, width, head, amount);
      } else {
        sharpen_block<false>(in, out, begin, end, width, head, amount);
      }
    }
    _mm_sfence();
  }
  if (H > 1) copy_row(in + (H - 1) * width, out + (H - 1) * width, width);
}

//@ launch sharpen(in, amount, out, H, W)
