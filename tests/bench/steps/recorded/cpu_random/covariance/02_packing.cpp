// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N.
#include <algorithm>

//@ scratch columns: f32[N, M]

void covariance(const float* __restrict X, float* __restrict columns, float* __restrict C, int M, int N) {
  // columns[i][k] = X[k][i]
  for (int first_k = 0; first_k < M; first_k += 16) {
    const int end_k = std::min(first_k + 16, M);
    for (int first_i = 0; first_i < N; first_i += 16) {
      const int end_i = std::min(first_i + 16, N);
      for (int i = first_i; i < end_i; ++i) {
        for (int k = first_k; k < end_k; ++k) {
          columns[i * M + k] = X[k * N + i];
        }
      }
    }
  }
  for (int i = 0; i < N; ++i) {
    const float* a = columns + i * M;
    for (int j = 0; j < N; ++j) {
      const float* b = columns + j * M;
      float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (int k = 0; k < M; ++k) {
        sum += a[k] * b[k];
      }
      C[i * N + j] = sum / M;
    }
  }
}

//@ launch covariance(X, columns, C, M, N)
