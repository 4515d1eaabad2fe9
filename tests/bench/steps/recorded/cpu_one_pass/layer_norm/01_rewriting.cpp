// Layer normalisation of every row of a row-major M x N matrix, with scale and shift per column.

#include <cmath>
#include <immintrin.h>

static inline __mmask16 first_lanes(int n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}

static inline float row_sum(const float* x, int N) {
  __m512 s0 = _mm512_setzero_ps();
  __m512 s1 = _mm512_setzero_ps();
  __m512 s2 = _mm512_setzero_ps();
  __m512 s3 = _mm512_setzero_ps();
  int j = 0;
  for (; j + 64 <= N; j += 64) {
    s0 = _mm512_add_ps(s0, _mm512_loadu_ps(x + j));
    s1 = _mm512_add_ps(s1, _mm512_loadu_ps(x + j + 16));
    s2 = _mm512_add_ps(s2, _mm512_loadu_ps(x + j + 32));
    s3 = _mm512_add_ps(s3, _mm512_loadu_ps(x + j + 48));
  }
  for (; j + 16 <= N; j += 16) {
    s0 = _mm512_add_ps(s0, _mm512_loadu_ps(x + j));
  }
  if (j < N) {
    s1 = _mm512_add_ps(s1, _mm512_maskz_loadu_ps(first_lanes(N - j), x + j));
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
}

// The sum of the squared distances from the mean; fetches the even lines of the row at ahead.
static inline float row_squares(const float* x, float mean, int N, const float* ahead) {
  const __m512 m = _mm512_set1_ps(mean);
  __m512 s0 = _mm512_setzero_ps();
  __m512 s1 = _mm512_setzero_ps();
  __m512 s2 = _mm512_setzero_ps();
  __m512 s3 = _mm512_setzero_ps();
  int j = 0;
  for (; j + 64 <= N; j += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + j), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(ahead + j + 32), _MM_HINT_T0);
    const __m512 c0 = _mm512_sub_ps(_mm512_loadu_ps(x + j), m);
    const __m512 c1 = _mm512_sub_ps(_mm512_loadu_ps(x + j + 16), m);
    const __m512 c2 = _mm512_sub_ps(_mm512_loadu_ps(x + j + 32), m);
    const __m512 c3 = _mm512_sub_ps(_mm512_loadu_ps(x + j + 48), m);
    s0 = _mm512_fmadd_ps(c0, c0, s0);
    s1 = _mm512_fmadd_ps(c1, c1, s1);
    s2 = _mm512_fmadd_ps(c2, c2, s2);
    s3 = _mm512_fmadd_ps(c3, c3, s3);
  }
  for (; j + 16 <= N; j += 16) {
    const __m512 c = _mm512_sub_ps(_mm512_loadu_ps(x + j), m);
    s0 = _mm512_fmadd_ps(c, c, s0);
  }
  if (j < N) {
    const __mmask16 k = first_lanes(N - j);
    const __m512 c = _mm512_maskz_sub_ps(k, _mm512_maskz_loadu_ps(k, x + j), m);
    s1 = _mm512_fmadd_ps(c, c, s1);
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
}

static inline __m512 normalised(__m512 x, __m512 mean, __m512 scale, __m512 gamma, __m512 beta) {
  return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_sub_ps(x, mean), scale), gamma, beta);
}

// Writes one row; fetches the odd lines of the row at ahead.
template <bool Stream>
static inline void row_write(const float* x, const float* gamma, const float* beta, float* y, float mean,
                             float scale, int N, const float* ahead) {
  const __m512 m = _mm512_set1_ps(mean);
  const __m512 f = _mm512_set1_ps(scale);
  int j = 0;
  if (Stream) {
    // Up to the first whole line of y.
    int head = static_cast<int>((64u - (reinterpret_cast<unsigned long long>(y) & 63u)) & 63u) / 4;
    if (head > N) head = N;
    if (head > 0) {
      const __mmask16 k = first_lanes(head);
      _mm512_mask_storeu_ps(y, k,
                            normalised(_mm512_maskz_loadu_ps(k, x), m, f, _mm512_maskz_loadu_ps(k, gamma),
                                       _mm512_maskz_loadu_ps(k, beta)));
    }
    j = head;
  }
  for (; j + 32 <= N; j += 32) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + j + 16), _MM_HINT_T0);
    const __m512 y0 = normalised(_mm512_loadu_ps(x + j), m, f, _mm512_loadu_ps(gamma + j),
                                 _mm512_loadu_ps(beta + j));
    const __m512 y1 = normalised(_mm512_loadu_ps(x + j + 16), m, f, _mm512_loadu_ps(gamma + j + 16),
                                 _mm512_loadu_ps(beta + j + 16));
    if (Stream) {
      _mm512_stream_ps(y + j, y0);
      _mm512_stream_ps(y + j + 16, y1);
    } else {
      _mm512_storeu_ps(y + j, y0);
      _mm512_storeu_ps(y + j + 16, y1);
    }
  }
  if (j + 16 <= N) {
    const __m512 y0 = normalised(_mm512_loadu_ps(x + j), m, f, _mm512_loadu_ps(gamma + j),
                                 _mm512_loadu_ps(beta + j));
    if (Stream) {
      _mm512_stream_ps(y + j, y0);
    } else {
      _mm512_storeu_ps(y + j, y0);
    }
    j += 16;
  }
  if (j < N) {
    const __mmask16 k = first_lanes(N - j);
    _mm512_mask_storeu_ps(y + j, k,
                          normalised(_mm512_maskz_loadu_ps(k, x + j), m, f, _mm512_maskz_loadu_ps(k, gamma + j),
                                     _mm512_maskz_loadu_ps(k, beta + j)));
  }
}

template <bool Stream>
static inline void all_rows(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    const float* x = in + static_cast<long>(i) * N;
    float* y = out + static_cast<long>(i) * N;
    const float* ahead = in + static_cast<long>(i + 2 < M ? i + 2 : M - 1) * N;
    const float mean = row_sum(x, N) / static_cast<float>(N);
    const float squares = row_squares(x, mean, N, ahead);
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(N) + 1e-5f);
    row_write<Stream>(x, gamma, beta, y, mean, scale, N, ahead);
  }
}

void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
  if (static_cast<long>(M) * N >= (1L << 21)) {
    // The output would not stay in the caches: write around them.
    all_rows<true>(in, gamma, beta, out, M, N);
    _mm_sfence();
  } else {
    all_rows<false>(in, gamma, beta, out, M, N);
  }
}

//@ launch layer_norm(in, gamma, beta, out, M, N)
