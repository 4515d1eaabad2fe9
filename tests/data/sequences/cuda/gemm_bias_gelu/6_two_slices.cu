// y = gelu(x W + b), row-major. A block of 512 threads computes a tile of 64 x 64 elements. Two groups of 256
// threads take turns along k: each has tiles of its own in shared memory and 4 x 4 sums a thread in registers,
// and at the end the second hands its sums to the first. Twice as many warps hide the latency of a small matrix.

// Elements `at` to `at + 3` of a row that ends at `end`, zero behind it.
__device__ float4 load(const float* row, int at, int end, bool aligned) {
  if (aligned && at + 3 < end) {
    return *reinterpret_cast<const float4*>(row + at);
  }
  return make_float4(at < end ? row[at] : 0.0f, at + 1 < end ? row[at + 1] : 0.0f,
                     at + 2 < end ? row[at + 2] : 0.0f, at + 3 < end ? row[at + 3] : 0.0f);
}

__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

//@ launch linear_bias_gelu<<<(ceil_div(N, 64), ceil_div(M, 64)), 512>>>(x, W, b, y, M, N, K)
__global__ void __launch_bounds__(512)
    linear_bias_gelu(const float* x, const float* W, const float* b, float* y, int M, int N, int K) {
  // Of each group, twice. Four columns more: neighbouring rows of x are stored to different banks.
  __shared__ __align__(16) float left_tiles[2][2][16][68];
  __shared__ __align__(16) float right_tiles[2][2][16][64];
  int group = threadIdx.x / 256;
  int t = threadIdx.x % 256;
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
  int first = 16 * group;
  float4 next_x = load(x_from, first + x_depth, x_end, K % 4 == 0);
  float4 next_w = load(W + static_cast<long long>(first + w_depth) * N, j0 + w_column,
                       first + w_depth < K ? N : 0, N % 4 == 0);
  int now = 0;
  // As many rounds for both groups, which meet at the barriers; behind the end of k they add zeros.
  for (int k0 = 0; k0 < K; k0 += 32) {
    auto left_tile = left_tiles[group][now];
    auto right_tile = right_tiles[group][now];
    left_tile[x_depth][x_row] = next_x.x;
    left_tile[x_depth + 1][x_row] = next_x.y;
    left_tile[x_depth + 2][x_row] = next_x.z;
    left_tile[x_depth + 3][x_row] = next_x.w;
    *reinterpret_cast<float4*>(&right_tile[w_depth][w_column]) = next_w;
    __syncthreads();
    if (k0 + 32 < K) {
      int next = k0 + 32 + first;
      next_x = load(x_from, next + x_depth, x_end, K % 4 == 0);
      next_w = load(W + static_cast<long long>(next + w_depth) * N, j0 + w_column,
                    next + w_depth < K ? N : 0, N % 4 == 0);
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float4 left4 = *reinterpret_cast<const float4*>(&left_tile[k][row]);
      float4 right4 = *reinterpret_cast<const float4*>(&right_tile[k][column]);
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
  // The second group's sums go through the memory of the tiles, which nobody needs any more.
  float* handed = &left_tiles[0][0][0][0];
  __syncthreads();
  if (group == 1) {
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      handed[256 * n + t] = sum[n / 4][n % 4];
    }
  }
  __syncthreads();
  if (group == 1) {
    return;
  }
#pragma unroll
  for (int n = 0; n < 16; ++n) {
    sum[n / 4][n % 4] += handed[256 * n + t];
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
