// Each row times the matrix of the expert that it was given to, one thread for each result.

//@ launch expert_product<<<(ceil_div(N, 32), ceil_div(M, 8)), (32, 8)>>>(x, expert, W, out, M, N, K)
__global__ void expert_product(const float* x, const int* expert, const float* W, float* out, int M, int N, int K) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  int m = blockIdx.y * blockDim.y + threadIdx.y;
  if (m < M && n < N) {
    int e = expert[m];
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += x[m * K + k] * W[(e * K + k) * N + n];
    out[m * N + n] = sum;
  }
}
