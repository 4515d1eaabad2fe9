// Layer normalisation of every row of a row-major M x N matrix, with scale and shift per column.

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

//@ launch layer_norm(in, gamma, beta, out, M, N)

template <bool kStream>
static inline void put(float* to, __m512 value) {
  if (kStream) {
    _mm512_stream_ps(to, value);
  } else {
    _mm512_storeu_ps(to, value);
  }
}

static inline float add_up(__m512 a0, __m512 a1, __m512 a2, __m512 a3) {
  return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a0, a1), _mm512_add_ps(a2, a3)));
}

// Sum of one row; only for the rows before the pipeline is full.
static inline float row_sum(const float* x, long n) {
  __m512 a0 = _mm512_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
  long j = 0;
  for (; j + 64 <= n; j += 64) {
    a0 = _mm512_add_ps(a0, _mm512_loadu_ps(x + j));
    a1 = _mm512_add_ps(a1, _mm512_loadu_ps(x + j + 16));
    a2 = _mm512_add_ps(a2, _mm512_loadu_ps(x + j + 32));
    a3 = _mm512_add_ps(a3, _mm512_loadu_ps(x + j + 48));
  }
  for (; j + 16 <= n; j += 16) a0 = _mm512_add_ps(a0, _mm512_loadu_ps(x + j));
  if (j < n) {
    const __mmask16 last = static_cast<__mmask16>((1u << (n - j)) - 1u);
    a1 = _mm512_add_ps(a1, _mm512_maskz_loadu_ps(last, x + j));
  }
  return add_up(a0, a1, a2, a3);
}

// Sum of the squared deviations of one row; only for the rows before the pipeline is full.
static inline float row_squares(const float* x, long n, __m512 mean) {
  __m512 a0 = _mm512_setzero_ps(), a1 = a0;
  long j = 0;
  for (; j + 32 <= n; j += 32) {
    const __m512 c0 = _mm512_sub_ps(_mm512_loadu_ps(x + j), mean);
    const __m512 c1 = _mm512_sub_ps(_mm512_loadu_ps(x + j + 16), mean);
    a0 = _mm512_fmadd_ps(c0, c0, a0);
    a1 = _mm512_fmadd_ps(c1, c1, a1);
  }
  for (; j + 16 <= n; j += 16) {
    const __m512 c = _mm512_sub_ps(_mm512_loadu_ps(x + j), mean);
    a0 = _mm512_fmadd_ps(c, c, a0);
  }
  if (j < n) {
    const __mmask16 last = static_cast<__mmask16>((1u << (n - j)) - 1u);
    const __m512 c = _mm512_maskz_sub_ps(last, _mm512_maskz_loadu_ps(last, x + j), mean);
    a1 = _mm512_fmadd_ps(c, c, a1);
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(a0, a1));
}

// 16 columns: result of row x, squared deviations of row v, sum of row u, prefetch of row p.
template <bool kStream>
static inline __attribute__((always_inline)) void step(const float* x, const float* v, const float* u, const float* p,
                                                       const float* g, const float* b, float* y, __m512 mean_x,
                                                       __m512 scale_x, __m512 mean_v, __m512& sum, __m512& squares) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  sum = _mm512_add_ps(sum, _mm512_loadu_ps(u));
  const __m512 cv = _mm512_sub_ps(_mm512_loadu_ps(v), mean_v);
  squares = _mm512_fmadd_ps(cv, cv, squares);
  const __m512 cx = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x), mean_x), scale_x);
  put<kStream>(y, _mm512_fmadd_ps(cx, _mm512_loadu_ps(g), _mm512_loadu_ps(b)));
}

