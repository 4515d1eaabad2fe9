// Layer normalisation of every row of a row-major M x N matrix, with scale and shift per column.

#include <algorithm>
#include <cmath>
#include <cstdint>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#ifdef __AVX512F__
static inline __attribute__((always_inline)) void put(float* p, __m512 v, const bool stream) {
  if (stream) {
    _mm512_stream_ps(p, v);
  } else {
    _mm512_storeu_ps(p, v);
  }
}

static inline __mmask16 rest_mask(int rest) {
  return rest >= 16 ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << rest) - 1u);
}

// Two rows at once (they may be the same); `ahead` are the next two rows, which are only prefetched.
static inline __attribute__((always_inline)) void normalise_pair(const float* x0, const float* x1, const float* ahead,
                                                                 const float* gamma, const float* beta, float* y0,
                                                                 float* y1, int N, const bool stream) {
  const int whole = N / 64 * 64;

  __m512 a0 = _mm512_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
  __m512 b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  const float* next = ahead;
  for (int j = 0; j < whole; j += 64) {
    __builtin_prefetch(next);
    __builtin_prefetch(next + 16);
    next += 32;
    a0 = _mm512_add_ps(a0, _mm512_loadu_ps(x0 + j));
    a1 = _mm512_add_ps(a1, _mm512_loadu_ps(x0 + j + 16));
    a2 = _mm512_add_ps(a2, _mm512_loadu_ps(x0 + j + 32));
    a3 = _mm512_add_ps(a3, _mm512_loadu_ps(x0 + j + 48));
    b0 = _mm512_add_ps(b0, _mm512_loadu_ps(x1 + j));
    b1 = _mm512_add_ps(b1, _mm512_loadu_ps(x1 + j + 16));
    b2 = _mm512_add_ps(b2, _mm512_loadu_ps(x1 + j + 32));
    b3 = _mm512_add_ps(b3, _mm512_loadu_ps(x1 + j + 48));
  }
  for (int j = whole; j < N; j += 16) {
    const __mmask16 mask = rest_mask(N - j);
    a0 = _mm512_add_ps(a0, _mm512_maskz_loadu_ps(mask, x0 + j));
    b0 = _mm512_add_ps(b0, _mm512_maskz_loadu_ps(mask, x1 + j));
  }
  const float sum0 = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a0, a1), _mm512_add_ps(a2, a3)));
  const float sum1 = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(b0, b1), _mm512_add_ps(b2, b3)));
  const __m512 mean0 = _mm512_set1_ps(sum0 / static_cast<float>(N));
  const __m512 mean1 = _mm512_set1_ps(sum1 / static_cast<float>(N));

  a0 = a1 = a2 = a3 = _mm512_setzero_ps();
  b0 = b1 = b2 = b3 = _mm512_setzero_ps();
  for (int j = 0; j < whole; j += 64) {
    __builtin_prefetch(next);
    __builtin_prefetch(next + 16);
    next += 32;
    const __m512 c0 = _mm512_sub_ps(_mm512_loadu_ps(x0 + j), mean0);
    const __m512 c1 = _mm512_sub_ps(_mm512_loadu_ps(x0 + j + 16), mean0);
    const __m512 c2 = _mm512_sub_ps(_mm512_loadu_ps(x0 + j + 32), mean0);
    const __m512 c3 = _mm512_sub_ps(_mm512_loadu_ps(x0 + j + 48), mean0);
    const __m512 d0 = _mm512_sub_ps(_mm512_loadu_ps(x1 + j), mean1);
    const __m512 d1 = _mm512_sub_ps(_mm512_loadu_ps(x1 + j + 16), mean1);
    const __m512 d2 = _mm512_sub_ps(_mm512_loadu_ps(x1 + j + 32), mean1);
    const __m512 d3 = _mm512_sub_ps(_mm512_loadu_ps(x1 + j + 48), mean1);
    a0 = _mm512_fmadd_ps(c0, c0, a0);
    a1 = _mm512_fmadd_ps(c1, c1, a1);
    a2 = _mm512_fmadd_ps(c2, c2, a2);
    a3 = _mm512_fmadd_ps(c3, c3, a3);
    b0 = _mm512_fmadd_ps(d0, d0, b0);
    b1 = _mm512_fmadd_ps(d1, d1, b1);
    b2 = _mm512_fmadd_ps(d2, d2, b2);
    b3 = _mm512_fmadd_ps(d3, d3, b3);
  }
  for (int j = whole; j < N; j += 16) {
    const __mmask16 mask = rest_mask(N - j);
    const __m512 c = _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, x0 + j), mean0);
    const __m512 d = _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, x1 + j), mean1);
    a0 = _mm512_fmadd_ps(c, c, a0);
    b0 = _mm512_fmadd_ps(d, d, b0);
  }
  const float squares0 = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a0, a1), _mm512_add_ps(a2, a3)));
  const float squares1 = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(b0, b1), _mm512_add_ps(b2, b3)));
  const __m512 scale0 = _mm512_set1_ps(1.0f / std::sqrt(squares0 / static_cast<float>(N) + 1e-5f));
  const __m512 scale1 = _mm512_set1_ps(1.0f / std::sqrt(squares1 / static_cast<float>(N) + 1e-5f));

  for (int j = 0; j < whole; j += 64) {
    __builtin_prefetch(next);
    __builtin_prefetch(next + 16);
    __builtin_prefetch(next + 32);
    __builtin_prefetch(next + 48);
    next += 64;
#pragma GCC unroll 4
    for (int u = 0; u < 64; u += 16) {
      const __m512 g = _mm512_loadu_ps(gamma + j + u);
      const __m512 b = _mm512_loadu_ps(beta + j + u);
      const __m512 c = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x0 + j + u), mean0), scale0);
      const __m512 d = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x1 + j + u), mean1), scale1);
      put(y0 + j + u, _mm512_fmadd_ps(c, g, b), stream);
      put(y1 + j + u, _mm512_fmadd_ps(d, g, b), stream);
    }
  }
  for (int j = whole; j < N; j += 16) {
    const __mmask16 mask = rest_mask(N - j);
    const __m512 g = _mm512_maskz_loadu_ps(mask, gamma + j);
    const __m512 b = _mm512_maskz_loadu_ps(mask, beta + j);
    const __m512 c = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x0 + j), mean0), scale0);
    const __m512 d = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x1 + j), mean1), scale1);
    _mm512_mask_storeu_ps(y0 + j, mask, _mm512_fmadd_ps(c, g, b));
    _mm512_mask_storeu_ps(y1 + j, mask, _mm512_fmadd_ps(d, g, b));
  }
}
#endif

