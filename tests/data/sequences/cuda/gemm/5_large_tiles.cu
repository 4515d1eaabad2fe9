// C = A B, row-major. A block of 256 threads computes a tile of 128 x 128 elements, each thread 8 x 8 of them in
// registers as four pieces of 4 x 4: an element from shared memory serves eight products. For matrices with
// tiles enough to occupy the device.

// Elements `at` to `at + 3` of a row that ends at `end`, zero behind it.
__device__ float4 load(const float* row, int at, int end, bool aligned) {
  if (aligned && at + 3 < end) {
    return *reinterpret_cast<const float4*>(row + at);
  }
  return make_float4(at < end ? row[at] : 0.0f, at + 1 < end ? row[at + 1] : 0.0f,
                     at + 2 < end ? row[at + 2] : 0.0f, at + 3 < end ? row[at + 3] : 0.0f);
}

//@ launch gemm<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(A, B, C, M, N, K)
__global__ void __launch_bounds__(256, 2)
    gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  // Four columns more: neighbouring rows of A are stored to different banks.
  __shared__ __align__(16) float a[2][16][132];
  __shared__ __align__(16) float b[2][16][128];
  int t = threadIdx.x;
  int i0 = blockIdx.y * 128;
  int j0 = blockIdx.x * 128;
  // What the thread loads: of A two rows 64 apart and four steps of k, of B two steps of k, 8 apart, and four
  // columns.
  int a_row = t / 4;
  int a_depth = t % 4 * 4;
  int b_depth = t / 32;
  int b_column = t % 32 * 4;
  const float* a_from = A + static_cast<long long>(i0 + a_row) * K;
  const float* b_from = B + static_cast<long long>(b_depth) * N;
  long long a_step = 64LL * K;
  long long b_step = 8LL * N;
  // What it computes: a warp has 32 x 64 elements, four rows of eight threads.
  int row = t / 64 * 32 + t % 32 / 8 * 4;
  int column = t / 32 % 2 * 64 + t % 8 * 4;
  float sum[8][8] = {};
  float4 next_a[2];
  float4 next_b[2];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    next_a[n] = load(a_from + n * a_step, a_depth, i0 + a_row + 64 * n < M ? K : 0, K % 4 == 0);
    next_b[n] = load(b_from + n * b_step, j0 + b_column, b_depth + 8 * n < K ? N : 0, N % 4 == 0);
  }
  int now = 0;
  for (int k0 = 0; k0 < K; k0 += 16) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      a[now][a_depth][a_row + 64 * n] = next_a[n].x;
      a[now][a_depth + 1][a_row + 64 * n] = next_a[n].y;
      a[now][a_depth + 2][a_row + 64 * n] = next_a[n].z;
      a[now][a_depth + 3][a_row + 64 * n] = next_a[n].w;
      *reinterpret_cast<float4*>(&b[now][b_depth + 8 * n][b_column]) = next_b[n];
    }
    __syncthreads();
    if (k0 + 16 < K) {
      b_from += 16LL * N;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        next_a[n] =
            load(a_from + n * a_step, k0 + 16 + a_depth, i0 + a_row + 64 * n < M ? K : 0, K % 4 == 0);
        next_b[n] = load(b_from + n * b_step, j0 + b_column, k0 + 16 + b_depth + 8 * n < K ? N : 0,
                         N % 4 == 0);
      }
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float left[8];
      float right[8];
#pragma unroll
      for (int piece = 0; piece < 2; ++piece) {
        float4 left4 = *reinterpret_cast<const float4*>(&a[now][k][row + 16 * piece]);
        float4 right4 = *reinterpret_cast<const float4*>(&b[now][k][column + 32 * piece]);
        left[4 * piece] = left4.x;
        left[4 * piece + 1] = left4.y;
        left[4 * piece + 2] = left4.z;
        left[4 * piece + 3] = left4.w;
        right[4 * piece] = right4.x;
        right[4 * piece + 1] = right4.y;
        right[4 * piece + 2] = right4.z;
        right[4 * piece + 3] = right4.w;
      }
#pragma unroll
      for (int m = 0; m < 8; ++m) {
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          sum[m][n] += left[m] * right[n];
        }
      }
    }
    now ^= 1;
  }
#pragma unroll
  for (int m = 0; m < 8; ++m) {
    int i = i0 + row + m / 4 * 16 + m % 4;
    float* to = C + static_cast<long long>(i) * N;
#pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
      int j = j0 + column + 32 * piece;
      const float* from = &sum[m][4 * piece];
      if (i < M && j + 3 < N && N % 4 == 0) {
        *reinterpret_cast<float4*>(to + j) = make_float4(from[0], from[1], from[2], from[3]);
      } else if (i < M) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          if (j + n < N) {
            to[j + n] = from[n];
          }
        }
      }
    }
  }
}
