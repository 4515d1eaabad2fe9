// The variance of each column in one pass: a cluster of 8 blocks for each 64 columns.

#include <cooperative_groups.h>

//@ launch column_variance<<<(ceil_div(N, 64), 8, 1), 256, 0, cluster(1, 8, 1)>>>(x, out, M, N)

namespace cg = cooperative_groups;

#define CV_SLOTS 16
#define CV_RANKS 8
#define CV_STRIDE (CV_SLOTS * CV_RANKS)
#define CV_COLS 64

__device__ __forceinline__ void cv_update(float a, float b, float c, float d, float n, float w, float& mean, float& sq) {
  float m = ((a + b) + (c + d)) * 0.25f;
  float da = a - m;
  float db = b - m;
  float dc = c - m;
  float dd = d - m;
  float q = da * da;
  q = fmaf(db, db, q);
  q = fmaf(dc, dc, q);
  q = fmaf(dd, dd, q);
  float delta = m - mean;
  float t = delta * w;
  mean += t;
  sq += fmaf(delta * n, t, q);
}

__device__ __forceinline__ void cv_one(float v, float n1, float inv, float& mean, float& sq) {
  float delta = v - mean;
  mean = fmaf(delta, inv, mean);
  sq = fmaf(delta, v - mean, sq);
}

__device__ __forceinline__ void cv_merge(float& n, float& mean, float& sq, float nb, float mb, float qb) {
  if (nb > 0.0f) {
    float total = n + nb;
    float delta = mb - mean;
    float t = delta * (nb / total);
    mean += t;
    sq += fmaf(delta * n, t, qb);
    n = total;
  }
}

__device__ __forceinline__ int cv_count(int slot, int M) {
  return slot < M ? (M - slot + CV_STRIDE - 1) / CV_STRIDE : 0;
}

__global__ void __launch_bounds__(256, 3) column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ float4 smean[CV_SLOTS][CV_COLS / 4];
  __shared__ float4 ssq[CV_SLOTS][CV_COLS / 4];
  __shared__ float rmean[CV_COLS];
  __shared__ float rsq[CV_COLS];

  cg::cluster_group cluster = cg::this_cluster();
  const int tid = threadIdx.x;
  const int lane = tid & 15;
  const int slot = tid >> 4;
  const int rank = blockIdx.y;
  const int row0 = rank * CV_SLOTS + slot;
  const int col = blockIdx.x * CV_COLS + lane * 4;
  const int cnt = cv_count(row0, M);

  float4 mean = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 sq = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

  if (col < N && cnt > 0) {
    if ((N & 3) == 0) {
      const size_t step = (size_t)N * CV_STRIDE;
      const float* p = x + (size_t)row0 * N + col;  // next batch to load
      const int nfull = cnt >> 2;
      float4 buf[3][4];
      #pragma unroll
      for (int s = 0; s < 3; ++s) {
        if (s < nfull) {
          #pragma unroll
          for (int k = 0; k < 4; ++k) {
            buf[s][k] = __ldcs(reinterpret_cast<const float4*>(p));
            p += step;
          }
        }
      }
      float n = 0.0f;
      for (int b = 0; b < nfull; b += 3) {
        #pragma unroll
        for (int s = 0; s < 3; ++s) {
          if (b + s < nfull) {
            float total = n + 4.0f;
            float w = __fdividef(4.0f, total);
            cv_update(buf[s][0].x, buf[s][1].x, buf[s][2].x, buf[s][3].x, n, w, mean.x, sq.x);
            cv_update(buf[s][0].y, buf[s][1].y, buf[s][2].y, buf[s][3].y, n, w, mean.y, sq.y);
            cv_update(buf[s][0].z, buf[s][1].z, buf[s][2].z, buf[s][3].z, n, w, mean.z, sq.z);
            cv_update(buf[s][0].w, buf[s][1].w, buf[s][2].w, buf[s][3].w, n, w, mean.w, sq.w);
            n = total;
            if (b + s + 3 < nfull) {
              #pragma unroll
              for (int k = 0; k < 4; ++k) {
                buf[s][k] = __ldcs(reinterpret_cast<const float4*>(p));
                p += step;
              }
            }
          }
        }
      }
      for (int k = nfull * 4; k < cnt; ++k) {
        float4 v = __ldcs(reinterpret_cast<const float4*>(p));
        p += step;
        n += 1.0f;
        float inv = 1.0f / n;
        cv_one(v.x, n, inv, mean.x, sq.x);
        cv_one(v.y, n, inv, mean.y, sq.y);
        cv_one(v.z, n, inv, mean.z, sq.z);
        cv_one(v.w, n, inv, mean.w, sq.w);
      }
    } else {
      float n = 0.0f;
      for (int k = 0; k < cnt; ++k) {
        const float* p = x + (size_t)(row0 + k * CV_STRIDE) * N + col;
        n += 1.0f;
        float inv = 1.0f / n;
        cv_one(p[0], n, inv, mean.x, sq.x);
        if (col + 1 < N) cv_one(p[1], n, inv, mean.y, sq.y);
        if (col + 2 < N) cv_one(p[2], n, inv, mean.z, sq.z);
        if (col + 3 < N) cv_one(p[3], n, inv, mean.w, sq.w);
      }
    }
  }

  smean[slot][lane] = mean;
  ssq[slot][lane] = sq;
  __syncthreads();

  if (tid < CV_COLS) {
    const float* fm = reinterpret_cast<const float*>(&smean[0][0]);
    const float* fq = reinterpret_cast<const float*>(&ssq[0][0]);
    float n = 0.0f, m = 0.0f, q = 0.0f;
    #pragma unroll
    for (int s = 0; s < CV_SLOTS; ++s) {
      cv_merge(n, m, q, (float)cv_count(rank * CV_SLOTS + s, M), fm[s * CV_COLS + tid], fq[s * CV_COLS + tid]);
    }
    rmean[tid] = m;
    rsq[tid] = q;
  }
  cluster.sync();

  if (rank == 0 && tid < CV_COLS) {
    float bm[CV_RANKS];
    float bq[CV_RANKS];
    #pragma unroll
    for (int k = 0; k < CV_RANKS; ++k) {
      bm[k] = *cluster.map_shared_rank(&rmean[tid], k);
      bq[k] = *cluster.map_shared_rank(&rsq[tid], k);
    }
    float n = 0.0f, m = 0.0f, q = 0.0f;
    #pragma unroll
    for (int k = 0; k < CV_RANKS; ++k) {
      int rows = 0;
      #pragma unroll
      for (int s = 0; s < CV_SLOTS; ++s) {
        rows += cv_count(k * CV_SLOTS + s, M);
      }
      cv_merge(n, m, q, (float)rows, bm[k], bq[k]);
    }
    int j = blockIdx.x * CV_COLS + tid;
    if (j < N) {
      out[j] = q / M;
    }
  }
  cluster.sync();
}
