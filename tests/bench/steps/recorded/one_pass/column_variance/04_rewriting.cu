// The variance of each column in one pass: a cluster of 8 blocks for 32 columns, partial means and squares merged.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Merge (nb, mb, qb) into (ma, qa), with w = nb / (na + nb) and c = na * w.
__device__ __forceinline__ void merge(float& ma, float& qa, float mb, float qb, float w, float c) {
  float d = mb - ma;
  ma += d * w;
  qa += qb + d * (d * c);
}

__device__ __forceinline__ void add_chunk8(float& m, float& q,
                                           float a0, float a1, float a2, float a3,
                                           float a4, float a5, float a6, float a7,
                                           float w, float c) {
  float cm = (((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))) * 0.125f;
  float d, s;
  d = a0 - cm; s = d * d;
  d = a1 - cm; s += d * d;
  d = a2 - cm; s += d * d;
  d = a3 - cm; s += d * d;
  d = a4 - cm; s += d * d;
  d = a5 - cm; s += d * d;
  d = a6 - cm; s += d * d;
  d = a7 - cm; s += d * d;
  merge(m, q, cm, s, w, c);
}

//@ launch column_variance<<<(ceil_div(N, 32), 8, 1), 256>>>(x, out, M, N)
__global__ void __cluster_dims__(1, 8, 1) __launch_bounds__(256, 4)
column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ float s_mean[8][32];
  __shared__ float s_sq[8][32];
  __shared__ float s_n[8];
  __shared__ float b_mean[32];
  __shared__ float b_sq[32];

  cg::cluster_group cluster = cg::this_cluster();

  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int cl = (t & 7) * 4;               // first of four columns in the tile
  const int col = blockIdx.x * 32 + cl;
  const int rows = (M + 7) / 8;
  const int r0 = min(M, (int)blockIdx.y * rows);
  const int r1 = min(M, r0 + rows);

  float m0 = 0.0f, m1 = 0.0f, m2 = 0.0f, m3 = 0.0f;
  float q0 = 0.0f, q1 = 0.0f, q2 = 0.0f, q3 = 0.0f;
  float n = 0.0f;
  int i = r0 + (t >> 3);

  if ((N & 3) == 0) {
    if (col < N) {
      const size_t step = (size_t)32 * (size_t)N;
      const float* p = x + (size_t)i * (size_t)N + col;
      for (; i + 7 * 32 < r1; i += 8 * 32) {
        float4 v[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          v[k] = __ldg(reinterpret_cast<const float4*>(p + k * step));
        }
        p += 8 * step;
        const float w = 8.0f / (n + 8.0f);
        const float c = n * w;
        n += 8.0f;
        add_chunk8(m0, q0, v[0].x, v[1].x, v[2].x, v[3].x, v[4].x, v[5].x, v[6].x, v[7].x, w, c);
        add_chunk8(m1, q1, v[0].y, v[1].y, v[2].y, v[3].y, v[4].y, v[5].y, v[6].y, v[7].y, w, c);
        add_chunk8(m2, q2, v[0].z, v[1].z, v[2].z, v[3].z, v[4].z, v[5].z, v[6].z, v[7].z, w, c);
        add_chunk8(m3, q3, v[0].w, v[1].w, v[2].w, v[3].w, v[4].w, v[5].w, v[6].w, v[7].w, w, c);
      }
      for (; i < r1; i += 32) {
        const float4 v = __ldg(reinterpret_cast<const float4*>(p));
        p += step;
        const float w = 1.0f / (n + 1.0f);
        const float c = n * w;
        n += 1.0f;
        merge(m0, q0, v.x, 0.0f, w, c);
        merge(m1, q1, v.y, 0.0f, w, c);
        merge(m2, q2, v.z, 0.0f, w, c);
        merge(m3, q3, v.w, 0.0f, w, c);
      }
    } else {
      // no columns here: only the number of rows must agree with the lanes beside
      for (; i < r1; i += 32) {
        n += 1.0f;
      }
    }
  } else {
    for (; i < r1; i += 32) {
      const float* p = x + (size_t)i * (size_t)N;
      const float v0 = col < N ? __ldg(p + col) : 0.0f;
      const float v1 = col + 1 < N ? __ldg(p + col + 1) : 0.0f;
      const float v2 = col + 2 < N ? __ldg(p + col + 2) : 0.0f;
      const float v3 = col + 3 < N ? __ldg(p + col + 3) : 0.0f;
      const float w = 1.0f / (n + 1.0f);
      const float c = n * w;
      n += 1.0f;
      merge(m0, q0, v0, 0.0f, w, c);
      merge(m1, q1, v1, 0.0f, w, c);
      merge(m2, q2, v2, 0.0f, w, c);
      merge(m3, q3, v3, 0.0f, w, c);
    }
  }
  __syncwarp();

  // lanes of a warp that hold the same columns
