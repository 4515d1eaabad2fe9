// C = A B, row-major. A block of 256 threads computes a tile of 64 x 64 elements, each thread 4 x 4 of them in
// registers, 16 apart, so that an element from shared memory serves four products.

//@ launch gemm<<<(ceil_div(N, 64), ceil_div(M, 64)), 256>>>(A, B, C, M, N, K)
__global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  // One more column: the rows that a warp reads lie in different banks.
  __shared__ float a[64][17];
  __shared__ float b[16][64];
  int t = threadIdx.x;
  int x = t % 16;
  int y = t / 16;
  int i0 = blockIdx.y * 64;
  int j0 = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < K; k0 += 16) {
    for (int n = 0; n < 4; ++n) {
      int row = i0 + y + 16 * n;
      a[y + 16 * n][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
      int depth = t / 64 + 4 * n;
      int column = j0 + t % 64;
      b[depth][t % 64] = k0 + depth < K && column < N ? B[(k0 + depth) * N + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float left[4];
      float right[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        left[n] = a[y + 16 * n][k];
        right[n] = b[k][x + 16 * n];
      }
#pragma unroll
      for (int m = 0; m < 4; ++m) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          sum[m][n] += left[m] * right[n];
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int m = 0; m < 4; ++m) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      int i = i0 + y + 16 * m;
      int j = j0 + x + 16 * n;
      if (i < M && j < N) {
        C[i * N + j] = sum[m][n];
      }
    }
  }
}
