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

static inline void fetch_line(const float* from) {
  _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T0);
}

// kStream: n is a multiple of 16, and head elements of every row lie before its first full cache line.
template <bool kStream>
static void norm_rows(const float* in, const float* gamma, const float* beta, float* out, long m, long n, long head) {
  const long n64 = n & ~63L;
  const long n16 = n & ~15L;
  const __mmask16 rest = static_cast<__mmask16>((1u << (n & 15)) - 1u);
  const float count = static_cast<float>(n);

  for (long i = 0; i < m; i += 2) {
    // With an odd number of rows the last one is computed twice, with the same result.
    const long k = std::min(i + 1, m - 1);
    const float* xa = in + i * n;
    const float* xb = in + k * n;
    float* ya = out + i * n;
    float* yb = out + k * n;
    const float* pa = in + std::min(i + 4, m - 1) * n;
    const float* pb = in + std::min(i + 5, m - 1) * n;

    // Mean.
    __m512 a0 = _mm512_setzero_ps(), a1 = a0, a2 = a0, a3 = a0;
    __m512 b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    long j = 0;
    for (; j < n64; j += 64) {
      a0 = _mm512_add_ps(a0, _mm512_loadu_ps(xa + j));
      b0 = _mm512_add_ps(b0, _mm512_loadu_ps(xb + j));
      a1 = _mm512_add_ps(a1, _mm512_loadu_ps(xa + j + 16));
      b1 = _mm512_add_ps(b1, _mm512_loadu_ps(xb + j + 16));
      a2 = _mm512_add_ps(a2, _mm512_loadu_ps(xa + j + 32));
      b2 = _mm512_add_ps(b2, _mm512_loadu_ps(xb + j + 32));
      a3 = _mm512_add_ps(a3, _mm512_loadu_ps(xa + j + 48));
      b3 = _mm512_add_ps(b3, _mm512_loadu_ps(xb + j + 48));
    }
    for (; j < n16; j += 16) {
      a0 = _mm512_add_ps(a0, _mm512_loadu_ps(xa + j));
      b0 = _mm512_add_ps(b0, _mm512_loadu_ps(xb + j));
    }
    if (rest) {
      a1 = _mm512_add_ps(a1, _mm512_maskz_loadu_ps(rest, xa + j));
      b1 = _mm512_add_ps(b1, _mm512_maskz_loadu_ps(rest, xb + j));
    }
    const float sum_a = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a0, a1), _mm512_add_ps(a2, a3)));
    const float sum_b = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(b0, b1), _mm512_add_ps(b2, b3)));
    const __m512 mean_a = _mm512_set1_ps(sum_a / count);
    const __m512 mean_b = _mm512_set1_ps(sum_b / count);

    // Variance, from the rows in L1.
    a0 = a1 = a2 = a3 = _mm512_setzero_ps();
    b0 = b1 = b2 = b3 = _mm512_setzero_ps();
    j = 0;
    for (; j < n64; j += 64) {
      fetch_line(pa + j);
      fetch_line(pa + j + 16);
      fetch_line(pa + j + 32);
      fetch_line(pa + j + 48);
      const __m512 ca0 = _mm512_sub_ps(_mm512_loadu_ps(xa + j), mean_a);
      const __m512 cb0 = _mm512_sub_ps(_mm512_loadu_ps(xb + j), mean_b);
      const __m512 ca1 = _mm512_sub_ps(_mm512_loadu_ps(xa + j + 16), mean_a);
      const __m512 cb1 = _mm512_sub_ps(_mm512_loadu_ps(xb + j + 16), mean_b);
      const __m512 ca2 = _mm512_sub_ps(_mm512_loadu_ps(xa + j + 32), mean_a);
      const __m512 cb2 = _mm512_sub_ps(_mm512_loadu_ps(xb + j + 32), mean_b);
      const __m512 ca3 = _mm512_sub_ps(_mm512_loadu_ps(xa + j + 48), mean_a);
      const __m512 cb3 = _mm512_sub_ps(_mm512_loadu_ps(xb + j + 48), mean_b);
      a0 = _mm512_fmadd_ps(ca0, ca0, a0);
      b0 = _mm512_fmadd_ps(cb0, cb0, b0);
      a1 = _mm512_fmadd_ps(ca1, ca1, a1);
      b1 = _mm512_fmadd_ps(cb1, cb1, b1);
      a2 = _mm512_fmadd_ps(ca2, ca2, a2);
      b2 = _mm512_fmadd_ps(cb2, cb2, b2);
      a3 = _mm512_fmadd_ps(ca3, ca3, a3);
      b3 = _mm512_fmadd_ps(cb3, cb3, b3);
    }
    for (; j < n16; j += 16) {
      const __m512 ca = _mm512_sub_ps(_mm512_loadu_ps(xa + j), mean_a);
      const __m512 cb = _mm512_sub_ps(_mm512_loadu_ps(xb + j), mean_b);
      a0 = _mm512_fmadd_ps(ca, ca, a0);
      b0 = _mm512_fmadd_ps(cb, cb, b0);
    }
    if (rest) {
      const __m512 ca = _mm512_maskz_sub_ps(rest, _mm512_maskz_loadu_ps(rest, xa + j), mean_a);
      const __m512 cb = _mm512_maskz_sub_ps(rest, _mm512_maskz_loadu_ps(rest, xb + j), mean_b);
      a1 = _mm512_fmadd_ps(ca, ca, a1);
      b1 = _mm512_fmadd_ps(cb, cb, b1);
    }
    const float squares_a = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a0, a1), _mm512_add_ps(a2, a3)));
    const float squares_b = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(b0, b1), _mm512_add_ps(b2, b3)));
    const __m512 scale_a = _mm512_set1_ps(1.0f / std::sqrt(squares_a / count + 1e-5f));
    const __m512 scale_b = _mm512_set1_ps(1.0f / std::sqrt(squares_b / count + 1e-5f));

    // Result.
    j = 0;
    if (kStream && head) {
      const __mmask16 first = static_cast<__mmask16>((1u << head) - 1u);
      const __m512 g = _mm512_maskz_loadu_ps(first, gamma);
      const __m512 s = _mm512_maskz_loadu_ps(first, beta);
      const __m512 ca = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(first, xa), mean_a), scale_a);
      const __m512 cb = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(first, xb), mean_b), scale_b);
      _mm512_mask_storeu_ps(ya, first, _mm512_fmadd_ps(ca, g, s));
      _mm512_mask_storeu_ps(yb, first, _mm512_fmadd_ps(cb, g, s));
      j = head;
    }
