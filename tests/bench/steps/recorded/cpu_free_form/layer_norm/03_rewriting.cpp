// Layer normalisation of every row of a row-major M x N matrix, with scale and shift per column.

#include <cmath>
#include <cstddef>
#include <immintrin.h>

static inline float row_sum(const float* row, int N) {
  __m512 s0 = _mm512_setzero_ps();
  __m512 s1 = _mm512_setzero_ps();
  __m512 s2 = _mm512_setzero_ps();
  __m512 s3 = _mm512_setzero_ps();
  int j = 0;
  for (; j + 64 <= N; j += 64) {
    s0 = _mm512_add_ps(s0, _mm512_loadu_ps(row + j));
    s1 = _mm512_add_ps(s1, _mm512_loadu_ps(row + j + 16));
    s2 = _mm512_add_ps(s2, _mm512_loadu_ps(row + j + 32));
    s3 = _mm512_add_ps(s3, _mm512_loadu_ps(row + j + 48));
  }
  for (; j + 16 <= N; j += 16) {
    s0 = _mm512_add_ps(s0, _mm512_loadu_ps(row + j));
  }
  if (j < N) {
    const __mmask16 mask = static_cast<__mmask16>((1u << (N - j)) - 1u);
    s1 = _mm512_add_ps(s1, _mm512_maskz_loadu_ps(mask, row + j));
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
}

// `next` is the row that will be read after this one; it is brought into the cache on the way.
static inline float row_squares(const float* row, const float* next, float mean, int N) {
  const __m512 m = _mm512_set1_ps(mean);
  __m512 s0 = _mm512_setzero_ps();
  __m512 s1 = _mm512_setzero_ps();
  __m512 s2 = _mm512_setzero_ps();
  __m512 s3 = _mm512_setzero_ps();
  int j = 0;
  for (; j + 64 <= N; j += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(next + j), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(next + j + 16), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(next + j + 32), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(next + j + 48), _MM_HINT_T0);
    const __m512 c0 = _mm512_sub_ps(_mm512_loadu_ps(row + j), m);
    const __m512 c1 = _mm512_sub_ps(_mm512_loadu_ps(row + j + 16), m);
    const __m512 c2 = _mm512_sub_ps(_mm512_loadu_ps(row + j + 32), m);
    const __m512 c3 = _mm512_sub_ps(_mm512_loadu_ps(row + j + 48), m);
    s0 = _mm512_fmadd_ps(c0, c0, s0);
    s1 = _mm512_fmadd_ps(c1, c1, s1);
    s2 = _mm512_fmadd_ps(c2, c2, s2);
    s3 = _mm512_fmadd_ps(c3, c3, s3);
  }
  for (; j + 16 <= N; j += 16) {
    const __m512 c = _mm512_sub_ps(_mm512_loadu_ps(row + j), m);
    s0 = _mm512_fmadd_ps(c, c, s0);
  }
  if (j < N) {
    const __mmask16 mask = static_cast<__mmask16>((1u << (N - j)) - 1u);
    const __m512 c = _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, row + j), m);
    s1 = _mm512_fmadd_ps(c, c, s1);
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
}

void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    const float* row = in + static_cast<std::size_t>(i) * N;
    const float* next = i + 1 < M ? row + N : row;
    float* dst = out + static_cast<std::size_t>(i) * N;
    const float mean = row_sum(row, N) / static_cast<float>(N);
    const float squares = row_squares(row, next, mean, N);
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(N) + 1e-5f);
    for (int j = 0; j < N; ++j) {
      dst[j] = (row[j] - mean) * scale * gamma[j] + beta[j];
    }
  }
}

//@ launch layer_norm(in, gamma, beta, out, M, N)
