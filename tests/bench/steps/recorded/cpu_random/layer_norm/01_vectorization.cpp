// Layer normalisation of every row of a row-major M x N matrix, with scale and shift per column.

#include <cmath>

void layer_norm(const float* in, const float* gamma, const float* beta, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) {
      sum += in[i * N + j];
    }
    const float mean = sum / static_cast<float>(N);
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (int j = 0; j < N; ++j) {
      const float centred = in[i * N + j] - mean;
      squares += centred * centred;
    }
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(N) + 1e-5f);
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = (in[i * N + j] - mean) * scale * gamma[j] + beta[j];
    }
  }
}

//@ launch layer_norm(in, gamma, beta, out, M, N)
