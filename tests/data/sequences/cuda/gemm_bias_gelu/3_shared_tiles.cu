// y = gelu(x W + b), row-major. A block computes a tile of 16 x 16 elements, one for each thread; the rows of x
// and the columns of W that it needs go through shared memory, 16 x 16 elements at a time.

//@ launch linear_bias_gelu<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(x, W, b, y, M, N, K)
__global__ void linear_bias_gelu(const float* x, const float* W, const float* b, float* y, int M, int N,
                                 int K) {
  __shared__ float left[16][16];
  __shared__ float right[16][16];
  int column = threadIdx.x;
  int row = threadIdx.y;
  int i = blockIdx.y * 16 + row;
  int j = blockIdx.x * 16 + column;
  float sum = 0.0f;
  for (int k0 = 0; k0 < K; k0 += 16) {
    left[row][column] = i < M && k0 + column < K ? x[i * K + k0 + column] : 0.0f;
    right[row][column] = k0 + row < K && j < N ? W[(k0 + row) * N + j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      sum += left[row][k] * right[k][column];
    }
    __syncthreads();
  }
  if (i < M && j < N) {
    float v = sum + b[j];
    y[i * N + j] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  }
}
