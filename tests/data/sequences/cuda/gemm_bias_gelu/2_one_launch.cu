// y = gelu(x W + b), row-major, in one launch: the thread that computes an element adds the bias and applies the
// activation before it writes it.

//@ launch linear_bias_gelu<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(x, W, b, y, M, N, K)
__global__ void linear_bias_gelu(const float* x, const float* W, const float* b, float* y, int M, int N,
                                 int K) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      sum += x[i * K + k] * W[k * N + j];
    }
    float v = sum + b[j];
    y[i * N + j] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  }
}
