// Layer normalisation of every row of a row-major M x N matrix, with scale and shift per column.

#include <immintrin.h>

#include <cmath>

// Takes one more value per lane into the running mean and the squares about it; inverse is 1 / count.
static inline void take(const __m512 x, const __m512 inverse, __m512& mean, __m512& squares) {
  const __m512 delta = _mm512_sub_ps(x, mean);
  mean = _mm512_fmadd_ps(delta, inverse, mean);
  squares = _mm512_fmadd_ps(delta, _mm512_sub_ps(x, mean), squares);
}

void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
  const int blocks = N / 64;
  for (int i = 0; i < M; ++i) {
    float mean = 0.0f;
    float squares = 0.0f;
    if (blocks > 0) {
      __m512 mean0 = _mm512_setzero_ps();
      __m512 mean1 = _mm512_setzero_ps();
      __m512 mean2 = _mm512_setzero_ps();
      __m512 mean3 = _mm512_setzero_ps();
      __m512 squares0 = _mm512_setzero_ps();
      __m512 squares1 = _mm512_setzero_ps();
      __m512 squares2 = _mm512_setzero_ps();
      __m512 squares3 = _mm512_setzero_ps();
      for (int b = 0; b < blocks; ++b) {
        const float* x = in + i * N + b * 64;
        const __m512 inverse = _mm512_set1_ps(1.0f / static_cast<float>(b + 1));
        take(_mm512_loadu_ps(x), inverse, mean0, squares0);
        take(_mm512_loadu_ps(x + 16), inverse, mean1, squares1);
        take(_mm512_loadu_ps(x + 32), inverse, mean2, squares2);
        take(_mm512_loadu_ps(x + 48), inverse, mean3, squares3);
      }
      // Every lane has seen `blocks` values.
      const __m512 means = _mm512_add_ps(_mm512_add_ps(mean0, mean1), _mm512_add_ps(mean2, mean3));
      mean = _mm512_reduce_add_ps(means) * (1.0f / 64.0f);
      const __m512 common = _mm512_set1_ps(mean);
      const __m512 count = _mm512_set1_ps(static_cast<float>(blocks));
      const __m512 off0 = _mm512_sub_ps(mean0, common);
      const __m512 off1 = _mm512_sub_ps(mean1, common);
      const __m512 off2 = _mm512_sub_ps(mean2, common);
      const __m512 off3 = _mm512_sub_ps(mean3, common);
      squares0 = _mm512_fmadd_ps(_mm512_mul_ps(off0, off0), count, squares0);
      squares1 = _mm512_fmadd_ps(_mm512_mul_ps(off1, off1), count, squares1);
      squares2 = _mm512_fmadd_ps(_mm512_mul_ps(off2, off2), count, squares2);
      squares3 = _mm512_fmadd_ps(_mm512_mul_ps(off3, off3), count, squares3);
      squares = _mm512_reduce_add_ps(
          _mm512_add_ps(_mm512_add_ps(squares0, squares1), _mm512_add_ps(squares2, squares3)));
    }
    for (int j = blocks * 64; j < N; ++j) {
      const float delta = in[i * N + j] - mean;
      mean += delta / static_cast<float>(j + 1);
      squares += delta * (in[i * N + j] - mean);
    }
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(N) + 1e-5f);
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = (in[i * N + j] - mean) * scale * gamma[j] + beta[j];
    }
  }
}

//@ launch layer_norm(in, gamma, beta, out, M, N)
