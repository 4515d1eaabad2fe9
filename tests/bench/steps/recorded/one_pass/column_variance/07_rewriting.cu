// The variance of each column, in one pass: a cluster of eight blocks for 32 columns, partial means and squares merged.

#include <cooperative_groups.h>

//@ launch column_variance<<<(ceil_div(N, 32), 8, 1), 256, cluster(1, 8, 1)>>>(x, out, M, N)

__device__ __forceinline__ void merge(float na, float& mean, float& m2, float nb, float mb, float qb) {
  float n = na + nb;
  if (nb > 0.0f) {
    float f = nb / n;
    float d = mb - mean;
    mean += d * f;
    m2 += qb + (d * (na * f)) * d;
  }
}

__device__ __forceinline__ void batch(const float v0, const float v1, const float v2, const float v3,
                                      const float v4, const float v5, const float v6, const float v7,
                                      float inv, float w, float& mean, float& m2) {
  float s = ((v0 + v1) + (v2 + v3)) + ((v4 + v5) + (v6 + v7));
  float m = s * 0.125f;
  float e0 = v0 - m, e1 = v1 - m, e2 = v2 - m, e3 = v3 - m;
  float e4 = v4 - m, e5 = v5 - m, e6 = v6 - m, e7 = v7 - m;
  float qa = e0 * e0;
  float qb = e1 * e1;
  qa += e2 * e2;
  qb += e3 * e3;
  qa += e4 * e4;
  qb += e5 * e5;
  qa += e6 * e6;
  qb += e7 * e7;
  float d = m - mean;
  mean += d * inv;
  m2 += (qa + qb) + (d * w) * d;
}

__device__ __forceinline__ void single(float v, float inv, float& mean, float& m2) {
  float d = v - mean;
  mean += d * inv;
  m2 += d * (v - mean);
}

