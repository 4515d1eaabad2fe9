// Softmax along the rows, one thread for each row.

//@ launch softmax<<<ceil_div(M, 128), 128>>>(x, y, M, N)
__global__ void softmax(const float* x, float* y, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float largest = x[i * N];
    for (int j = 1; j < N; ++j) {
      largest = fmaxf(largest, x[i * N + j]);
    }
    float total = 0.0f;
    for (int j = 0; j < N; ++j) {
      total += expf(x[i * N + j] - largest);
    }
    for (int j = 0; j < N; ++j) {
      y[i * N + j] = expf(x[i * N + j] - largest) / total;
    }
  }
}
