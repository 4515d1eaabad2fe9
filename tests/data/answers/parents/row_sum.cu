//@ launch row_sum<<<ceil_div(M, 128), 128>>>(X, Y, M, N)
__global__ void row_sum(const float* X, float* Y, int M, int N) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M) return;
  float sum = 0.0f;
  for (int j = 0; j < N; ++j) sum += X[row * N + j];
  Y[row] = sum;
}
