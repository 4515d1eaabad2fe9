// Softmax of every row of a row-major M x N matrix. The loops over a row work on several elements at once, and
// one division a row serves all of its elements.

#include <cmath>

void softmax(const float* in, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float largest = in[i * N];
#pragma omp simd reduction(max : largest)
    for (int j = 1; j < N; ++j) {
      largest = in[i * N + j] > largest ? in[i * N + j] : largest;
    }
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = std::exp(in[i * N + j] - largest);
      sum += out[i * N + j];
    }
    const float factor = 1.0f / sum;
#pragma omp simd
    for (int j = 0; j < N; ++j) {
      out[i * N + j] *= factor;
    }
  }
}

//@ launch softmax(in, out, M, N)