#pragma GCC unroll 4
    for (; j + 16 <= n; j += 16) {
      fetch_line(pb + j);
      const __m512 g = _mm512_loadu_ps(gamma + j);
      const __m512 s = _mm512_loadu_ps(beta + j);
      const __m512 ca = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(xa + j), mean_a), scale_a);
      const __m512 cb = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(xb + j), mean_b), scale_b);
      put<kStream>(ya + j, _mm512_fmadd_ps(ca, g, s));
      put<kStream>(yb + j, _mm512_fmadd_ps(cb, g, s));
    }
    if (j < n) {
      const __mmask16 last = static_cast<__mmask16>((1u << (n - j)) - 1u);
      const __m512 g = _mm512_maskz_loadu_ps(last, gamma + j);
      const __m512 s = _mm512_maskz_loadu_ps(last, beta + j);
      const __m512 ca = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(last, xa + j), mean_a), scale_a);
      const __m512 cb = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(last, xb + j), mean_b), scale_b);
      _mm512_mask_storeu_ps(ya + j, last, _mm512_fmadd_ps(ca, g, s));
      _mm512_mask_storeu_ps(yb + j, last, _mm512_fmadd_ps(cb, g, s));
    }
  }
}

void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
  const long m = M;
  const long n = N;
  if (n % 16 == 0 && m * n >= (1L << 20)) {
    const long head = static_cast<long>(((64 - (reinterpret_cast<std::uintptr_t>(out) & 63)) & 63) / sizeof(float));
    norm_rows<true>(in, gamma, beta, out, m, n, head);
    _mm_sfence();
  } else {
    norm_rows<false>(in, gamma, beta, out, m, n, 0);
  }
}
