// Sum of each row, one thread for each.

//@ launch row_sum<<<ceil_div(M, 128), 128>>>(x, sums, M, N)
__global__ void row_sum(const float* x, float* sums, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) {
      sum += x[i * N + j];
    }
    sums[i] = sum;
  }
}
