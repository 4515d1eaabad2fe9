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
      int i = first_i;
      for (; i + 3 < end_i; i += 4) {
        float* column0 = columns + i * M;
        float* column1 = columns + (i + 1) * M;
        float* column2 = columns + (i + 2) * M;
        float* column3 = columns + (i + 3) * M;
        int k = first_k;
        for (; k + 3 < end_k; k += 4) {
          const float* row0 = X + k * N + i;
          const float* row1 = X + (k + 1) * N + i;
          const float* row2 = X + (k + 2) * N + i;
          const float* row3 = X + (k + 3) * N + i;
          const float x00 = row0[0], x01 = row0[1], x02 = row0[2], x03 = row0[3];
          const float x10 = row1[0], x11 = row1[1], x12 = row1[2], x13 = row1[3];
          const float x20 = row2[0], x21 = row2[1], x22 = row2[2], x23 = row2[3];
          const float x30 = row3[0], x31 = row3[1], x32 = row3[2], x33 = row3[3];
          column0[k] = x00;
          column0[k + 1] = x10;
          column0[k + 2] = x20;
          column0[k + 3] = x30;
          column1[k] = x01;
          column1[k + 1] = x11;
          column1[k + 2] = x21;
          column1[k + 3] = x31;
          column2[k] = x02;
          column2[k + 1] = x12;
          column2[k + 2] = x22;
          column2[k + 3] = x32;
          column3[k] = x03;
          column3[k + 1] = x13;
          column3[k + 2] = x23;
          column3[k + 3] = x33;
        }
        for (; k < end_k; ++k) {
          const float* row = X + k * N + i;
          column0[k] = row[0];
          column1[k] = row[1];
          column2[k] = row[2];
          column3[k] = row[3];
        }
      }
      for (; i < end_i; ++i) {
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
