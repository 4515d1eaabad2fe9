// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N.

void covariance(const float* X, float* C, int M, int N) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < M; ++k) {
        sum += X[k * N + i] * X[k * N + j];
      }
      C[i * N + j] = sum / M;
    }
  }
}

//@ launch covariance(X, C, M, N)
