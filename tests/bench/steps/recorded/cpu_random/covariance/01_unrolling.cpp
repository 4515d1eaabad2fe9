// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N.

void covariance(const float* X, float* C, int M, int N) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
      float sum4 = 0.0f, sum5 = 0.0f, sum6 = 0.0f, sum7 = 0.0f;
      int k = 0;
      for (; k + 7 < M; k += 8) {
        sum0 += X[k * N + i] * X[k * N + j];
        sum1 += X[(k + 1) * N + i] * X[(k + 1) * N + j];
        sum2 += X[(k + 2) * N + i] * X[(k + 2) * N + j];
        sum3 += X[(k + 3) * N + i] * X[(k + 3) * N + j];
        sum4 += X[(k + 4) * N + i] * X[(k + 4) * N + j];
        sum5 += X[(k + 5) * N + i] * X[(k + 5) * N + j];
        sum6 += X[(k + 6) * N + i] * X[(k + 6) * N + j];
        sum7 += X[(k + 7) * N + i] * X[(k + 7) * N + j];
      }
      for (; k < M; ++k) {
        sum0 += X[k * N + i] * X[k * N + j];
      }
      const float sum = ((sum0 + sum1) + (sum2 + sum3)) + ((sum4 + sum5) + (sum6 + sum7));
      C[i * N + j] = sum / M;
    }
  }
}

//@ launch covariance(X, C, M, N)
