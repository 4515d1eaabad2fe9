// Softmax of every row of a row-major M x N matrix.

#include <cmath>

void softmax(const float* in, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float largest = in[i * N];
    for (int j = 1; j < N; ++j) {
      if (in[i * N + j] > largest) {
        largest = in[i * N + j];
      }
    }
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = std::exp(in[i * N + j] - largest);
      sum += out[i * N + j];
    }
    for (int j = 0; j < N; ++j) {
      out[i * N + j] /= sum;
    }
  }
}

//@ launch softmax(in, out, M, N)
