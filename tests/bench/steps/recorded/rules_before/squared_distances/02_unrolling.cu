// Squared distances between two sets of points, 8 x 8 pairs for each thread, the coordinates in tiles of 32.

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), (16, 16)>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p,
                                                            float* __restrict__ out, int M, int N, int D) {
  __shared__ __align__(16) float tile_q[128][36];
  __shared__ __align__(16) float tile_p[128][36];
  int tx = threadIdx.x;
  int ty = threadIdx.y;
  int t = ty * 16 + tx;
  int column = t & 7;
  int row = t >> 3;
  int qi = blockIdx.y * 128 + row;
  int pj = blockIdx.x * 128 + row;
  float sum[8][8];
#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      sum[r][c] = 0.0f;
    }
  }
  for (int d0 = 0; d0 < D; d0 += 32) {
    int d = d0 + column;
    float next_q[4][4], next_p[4][4];
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      int at_q = min(qi + 32 * m, M - 1) * D + d;
      int at_p = min(pj + 32 * m, N - 1) * D + d;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        bool inside = d + 8 * n < D;
        next_q[m][n] = inside ? q[at_q + 8 * n] : 0.0f;
        next_p[m][n] = inside ? p[at_p + 8 * n] : 0.0f;
      }
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < 4; ++m) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        tile_q[row + 32 * m][column + 8 * n] = next_q[m][n];
        tile_p[row + 32 * m][column + 8 * n] = next_p[m][n];
      }
    }
    __syncthreads();
#pragma unroll 2
    for (int k = 0; k < 32; k += 4) {
      float4 b[8];
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        b[c] = *reinterpret_cast<const float4*>(&tile_p[tx + 16 * c][k]);
      }
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        float4 a = *reinterpret_cast<const float4*>(&tile_q[ty + 16 * r][k]);
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          float difference = a.x - b[c].x;
          sum[r][c] += difference * difference;
        }
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          float difference = a.y - b[c].y;
          sum[r][c] += difference * difference;
        }
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          float difference = a.z - b[c].z;
          sum[r][c] += difference * difference;
        }
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          float difference = a.w - b[c].w;
          sum[r][c] += difference * difference;
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    int i = blockIdx.y * 128 + ty + 16 * r;
    if (i < M) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        int j = blockIdx.x * 128 + tx + 16 * c;
        if (j < N) {
          out[i * N + j] = sum[r][c];
        }
      }
    }
  }
}
