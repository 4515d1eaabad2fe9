// C = A B, row-major. A block computes a tile of 16 x 16 elements, one for each thread; the rows of A and the
// columns of B that it needs go through shared memory, 16 x 16 elements at a time.

//@ launch gemm<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, C, M, N, K)
__global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[16][16];
  __shared__ float b[16][16];
  int x = threadIdx.x;
  int y = threadIdx.y;
  int i = blockIdx.y * 16 + y;
  int j = blockIdx.x * 16 + x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < K; k0 += 16) {
    a[y][x] = i < M && k0 + x < K ? A[i * K + k0 + x] : 0.0f;
    b[y][x] = k0 + y < K && j < N ? B[(k0 + y) * N + j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      sum += a[y][k] * b[k][x];
    }
    __syncthreads();
  }
  if (i < M && j < N) {
    C[i * N + j] = sum;
  }
}
