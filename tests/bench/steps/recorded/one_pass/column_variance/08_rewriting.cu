// The variance of each column in one pass: a cluster of 8 blocks for 32 columns, a block for an eighth of the rows.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ __forceinline__ void combine(float& n, float& mean, float& m2, float nb, float meanb, float m2b) {
  if (nb > 0.0f) {
    if (n > 0.0f) {
      float total = n + nb;
      float w = nb / total;
      float d = meanb - mean;
      mean = mean + d * w;
      m2 = (m2 + m2b) + d * (d * (n * w));
      n = total;
    } else {
      n = nb;
      mean = meanb;
      m2 = m2b;
    }
  }
}

__device__ __forceinline__ void batch8(float a0, float a1, float a2, float a3, float a4, float a5, float a6, float a7,
                                       float w, float c, float& mean, float& m2) {
  float bm = (((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))) * 0.125f;
  a0 -= bm;
  a1 -= bm;
  a2 -= bm;
  a3 -= bm;
  a4 -= bm;
  a5 -= bm;
  a6 -= bm;
  a7 -= bm;
  float p = a0 * a0;
  float q = a1 * a1;
  p += a2 * a2;
  q += a3 * a3;
  p += a4 * a4;
  q += a5 * a5;
  p += a6 * a6;
  q += a7 * a7;
  float d = bm - mean;
  mean += d * w;
  m2 += (p + q) + d * (d * c);
}

//@ launch column_variance<<<8 * ceil_div(N, 32), 256, 0, cluster(8, 1, 1)>>>(x, out, M, N)
__global__ void __launch_bounds__(256, 4) column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ float s_n[8];
  __shared__ float s_mean[8][32];
  __shared__ float s_m2[8][32];
  __shared__ float f_n[8];
  __shared__ float f_mean[8][32];
  __shared__ float f_m2[8][32];

  cg::cluster_group cluster = cg::this_cluster();
  int rank = blockIdx.x & 7;
  int group = blockIdx.x >> 3;
  int t = threadIdx.x;
  int tx = t & 7;
  int ty = t >> 3;
  int col = group * 32 + tx * 4;

  int rows = (M + 7) / 8;
  int begin = rank * rows;
  int end = begin + rows;
  if (end > M) {
    end = M;
  }

  float n = 0.0f;
  float mean[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float m2[4] = {0.0f, 0.0f, 0.0f, 0.0f};

  int i = begin + ty;
  if ((N & 3) == 0 && col < N) {
    const float* p = x + (size_t)i * (size_t)N + col;
    size_t step = (size_t)N * 32;
    for (; i + 7 * 32 < end; i += 256) {
      float4 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        v[k] = __ldcs(reinterpret_cast<const float4*>(p));
        p += step;
      }
      float total = n + 8.0f;
      float w = __fdividef(8.0f, total);
      float c = n * w;
      batch8(v[0].x, v[1].x, v[2].x, v[3].x, v[4].x, v[5].x, v[6].x, v[7].x, w, c, mean[0], m2[0]);
      batch8(v[0].y, v[1].y, v[2].y, v[3].y, v[4].y, v[5].y, v[6].y, v[7].y, w, c, mean[1], m2[1]);
      batch8(v[0].z, v[1].z, v[2].z, v[3].z, v[4].z, v[5].z, v[6].z, v[7].z, w, c, mean[2], m2[2]);
      batch8(v[0].w, v[1].w, v[2].w, v[3].w, v[4].w, v[5].w, v[6].w, v[7].w, w, c, mean[3], m2[3]);
      n = total;
    }
  }
  for (; i < end; i += 32) {
    const float* p = x + (size_t)i * (size_t)N + col;
    float total = n + 1.0f;
    float w = 1.0f / total;
    float c = n * w;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float a = (col + k < N) ? p[k] : 0.0f;
      float d = a - mean[k];
      mean[k] += d * w;
      m2[k] += d * (d * c);
    }
    n = total;
  }

  // the four rows of a warp
#pragma unroll
  for (int o = 8; o <= 16; o <<= 1) {
    float nb = __shfl_xor_sync(0xffffffffu, n, o);
    float nn = n;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float mb = __shfl_xor_sync(0xffffffffu, mean[k], o);
      float qb = __shfl_xor_sync(0xffffffffu, m2[k], o);
      nn = n;
      combine(nn, mean[k], m2[k], nb, mb, qb);
    }
    n = nn;
  }
  int warp = t >> 5;
  int lane = t & 31;
  if (lane < 8) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      s_mean[warp][tx * 4 + k] = mean[k];
      s_m2[warp][tx * 4 + k] = m2[k];
    }
    if (lane == 0) {
      s_n[warp] = n;
    }
  }
  // also makes sure that the first block of the cluster runs before it is written to
  cluster.sync();

  // the eight warps of a block, one thread for each column
  if (warp == 0) {
    float bn = s_n[0];
    float bmean = s_mean[0][lane];
    float bm2 = s_m2[0][lane];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      combine(bn, bmean, bm2, s_n[k], s_mean[k][lane], s_m2[k][lane]);
    }
    float* dn = cluster.map_shared_rank(&f_n[0], 0);
    float* dmean = cluster.map_shared_rank(&f_mean[0][0], 0);
    float* dm2 = cluster.map_shared_rank(&f_m2[0][0], 0);
    dmean[rank * 32 + lane] = bmean;
    dm2[rank * 32 + lane] = bm2;
    if (lane == 0) {
      dn[rank] = bn;
    }
  }
  cluster.sync();

  // the eight blocks of a cluster
  if (rank == 0 && warp == 0) {
    float bn = f_n[0];
    float bmean = f_mean[0][lane];
    float bm2 = f_m2[0][lane];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      combine(bn, bmean, bm2, f_n[k], f_mean[k][lane], f_m2[k][lane]);
    }
    int j = group * 32 + lane;
    if (j < N) {
      out[j] = bm2 / M;
    }
  }
}
