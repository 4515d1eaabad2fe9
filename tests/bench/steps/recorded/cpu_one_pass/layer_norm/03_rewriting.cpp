// Layer normalisation of every row of a row-major M x N matrix, with scale and shift per column.

#include <cmath>
#include <cstddef>
#include <cstdint>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

void layer_norm(const float* __restrict in, const float* __restrict gamma, const float* __restrict beta,
                float* __restrict out, int M, int N) {
  const std::size_t width = static_cast<std::size_t>(N);
  for (int i = 0; i < M; ++i) {
    const float* row = in + static_cast<std::size_t>(i) * width;
    float* o = out + static_cast<std::size_t>(i) * width;

#if defined(__AVX512F__)
    const float* ahead = i + 2 < M ? row + 2 * width : row;

    // The mean.
    __m512 s0 = _mm512_setzero_ps();
    __m512 s1 = _mm512_setzero_ps();
    __m512 s2 = _mm512_setzero_ps();
    __m512 s3 = _mm512_setzero_ps();
    int j = 0;
    for (; j + 64 <= N; j += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead + j), _MM_HINT_T0);
      s0 = _mm512_add_ps(s0, _mm512_loadu_ps(row + j));
      s1 = _mm512_add_ps(s1, _mm512_loadu_ps(row + j + 16));
      s2 = _mm512_add_ps(s2, _mm512_loadu_ps(row + j + 32));
      s3 = _mm512_add_ps(s3, _mm512_loadu_ps(row + j + 48));
    }
    for (; j + 16 <= N; j += 16) {
      s0 = _mm512_add_ps(s0, _mm512_loadu_ps(row + j));
    }
    if (j < N) {
      const __mmask16 m = static_cast<__mmask16>((1u << (N - j)) - 1u);
      s1 = _mm512_add_ps(s1, _mm512_maskz_loadu_ps(m, row + j));
    }
    const float sum = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
    const float mean = sum / static_cast<float>(N);
    const __m512 means = _mm512_set1_ps(mean);

    // The sum of the squares of what is centred.
    __m512 q0 = _mm512_setzero_ps();
    __m512 q1 = _mm512_setzero_ps();
    __m512 q2 = _mm512_setzero_ps();
    __m512 q3 = _mm512_setzero_ps();
    j = 0;
    for (; j + 64 <= N; j += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead + j + 16), _MM_HINT_T0);
      const __m512 c0 = _mm512_sub_ps(_mm512_loadu_ps(row + j), means);
      const __m512 c1 = _mm512_sub_ps(_mm512_loadu_ps(row + j + 16), means);
      const __m512 c2 = _mm512_sub_ps(_mm512_loadu_ps(row + j + 32), means);
      const __m512 c3 = _mm512_sub_ps(_mm512_loadu_ps(row + j + 48), means);
      q0 = _mm512_fmadd_ps(c0, c0, q0);
      q1 = _mm512_fmadd_ps(c1, c1, q1);
      q2 = _mm512_fmadd_ps(c2, c2, q2);
      q3 = _mm512_fmadd_ps(c3, c3, q3);
    }
    for (; j + 16 <= N; j += 16) {
      const __m512 c = _mm512_sub_ps(_mm512_loadu_ps(row + j), means);
      q0 = _mm512_fmadd_ps(c, c, q0);
    }
    if (j < N) {
      const __mmask16 m = static_cast<__mmask16>((1u << (N - j)) - 1u);
      const __m512 c = _mm512_maskz_sub_ps(m, _mm512_maskz_loadu_ps(m, row + j), means);
      q1 = _mm512_fmadd_ps(c, c, q1);
    }
    const float squares = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(q0, q1), _mm512_add_ps(q2, q3)));
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(N) + 1e-5f);
    const __m512 scales = _mm512_set1_ps(scale);

    // The result: first up to a cache line of the output, then whole lines past the caches, then the rest.
    int head = static_cast<int>(((64 - (reinterpret_cast<std::uintptr_t>(o) & 63)) & 63) / sizeof(float));
    if (head > N) {
      head = N;
    }
    if (head > 0) {
      const __mmask16 m = static_cast<__mmask16>((1u << head) - 1u);
      const __m512 t = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, row), means), scales);
      const __m512 r = _mm512_fmadd_ps(t, _mm512_maskz_loadu_ps(m, gamma), _mm512_maskz_loadu_ps(m, beta));
      _mm512_mask_storeu_ps(o, m, r);
    }
    j = head;
    for (; j + 64 <= N; j += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead + j + 32), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(ahead + j + 48), _MM_HINT_T0);
      const __m512 t0 = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(row + j), means), scales);
      const __m512 t1 = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(row + j + 16), means), scales);
      const __m512 t2 = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(row + j + 32), means), scales);
      const __m512 t3 = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(row + j + 48), means), scales);
      _mm512_stream_ps(o + j, _mm512_fmadd_ps(t0, _mm512_loadu_ps(gamma + j), _mm512_loadu_ps(beta + j)));
      _mm512_stream_ps(o + j + 16,
                       _mm512_fmadd_ps(t1, _mm512_loadu_ps(gamma + j + 16), _mm512_loadu_ps(beta + j + 16)));
      _mm512_stream_ps(o + j + 32,
                       _mm512_fmadd_ps(t2, _mm512_loadu_ps(gamma + j + 32), _mm512_loadu_ps(beta + j + 32)));
      _mm512_stream_ps(o + j + 48,
                       _mm512_fmadd_ps(t3, _mm512_loadu_ps(gamma + j + 48), _mm512_loadu_ps(beta + j + 48)));
    }
    for (; j + 16 <= N; j += 16) {
      const __m512 t = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(row + j), means), scales);
      _mm512_stream_ps(o + j, _mm512_fmadd_ps(t, _mm512_loadu_ps(gamma + j), _mm512_loadu_ps(beta + j)));
    }
    if (j < N) {
      const __mmask16 m = static_cast<__mmask16>((1u << (N - j)) - 1u);
      const __m512 t = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, row + j), means), scales);
      const __m512 r =
          _mm512_fmadd_ps(t, _mm512_maskz_loadu_ps(m, gamma + j), _mm512_maskz_loadu_ps(m, beta + j));
      _mm512_mask_storeu_ps(o + j, m, r);
    }
#else
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < N; ++j) {
      sum += row[j];
    }
    const float mean = sum / static_cast<float>(N);
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (int j = 0; j < N; ++j) {
      const float centred = row[j] - mean;
      squares += centred * centred;
    }
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(N) + 1e-5f);
#pragma omp simd
    for (int j = 0; j < N; ++j) {
      o[j] = (row[j] - mean) * scale * gamma[j] + beta[j];
    }
#endif
  }
#if defined(__AVX512F__)
  _mm_sfence();
#endif
}

//@ launch layer_norm(in, gamma, beta, out, M, N)
