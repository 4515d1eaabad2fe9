// The variance of each column: one pass, partial means and squares are combined over warps, a block and a cluster.

#include <cooperative_groups.h>

//@ launch column_variance<<<(ceil_div(N, 64), 8, 1), 512, 0, cluster(1, 8, 1)>>>(x, out, M, N)

template <bool VEC>
__device__ __forceinline__ void load4(const float* __restrict__ p, int left, float* v) {
  if (VEC) {
    const float4 f = __ldg(reinterpret_cast<const float4*>(p));
    v[0] = f.x;
    v[1] = f.y;
    v[2] = f.z;
    v[3] = f.w;
  } else {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      v[c] = c < left ? __ldg(p + c) : 0.0f;
    }
  }
}

template <bool VEC>
__device__ __forceinline__ int gather(const float* __restrict__ x, int N, int col, int row, int row_end, float* mean,
                                      float* squares) {
  const int left = N - col;
  if (left <= 0 || row >= row_end) {
    return 0;
  }
  const float* p = x + (size_t)row * (size_t)N + col;
  const size_t step = (size_t)32 * (size_t)N;
  const int rows = (row_end - row + 31) / 32;
  const int batches = rows / 8;
  for (int b = 0; b < batches; ++b) {
    float v[8][4];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      load4<VEC>(p, left, v[k]);
      p += step;
    }
    const float w = 1.0f / (float)(b + 1);
    const float wq = 8.0f * (float)b * w;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float m = (((v[0][c] + v[1][c]) + (v[2][c] + v[3][c])) + ((v[4][c] + v[5][c]) + (v[6][c] + v[7][c]))) * 0.125f;
      float q = 0.0f;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float d = v[k][c] - m;
        q += d * d;
      }
      const float delta = m - mean[c];
      mean[c] += delta * w;
      squares[c] += q + delta * delta * wq;
    }
  }
  for (int k = batches * 8; k < rows; ++k) {
    float v[4];
    load4<VEC>(p, left, v);
    p += step;
    const float w = 1.0f / (float)(k + 1);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float d = v[c] - mean[c];
      mean[c] += d * w;
      squares[c] += d * (v[c] - mean[c]);
    }
  }
  return rows;
}

__global__ void __launch_bounds__(512, 2) column_variance(const float* __restrict__ x, float* __restrict__ out, int M,
                                                          int N) {
  namespace cg = cooperative_groups;
  __shared__ __align__(16) float warp_mean[16][64];
  __shared__ __align__(16) float warp_squares[16][64];
  __shared__ float warp_count[16];
  __shared__ float block_mean[64];
  __shared__ float block_squares[64];

  cg::cluster_group cluster = cg::this_cluster();
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int quad = t & 15;
  const int slot = t >> 4;
  const int col = blockIdx.x * 64 + quad * 4;
  const int per = (M + 7) / 8;
  const int row0 = min(M, (int)blockIdx.y * per);
  const int row1 = min(M, row0 + per);

  float mean[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float squares[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if ((N & 3) == 0) {
    gather<true>(x, N, col, row0 + slot, row1, mean, squares);
  } else {
    gather<false>(x, N, col, row0 + slot, row1, mean, squares);
  }

  // rows of this thread, whether or not its columns exist
  const int first = row0 + slot;
  const float n = first < row1 ? (float)((row1 - first + 31) / 32) : 0.0f;
  const float n_other = __shfl_xor_sync(0xffffffffu, n, 16);
  const float n_both = n + n_other;
  const float inv = n_both > 0.0f ? 1.0f / n_both : 0.0f;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const float m_other = __shfl_xor_sync(0xffffffffu, mean[c], 16);
    const float s_other = __shfl_xor_sync(0xffffffffu, squares[c], 16);
    const float d = m_other - mean[c];
    mean[c] += d * (n_other * inv);
    squares[c] += s_other + d * d * (n * n_other * inv);
  }
  if (lane < 16) {
    *reinterpret_cast<float4*>(&warp_mean[warp][quad * 4]) = make_float4(mean[0], mean[1], mean[2], mean[3]);
    *reinterpret_cast<float4*>(&warp_squares[warp][quad * 4]) =
        make_float4(squares[0], squares[1], squares[2], squares[3]);
  }
  if (lane == 0) {
    warp_count[warp] = n_both;
  }
  __syncthreads();

  if (t < 64) {
    const int rows = row1 - row0;
    float m = 0.0f;
    float s = 0.0f;
    if (rows > 0) {
#pragma unroll
      for (int k = 0; k < 16; ++k) {
        m += warp_count[k] * warp_mean[k][t];
      }
      m /= (float)rows;
#pragma unroll
      for (int k = 0; k < 16; ++k) {
        const float d = warp_mean[k][t] - m;
        s += warp_squares[k][t] + warp_count[k] * (d * d);
      }
    }
    block_mean[t] = m;
    block_squares[t] = s;
  }
  cluster.sync();

  if (blockIdx.y == 0 && t < 64) {
    float bm[8];
    float bs[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      bm[k] = cluster.map_shared_rank(block_mean, k)[t];
      bs[k] = cluster.map_shared_rank(block_squares, k)[t];
    }
    float m = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int r0 = min(M, k * per);
      const int r1 = min(M, r0 + per);
      m += (float)(r1 - r0) * bm[k];
    }
    m /= (float)M;
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int r0 = min(M, k * per);
      const int r1 = min(M, r0 + per);
      const float d = bm[k] - m;
      s += bs[k] + (float)(r1 - r0) * (d * d);
    }
    const int j = blockIdx.x * 64 + t;
    if (j < N) {
      out[j] = s / (float)M;
    }
  }
  cluster.sync();
}
