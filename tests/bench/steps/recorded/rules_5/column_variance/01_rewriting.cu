// The variance of each column: one pass, batches merged by mean and squared deviations, clusters of 8 blocks per 64 columns.
#include <cooperative_groups.h>

//@ launch column_variance<<<(ceil_div(N, 64), 8), 512>>>(x, out, M, N)
namespace cg = cooperative_groups;

// Merges (nb, mb, qb) into (na, ma, qa); w = nb / (na + nb), naw = na * w.
__device__ __forceinline__ void merge(float& ma, float& qa, float mb, float qb, float w, float naw) {
  const float d = mb - ma;
  ma = fmaf(d, w, ma);
  qa = qa + fmaf(d * d, naw, qb);
}

template <bool VEC>
__device__ __forceinline__ void load4(float (&v)[4], const float* __restrict__ p, int valid) {
  if (VEC) {
    const float4 t = __ldcs(reinterpret_cast<const float4*>(p));
    v[0] = t.x; v[1] = t.y; v[2] = t.z; v[3] = t.w;
  } else {
#pragma unroll
    for (int c = 0; c < 4; ++c) v[c] = c < valid ? p[c] : 0.0f;
  }
}

template <bool VEC>
__device__ __forceinline__ float accumulate(const float* __restrict__ x, int first, int M, int N, int column,
                                            int valid, float (&mean)[4], float (&q)[4]) {
  const int step = 256;
  int row = first;
  int batches = 0;
  const float* p = x + (size_t)first * (size_t)N + column;
  const size_t pitch = (size_t)step * (size_t)N;
  for (; row + 7 * step < M; row += 8 * step) {
    float v[8][4];
#pragma unroll
    for (int k = 0; k < 8; ++k) load4<VEC>(v[k], p + k * pitch, valid);
    p += 8 * pitch;
    const float w = 1.0f / (float)(batches + 1);
    const float naw = (float)(batches * 8) * w;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float s = ((v[0][c] + v[1][c]) + (v[2][c] + v[3][c])) + ((v[4][c] + v[5][c]) + (v[6][c] + v[7][c]));
      const float m = s * 0.125f;
      float qq = 0.0f;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float d = v[k][c] - m;
        qq = fmaf(d, d, qq);
      }
      merge(mean[c], q[c], m, qq, w, naw);
    }
    ++batches;
  }
  int n = batches * 8;
  for (; row < M; row += step) {
    float v[4];
    load4<VEC>(v, p, valid);
    p += pitch;
    const float w = 1.0f / (float)(n + 1);
    const float naw = (float)n * w;
#pragma unroll
    for (int c = 0; c < 4; ++c) merge(mean[c], q[c], v[c], 0.0f, w, naw);
    ++n;
  }
  return (float)n;
}

__global__ void __cluster_dims__(1, 8, 1) __launch_bounds__(512, 2)
column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ float s_mean[16][64];
  __shared__ float s_q[16][64];
  __shared__ float s_n[16];
  __shared__ float b_mean[64];
  __shared__ float b_q[64];
  __shared__ float b_n;

  cg::cluster_group cluster = cg::this_cluster();
  const int t = threadIdx.x;
  const int tx = t & 15;
  const int ty = t >> 4;
  const int warp = t >> 5;
  const int rank = blockIdx.y;
  const int column = blockIdx.x * 64 + tx * 4;
  const int first = rank * 32 + ty;

  float mean[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float q[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float n = 0.0f;
  if ((N & 3) == 0) {
    if (column < N) n = accumulate<true>(x, first, M, N, column, 4, mean, q);
  } else {
    if (column < N) n = accumulate<false>(x, first, M, N, column, N - column, mean, q);
  }

  // the two row lanes of the warp
  {
    const float nb = __shfl_xor_sync(0xffffffffu, n, 16);
    const float total = n + nb;
    const float w = total > 0.0f ? nb / total : 0.0f;
    const float naw = n * w;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float mb = __shfl_xor_sync(0xffffffffu, mean[c], 16);
      const float qb = __shfl_xor_sync(0xffffffffu, q[c], 16);
      merge(mean[c], q[c], mb, qb, w, naw);
    }
    n = total;
  }
  if ((t & 31) < 16) {
    *reinterpret_cast<float4*>(&s_mean[warp][tx * 4]) = make_float4(mean[0], mean[1], mean[2], mean[3]);
    *reinterpret_cast<float4*>(&s_q[warp][tx * 4]) = make_float4(q[0], q[1], q[2], q[3]);
    if (tx == 0) s_n[warp] = n;
  }
  __syncthreads();

  if (t < 64) {
    float m = s_mean[0][t];
    float qq = s_q[0][t];
    float na = s_n[0];
#pragma unroll
    for (int k = 1; k < 16; ++k) {
      const float nb = s_n[k];
      const float total = na + nb;
      const float w = total > 0.0f ? nb / total : 0.0f;
      merge(m, qq, s_mean[k][t], s_q[k][t], w, na * w);
      na = total;
    }
    b_mean[t] = m;
    b_q[t] = qq;
    if (t == 0) b_n = na;
  }
  cluster.sync();

  if (rank == 0 && t < 64) {
    float ms[8], qs[8], ns[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      ms[k] = cluster.map_shared_rank(b_mean, k)[t];
      qs[k] = cluster.map_shared_rank(b_q, k)[t];
      ns[k] = *cluster.map_shared_rank(&b_n, k);
    }
    float m = ms[0], qq = qs[0], na = ns[0];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      const float total = na + ns[k];
      const float w = total > 0.0f ? ns[k] / total : 0.0f;
      merge(m, qq, ms[k], qs[k], w, na * w);
      na = total;
    }
    const int j = blockIdx.x * 64 + t;
    if (j < N) out[j] = qq / (float)M;
  }
  cluster.sync();
}