#pragma unroll
  for (int o = 8; o <= 16; o <<= 1) {
    const float nb = __shfl_xor_sync(0xffffffffu, n, o);
    const float a0 = __shfl_xor_sync(0xffffffffu, m0, o);
    const float a1 = __shfl_xor_sync(0xffffffffu, m1, o);
    const float a2 = __shfl_xor_sync(0xffffffffu, m2, o);
    const float a3 = __shfl_xor_sync(0xffffffffu, m3, o);
    const float s0 = __shfl_xor_sync(0xffffffffu, q0, o);
    const float s1 = __shfl_xor_sync(0xffffffffu, q1, o);
    const float s2 = __shfl_xor_sync(0xffffffffu, q2, o);
    const float s3 = __shfl_xor_sync(0xffffffffu, q3, o);
    const float nn = n + nb;
    const float w = nn > 0.0f ? nb / nn : 0.0f;
    const float c = n * w;
    merge(m0, q0, a0, s0, w, c);
    merge(m1, q1, a1, s1, w, c);
    merge(m2, q2, a2, s2, w, c);
    merge(m3, q3, a3, s3, w, c);
    n = nn;
  }
  if (lane < 8) {
    s_mean[warp][cl] = m0;
    s_mean[warp][cl + 1] = m1;
    s_mean[warp][cl + 2] = m2;
    s_mean[warp][cl + 3] = m3;
    s_sq[warp][cl] = q0;
    s_sq[warp][cl + 1] = q1;
    s_sq[warp][cl + 2] = q2;
    s_sq[warp][cl + 3] = q3;
    if (lane == 0) {
      s_n[warp] = n;
    }
  }
  __syncthreads();

  // warps of the block
  if (t < 32) {
    float m = s_mean[0][t];
    float q = s_sq[0][t];
    float na = s_n[0];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      const float nb = s_n[k];
      const float nn = na + nb;
      const float w = nn > 0.0f ? nb / nn : 0.0f;
      merge(m, q, s_mean[k][t], s_sq[k][t], w, na * w);
      na = nn;
    }
    b_mean[t] = m;
    b_sq[t] = q;
  }
  cluster.sync();

  // blocks of the cluster
  if (blockIdx.y == 0 && t < 32) {
    float bm[8];
    float bq[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      bm[k] = cluster.map_shared_rank(b_mean, k)[t];
      bq[k] = cluster.map_shared_rank(b_sq, k)[t];
    }
    float m = bm[0];
    float q = bq[0];
    float na = (float)min(M, rows);
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      const int e0 = min(M, k * rows);
      const int e1 = min(M, e0 + rows);
      const float nb = (float)(e1 - e0);
      const float nn = na + nb;
      const float w = nn > 0.0f ? nb / nn : 0.0f;
      merge(m, q, bm[k], bq[k], w, na * w);
      na = nn;
    }
    const int j = blockIdx.x * 32 + t;
    if (j < N) {
      out[j] = q / M;
    }
  }
  cluster.sync();
}
