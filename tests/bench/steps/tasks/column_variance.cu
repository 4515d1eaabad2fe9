// The variance of each column, by one thread in two passes.

//@ launch column_variance<<<ceil_div(N, 128), 128>>>(x, out, M, N)
__global__ void column_variance(const float* x, float* out, int M, int N) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < N) {
    float mean = 0.0f;
    for (int i = 0; i < M; ++i) {
      mean += x[i * N + j];
    }
    mean /= M;
    float squares = 0.0f;
    for (int i = 0; i < M; ++i) {
      squares += (x[i * N + j] - mean) * (x[i * N + j] - mean);
    }
    out[j] = squares / M;
  }
}
