// One dense layer of a network, operator by operator: Y = max(X * W + bias, 0).
// X is M x K, W is K x N, bias has N elements, Y is M x N, all row-major.

void linear(const float* X, const float* W, float* product, int M, int N, int K) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        sum += X[i * K + k] * W[k * N + j];
      }
      product[i * N + j] = sum;
    }
  }
}

void add_bias(const float* in, const float* bias, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = in[i * N + j] + bias[j];
    }
  }
}

void relu(const float* in, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = in[i * N + j] > 0.0f ? in[i * N + j] : 0.0f;
    }
  }
}

//@ scratch product: f32[M, N]
//@ scratch biased: f32[M, N]
//@ launch linear(X, W, product, M, N, K)
//@ launch add_bias(product, bias, biased, M, N)
//@ launch relu(biased, Y, M, N)
