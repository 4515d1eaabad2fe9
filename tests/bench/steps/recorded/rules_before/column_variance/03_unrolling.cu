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
  mean = 0.0f;
#pragma unroll
  for (int w = 0; w < 32; ++w) {
    mean += mean_parts[w][c];
  }
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
    float total0 = 0.0f, total1 = 0.0f, total2 = 0.0f, total3 = 0.0f;
    float total4 = 0.0f, total5 = 0.0f, total6 = 0.0f, total7 = 0.0f;
#pragma unroll
    for (int w = 0; w < 32; w += 8) {
      total0 += square_parts[w][c];
      total1 += square_parts[w + 1][c];
      total2 += square_parts[w + 2][c];
      total3 += square_parts[w + 3][c];
      total4 += square_parts[w + 4][c];
      total5 += square_parts[w + 5][c];
      total6 += square_parts[w + 6][c];
      total7 += square_parts[w + 7][c];
    }
    float total = ((total0 + total1) + (total2 + total3)) + ((total4 + total5) + (total6 + total7));
    out[j] = total / M;
  }
}
