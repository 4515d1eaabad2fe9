// The variance of each column, by 64 threads of a block in two passes.

//@ launch column_variance<<<ceil_div(N, 16), 1024>>>(x, out, M, N)
__global__ void __launch_bounds__(1024) column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ float mean_parts[32][16];
  __shared__ float square_parts[32][16];
  int t = threadIdx.x;
  int c = t & 15;
  int r = t >> 4;
  int lane = t & 31;
  int warp = t >> 5;
  int j = blockIdx.x * 16 + c;
  bool valid = j < N;

  float mean = 0.0f;
  if (valid) {
#pragma unroll 16
    for (int i = r; i < M; i += 64) {
      mean += x[i * N + j];
    }
  }
  mean += __shfl_xor_sync(0xffffffffu, mean, 16);
  if (lane < 16) {
    mean_parts[warp][c] = mean;
  }
  __syncthreads();
  float mean0 = 0.0f, mean1 = 0.0f, mean2 = 0.0f, mean3 = 0.0f;
  float mean4 = 0.0f, mean5 = 0.0f, mean6 = 0.0f, mean7 = 0.0f;
#pragma unroll
  for (int w = 0; w < 32; w += 8) {
    mean0 += mean_parts[w][c];
    mean1 += mean_parts[w + 1][c];
    mean2 += mean_parts[w + 2][c];
    mean3 += mean_parts[w + 3][c];
    mean4 += mean_parts[w + 4][c];
    mean5 += mean_parts[w + 5][c];
    mean6 += mean_parts[w + 6][c];
    mean7 += mean_parts[w + 7][c];
  }
  mean = ((mean0 + mean1) + (mean2 + mean3)) + ((mean4 + mean5) + (mean6 + mean7));
  mean /= M;

  float squares = 0.0f;
  if (valid && r < M) {
    int last = r + (M - 1 - r) / 64 * 64;
#pragma unroll 16
    for (int i = last; i >= 0; i -= 64) {
      float d = x[i * N + j] - mean;
      squares += d * d;
    }
  }
  squares += __shfl_xor_sync(0xffffffffu, squares, 16);
  if (lane < 16) {
    square_parts[warp][c] = squares;
  }
  __syncthreads();
  if (t < 16 && valid) {
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < 32; ++w) {
      total += square_parts[w][c];
    }
    out[j] = total / M;
  }
}
