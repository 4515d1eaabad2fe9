// C = A B, row-major. A block of 256 threads computes a tile of 64 x 64 elements, each thread 4 x 4 of them in
// registers, four elements moved at a time. While it computes on one pair of tiles in shared memory, the next
// pair is on its way from memory; one barrier a pair is enough.

// Elements `at` to `at + 3` of a row that ends at `end`, zero behind it.
__device__ float4 load(const float* row, int at, int end, bool aligned) {
  if (aligned && at + 3 < end) {
    return *reinterpret_cast<const float4*>(row + at);
  }
  return make_float4(at < end ? row[at] : 0.0f, at + 1 < end ? row[at + 1] : 0.0f,
                     at + 2 < end ? row[at + 2] : 0.0f, at + 3 < end ? row[at + 3] : 0.0f);
}

//@ launch gemm<<<(ceil_div(N, 64), ceil_div(M, 64)), 256>>>(A, B, C, M, N, K)
__global__ void __launch_bounds__(256) gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  // Four columns more: neighbouring rows of A are stored to different banks.
  __shared__ __align__(16) float a[2][16][68];
  __shared__ __align__(16) float b[2][16][64];
  int t = threadIdx.x;
  int i0 = blockIdx.y * 64;
  int j0 = blockIdx.x * 64;
  // What the thread loads: of A a row and four steps of k, of B a step of k and four columns.
  int a_row = t / 4;
  int a_depth = t % 4 * 4;
  int b_depth = t / 16;
  int b_column = t % 16 * 4;
  const float* a_from = A + static_cast<long long>(i0 + a_row) * K;
  int a_end = i0 + a_row < M ? K : 0;
  // What it computes: a warp has 16 x 32 elements, four rows of eight threads.
  int row = t / 64 * 16 + t % 32 / 8 * 4;
  int column = t / 32 % 2 * 32 + t % 8 * 4;
  float sum[4][4] = {};
  float4 next_a = load(a_from, a_depth, a_end, K % 4 == 0);
  float4 next_b =
      load(B + static_cast<long long>(b_depth) * N, j0 + b_column, b_depth < K ? N : 0, N % 4 == 0);
  int now = 0;
  for (int k0 = 0; k0 < K; k0 += 16) {
    a[now][a_depth][a_row] = next_a.x;
    a[now][a_depth + 1][a_row] = next_a.y;
    a[now][a_depth + 2][a_row] = next_a.z;
    a[now][a_depth + 3][a_row] = next_a.w;
    *reinterpret_cast<float4*>(&b[now][b_depth][b_column]) = next_b;
    __syncthreads();
    if (k0 + 16 < K) {
      int depth = k0 + 16 + b_depth;
      next_a = load(a_from, k0 + 16 + a_depth, a_end, K % 4 == 0);
      next_b =
          load(B + static_cast<long long>(depth) * N, j0 + b_column, depth < K ? N : 0, N % 4 == 0);
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float4 left4 = *reinterpret_cast<const float4*>(&a[now][k][row]);
      float4 right4 = *reinterpret_cast<const float4*>(&b[now][k][column]);
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
    float* to = C + static_cast<long long>(i) * N;
    if (i < M && j + 3 < N && N % 4 == 0) {
      *reinterpret_cast<float4*>(to + j) = make_float4(sum[m][0], sum[m][1], sum[m][2], sum[m][3]);
    } else if (i < M) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (j + n < N) {
          to[j + n] = sum[m][n];
        }
      }
    }
  }
}