__global__ void __launch_bounds__(256, 4) column_variance(const float* __restrict__ x,
                                                          float* __restrict__ out, int M, int N) {
  __shared__ float warp_mean[8][32];
  __shared__ float warp_m2[8][32];
  __shared__ float warp_n[8];
  __shared__ float all_mean[8][32];
  __shared__ float all_m2[8][32];
  __shared__ float all_n[8];

  // Every block of the cluster has started once this is waited for.
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int rank = blockIdx.y;
  const int col0 = blockIdx.x * 32;
  const int c = (lane & 7) * 4;
  const int col = col0 + c;
  const int group = tid >> 3;

  const int rows = (M + 7) / 8;
  const int begin = min(M, rank * rows);
  const int end = min(M, begin + rows);

  float n = 0.0f;
  float4 mean = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 m2 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

  int i = begin + group;
  if ((N & 3) == 0) {
    if (col < N) {
      const float* p = x + (size_t)i * (size_t)N + col;
      const size_t step = (size_t)N * 32;
      for (; i + 224 < end; i += 256) {
        float4 v[8];
#pragma unroll
        for (int u = 0; u < 8; ++u) {
          v[u] = __ldcs(reinterpret_cast<const float4*>(p));
          p += step;
        }
        float inv = 8.0f / (n + 8.0f);
        float w = n * inv;
        batch(v[0].x, v[1].x, v[2].x, v[3].x, v[4].x, v[5].x, v[6].x, v[7].x, inv, w, mean.x, m2.x);
        batch(v[0].y, v[1].y, v[2].y, v[3].y, v[4].y, v[5].y, v[6].y, v[7].y, inv, w, mean.y, m2.y);
        batch(v[0].z, v[1].z, v[2].z, v[3].z, v[4].z, v[5].z, v[6].z, v[7].z, inv, w, mean.z, m2.z);
        batch(v[0].w, v[1].w, v[2].w, v[3].w, v[4].w, v[5].w, v[6].w, v[7].w, inv, w, mean.w, m2.w);
        n += 8.0f;
      }
      for (; i < end; i += 32) {
        float4 v = __ldcs(reinterpret_cast<const float4*>(p));
        p += step;
        n += 1.0f;
        float inv = 1.0f / n;
        single(v.x, inv, mean.x, m2.x);
        single(v.y, inv, mean.y, m2.y);
        single(v.z, inv, mean.z, m2.z);
        single(v.w, inv, mean.w, m2.w);
      }
    } else {
      n = (i < end) ? (float)((end - i + 31) / 32) : 0.0f;
    }
  } else {
    for (; i < end; i += 32) {
      const float* p = x + (size_t)i * (size_t)N;
      float vx = (col + 0 < N) ? p[col + 0] : 0.0f;
      float vy = (col + 1 < N) ? p[col + 1] : 0.0f;
      float vz = (col + 2 < N) ? p[col + 2] : 0.0f;
      float vw = (col + 3 < N) ? p[col + 3] : 0.0f;
      n += 1.0f;
      float inv = 1.0f / n;
      single(vx, inv, mean.x, m2.x);
      single(vy, inv, mean.y, m2.y);
      single(vz, inv, mean.z, m2.z);
      single(vw, inv, mean.w, m2.w);
    }
  }
  __syncwarp();

  // The four row groups of a warp; the count is the same for all columns of a row group.
#pragma unroll
  for (int o = 16; o >= 8; o >>= 1) {
    float nb = __shfl_down_sync(0xffffffffu, n, o);
    float4 mb, qb;
    mb.x = __shfl_down_sync(0xffffffffu, mean.x, o);
    mb.y = __shfl_down_sync(0xffffffffu, mean.y, o);
    mb.z = __shfl_down_sync(0xffffffffu, mean.z, o);
    mb.w = __shfl_down_sync(0xffffffffu, mean.w, o);
    qb.x = __shfl_down_sync(0xffffffffu, m2.x, o);
    qb.y = __shfl_down_sync(0xffffffffu, m2.y, o);
    qb.z = __shfl_down_sync(0xffffffffu, m2.z, o);
    qb.w = __shfl_down_sync(0xffffffffu, m2.w, o);
    merge(n, mean.x, m2.x, nb, mb.x, qb.x);
    merge(n, mean.y, m2.y, nb, mb.y, qb.y);
    merge(n, mean.z, m2.z, nb, mb.z, qb.z);
    merge(n, mean.w, m2.w, nb, mb.w, qb.w);
    n += nb;
  }
  if (lane < 8) {
    warp_mean[warp][c + 0] = mean.x;
    warp_mean[warp][c + 1] = mean.y;
    warp_mean[warp][c + 2] = mean.z;
    warp_mean[warp][c + 3] = mean.w;
    warp_m2[warp][c + 0] = m2.x;
    warp_m2[warp][c + 1] = m2.y;
    warp_m2[warp][c + 2] = m2.z;
    warp_m2[warp][c + 3] = m2.w;
    if (lane == 0) {
      warp_n[warp] = n;
    }
  }
  __syncthreads();

  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");

  if (warp == 0) {
    // The eight warps of the block, handed to the first block of the cluster.
    float bn = warp_n[0];
    float bm = warp_mean[0][lane];
    float bq = warp_m2[0][lane];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      float nb = warp_n[k];
      merge(bn, bm, bq, nb, warp_mean[k][lane], warp_m2[k][lane]);
      bn += nb;
    }
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    float* to_mean = cluster.map_shared_rank(&all_mean[0][0], 0);
    float* to_m2 = cluster.map_shared_rank(&all_m2[0][0], 0);
    float* to_n = cluster.map_shared_rank(&all_n[0], 0);
    to_mean[rank * 32 + lane] = bm;
    to_m2[rank * 32 + lane] = bq;
    if (lane == 0) {
      to_n[rank] = bn;
    }
  }

  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");

  if (rank == 0 && warp == 0 && col0 + lane < N) {
    float bn = all_n[0];
    float bm = all_mean[0][lane];
    float bq = all_m2[0][lane];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      float nb = all_n[k];
      merge(bn, bm, bq, nb, all_mean[k][lane], all_m2[k][lane]);
      bn += nb;
    }
    out[col0 + lane] = bq / (float)M;
  }
}