// The same for the columns of a mask.
static inline __attribute__((always_inline)) void step_some(__mmask16 some, const float* x, const float* v,
                                                            const float* u, const float* p, const float* g,
                                                            const float* b, float* y, __m512 mean_x, __m512 scale_x,
                                                            __m512 mean_v, __m512& sum, __m512& squares) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(some, u));
  const __m512 cv = _mm512_maskz_sub_ps(some, _mm512_maskz_loadu_ps(some, v), mean_v);
  squares = _mm512_fmadd_ps(cv, cv, squares);
  const __m512 cx = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(some, x), mean_x), scale_x);
  _mm512_mask_storeu_ps(y, some,
                        _mm512_fmadd_ps(cx, _mm512_maskz_loadu_ps(some, g), _mm512_maskz_loadu_ps(some, b)));
}

// kStream: n is a multiple of 16, and head elements of every row lie before its first full cache line.
template <bool kStream>
static void norm_rows(const float* in, const float* gamma, const float* beta, float* out, long m, long n, long head) {
  const float count = static_cast<float>(n);
  const long bottom = m - 1;

  __m512 mean_x = _mm512_set1_ps(row_sum(in, n) / count);
  __m512 scale_x = _mm512_set1_ps(1.0f / std::sqrt(row_squares(in, n, mean_x) / count + 1e-5f));
  __m512 mean_v = _mm512_set1_ps(row_sum(in + std::min(1L, bottom) * n, n) / count);

  for (long i = 0; i < m; ++i) {
    // Behind the last row the later stages take the last row once more; nobody uses what they find.
    const float* x = in + i * n;
    const float* v = in + std::min(i + 1, bottom) * n;
    const float* u = in + std::min(i + 2, bottom) * n;
    const float* p = in + std::min(i + 4, bottom) * n;
    float* y = out + i * n;

    __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    __m512 q0 = s0, q1 = s0, q2 = s0, q3 = s0;
    long j = 0;
    if (kStream && head) {
      const __mmask16 first = static_cast<__mmask16>((1u << head) - 1u);
      step_some(first, x, v, u, p, gamma, beta, y, mean_x, scale_x, mean_v, s3, q3);
      j = head;
    }
    for (; j + 64 <= n; j += 64) {
      step<kStream>(x + j, v + j, u + j, p + j, gamma + j, beta + j, y + j, mean_x, scale_x, mean_v, s0, q0);
      step<kStream>(x + j + 16, v + j + 16, u + j + 16, p + j + 16, gamma + j + 16, beta + j + 16, y + j + 16, mean_x,
                    scale_x, mean_v, s1, q1);
      step<kStream>(x + j + 32, v + j + 32, u + j + 32, p + j + 32, gamma + j + 32, beta + j + 32, y + j + 32, mean_x,
                    scale_x, mean_v, s2, q2);
      step<kStream>(x + j + 48, v + j + 48, u + j + 48, p + j + 48, gamma + j + 48, beta + j + 48, y + j + 48, mean_x,
                    scale_x, mean_v, s3, q3);
    }
    for (; j + 16 <= n; j += 16) {
      step<kStream>(x + j, v + j, u + j, p + j, gamma + j, beta + j, y + j, mean_x, scale_x, mean_v, s0, q0);
    }
    if (j < n) {
      const __mmask16 last = static_cast<__mmask16>((1u << (n - j)) - 1u);
      step_some(last, x + j, v + j, u + j, p + j, gamma + j, beta + j, y + j, mean_x, scale_x, mean_v, s1, q1);
    }

    // Row i + 1 is complete now, and row i + 2 has its mean.
    const float squares = add_up(q0, q1, q2, q3);
    const float sum = add_up(s0, s1, s2, s3);
    mean_x = mean_v;
    scale_x = _mm512_set1_ps(1.0f / std::sqrt(squares / count + 1e-5f));
    mean_v = _mm512_set1_ps(sum / count);
  }
}

void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
  const long m = M;
  const long n = N;
  if (m <= 0 || n <= 0) return;
  if (n % 16 == 0 && m * n >= (1L << 20)) {
    const long head = static_cast<long>(((64 - (reinterpret_cast<std::uintptr_t>(out) & 63)) & 63) / sizeof(float));
    norm_rows<true>(in, gamma, beta, out, m, n, head);
    _mm_sfence();
  } else {
    norm_rows<false>(in, gamma, beta, out, m, n, 0);
  }
}