void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
#ifdef __AVX512F__
  const int pairs = (M + 1) / 2;
  const bool stream = reinterpret_cast<std::uintptr_t>(out) % 64 == 0 && N % 16 == 0 &&
                      static_cast<long>(M) * N >= (1L << 20);
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int p = 0; p < pairs; ++p) {
      const long i0 = 2L * p;
      const long i1 = std::min(i0 + 1, static_cast<long>(M) - 1);  // an odd last row is worked on twice
      const long i2 = std::min(i0 + 2, std::max(static_cast<long>(M) - 2, 0L));
      const float* x0 = in + i0 * N;
      const float* x1 = in + i1 * N;
      const float* ahead = in + i2 * N;
      float* y0 = out + i0 * N;
      float* y1 = out + i1 * N;
      if (stream) {
        normalise_pair(x0, x1, ahead, gamma, beta, y0, y1, N, true);
      } else {
        normalise_pair(x0, x1, ahead, gamma, beta, y0, y1, N, false);
      }
    }
    _mm_sfence();
  }
#else
#pragma omp parallel for schedule(static)
  for (int i = 0; i < M; ++i) {
    const float* x = in + static_cast<long>(i) * N;
    float* y = out + static_cast<long>(i) * N;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < N; ++j) {
      sum += x[j];
    }
    const float mean = sum / static_cast<float>(N);
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (int j = 0; j < N; ++j) {
      const float centred = x[j] - mean;
      squares += centred * centred;
    }
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(N) + 1e-5f);
#pragma omp simd
    for (int j = 0; j < N; ++j) {
      y[j] = (x[j] - mean) * scale * gamma[j] + beta[j];
    }
  }
#endif
}

//@ launch layer_norm(in, gamma, beta, out, M, N)
