// y = gelu(x W + b), row-major. A block of 256 threads computes a tile of 64 x 64 elements, each thread 4 x 4 of
// them in registers, four elements moved at a time. While it computes on one pair of tiles in shared memory, the
// next pair is on its way from memory; one barrier a pair is enough.

// Elements `at` to `at + 3` of a row that ends at `end`, zero behind it.
__device__ float4 load(const float* row, int at, int end, bool aligned) {
  if (aligned && at + 3 < end) {
    return *reinterpret_cast<const float4*>(row + at);
  }
  return make_float4(at < end ? row[at] : 0.0f, at + 1 < end ? row[at + 1] : 0.0f,
                     at + 2 < end ? row[at + 2] : 0.0f, at + 3 < end ? row[at + 3] : 0.0f);
}

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

//@ launch linear_bias_gelu<<<(ceil_div(N, 64), ceil_div(M, 64)), 256>>>(x, W, b, y, M, N, K)
__global__ void __launch_bounds__(256)
    linear_bias_gelu(const float* x, const float* W, const float* b, float* y, int M, int N, int K) {
  // Four columns more: neighbouring rows of x are stored to different banks.
  __shared__ __align__(16) float left_tile[2][16][68];
  __shared__ __align__(16) float right_tile[2][16][64];
  int t = threadIdx.x;
  int i0 = blockIdx.y * 64;
  int j0 = blockIdx.x * 64;
  // What the thread loads: of x a row and four steps of k, of W a step of k and four columns.
  int x_row = t / 4;
  int x_depth = t % 4 * 4;
  int w_depth = t / 16;
  int w_column = t % 16 * 4;
  const float* x_from = x + static_cast<long long>(i0 + x_row) * K;
  int x_end = i0 + x_row < M ? K : 0;
  // What it computes: a warp has 16 x 32 elements, four rows of eight threads.
  int row = t / 64 * 16 + t % 32 / 8 * 4;
  int column = t / 32 % 2 * 32 + t % 8 * 4;
  float sum[4][4] = {};
  float4 next_x = load(x_from, x_depth, x_end, K % 4 == 0);
  float4 next_w =
      load(W + static_cast<long long>(w_depth) * N, j0 + w_column, w_depth < K ? N : 0, N % 4 == 0);
  int now = 0;
  for (int k0 = 0; k0 < K; k0 += 16) {
    left_tile[now][x_depth][x_row] = next_x.x;
    left_tile[now][x_depth + 1][x_row] = next_x.y;
    left_tile[now][x_depth + 2][x_row] = next_x.z;
    left_tile[now][x_depth + 3][x_row] = next_x.w;
    *reinterpret_cast<float4*>(&right_tile[now][w_depth][w_column]) = next_w;
    __syncthreads();
    if (k0 + 16 < K) {
      int depth = k0 + 16 + w_depth;
      next_x = load(x_from, k0 + 16 + x_depth, x_end, K % 4 == 0);
      next_w =
          load(W + static_cast<long long>(depth) * N, j0 + w_column, depth < K ? N : 0, N % 4 == 0);
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float4 left4 = *reinterpret_cast<const float4*>(&left_tile[now][k][row]);
      float4 right4 = *reinterpret_cast<const float4*>(&right_tile[now][k][column]);
      float left[4] = {left4.x, left4.y, left4.z, left4.w};
      float right[4] = {right4.x, right4.y, right4.z, right4.w};
#pragma unroll
      for (int m = 0; m < 4; ++m) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          sum[m][n] += left[m] * right[n];
        }
      }
    }
    now ^= 1;
  }
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    int i = i0 + row + m;
    int j = j0 + column;
    float* to = y + static_cast<long long>(i) * N;
    if (i < M && j + 3 < N && N % 4 == 0) {
      float4 bias = *reinterpret_cast<const float4*>(b + j);
      *reinterpret_cast<float4*>(to + j) = make_float4(gelu(sum[m][0] + bias.x), gelu(sum[m][1] + bias.y),
                                                       gelu(sum[m][2] + bias.z), gelu(sum[m][3] + bias.w));
    } else if (i < M) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (j + n < N) {
          to[j + n] = gelu(sum[m][n] + b[j + n]);
        }
      }
    }
  }
}
