// The variance of each column, each element read once; a cluster of 8 blocks for 64 columns, merged in distributed shared memory.

//@ launch column_variance<<<ceil_div(N, 64) * 8, 256, cluster(8, 1, 1)>>>(x, out, M, N)
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ __forceinline__ void merge_into(float& n, float& mean, float& m2, float nb, float meanb, float m2b) {
  if (nb > 0.0f) {
    const float total = n + nb;
    const float share = nb / total;
    const float delta = meanb - mean;
    mean = fmaf(delta, share, mean);
    m2 = m2 + m2b + delta * delta * (n * share);
    n = total;
  }
}

__global__ void __launch_bounds__(256, 4) column_variance(const float* __restrict__ x, float* __restrict__ out, int M,
                                                          int N) {
  __shared__ __align__(16) float warp_mean[8][64];
  __shared__ __align__(16) float warp_m2[8][64];
  __shared__ float warp_n[8];
  __shared__ float block_mean[64];
  __shared__ float block_m2[64];
  __shared__ float block_n;

  cg::cluster_group cluster = cg::this_cluster();
  const int rank = (int)(blockIdx.x & 7);
  const int column0 = (int)(blockIdx.x >> 3) * 64;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int cx = tid & 15;
  const int ry = tid >> 4;
  const int column = column0 + cx * 4;

  float n = 0.0f;
  float mean[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float m2[4] = {0.0f, 0.0f, 0.0f, 0.0f};

  if ((N & 63) == 0) {
    int row = rank * 128 + ry;
    const float* p = x + (size_t)row * (size_t)N + column;
    const size_t line = (size_t)N * 16;
    const size_t step = (size_t)N * 1024;
    for (; row + 112 < M; row += 1024, p += step) {
      float4 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        v[k] = __ldcs(reinterpret_cast<const float4*>(p + (size_t)k * line));
      }
      float s[4];
      s[0] = ((v[0].x + v[1].x) + (v[2].x + v[3].x)) + ((v[4].x + v[5].x) + (v[6].x + v[7].x));
      s[1] = ((v[0].y + v[1].y) + (v[2].y + v[3].y)) + ((v[4].y + v[5].y) + (v[6].y + v[7].y));
      s[2] = ((v[0].z + v[1].z) + (v[2].z + v[3].z)) + ((v[4].z + v[5].z) + (v[6].z + v[7].z));
      s[3] = ((v[0].w + v[1].w) + (v[2].w + v[3].w)) + ((v[4].w + v[5].w) + (v[6].w + v[7].w));
      float q[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        s[c] *= 0.125f;
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float d0 = v[k].x - s[0];
        const float d1 = v[k].y - s[1];
        const float d2 = v[k].z - s[2];
        const float d3 = v[k].w - s[3];
        q[0] = fmaf(d0, d0, q[0]);
        q[1] = fmaf(d1, d1, q[1]);
        q[2] = fmaf(d2, d2, q[2]);
        q[3] = fmaf(d3, d3, q[3]);
      }
      const float total = n + 8.0f;
      const float share = __fdividef(8.0f, total);
      const float weight = n * share;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float delta = s[c] - mean[c];
        mean[c] = fmaf(delta, share, mean[c]);
        m2[c] = fmaf(delta * delta, weight, m2[c] + q[c]);
      }
      n = total;
    }
    for (int k = 0; k < 8 && row < M; ++k, row += 16, p += line) {
      const float4 v = *reinterpret_cast<const float4*>(p);
      const float e[4] = {v.x, v.y, v.z, v.w};
      const float total = n + 1.0f;
      const float share = 1.0f / total;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float delta = e[c] - mean[c];
        mean[c] = fmaf(delta, share, mean[c]);
        m2[c] = fmaf(delta * delta, n * share, m2[c]);
      }
      n = total;
    }
  } else {
    for (int row = rank * 16 + ry; row < M; row += 128) {
      const float* p = x + (size_t)row * (size_t)N;
      const float total = n + 1.0f;
      const float share = 1.0f / total;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float value = column + c < N ? p[column + c] : 0.0f;
        const float delta = value - mean[c];
        mean[c] = fmaf(delta, share, mean[c]);
        m2[c] = fmaf(delta * delta, n * share, m2[c]);
      }
      n = total;
    }
  }

  // the two rows of a warp
  {
    const float nb = __shfl_xor_sync(0xffffffffu, n, 16);
    const float n0 = n;
    float merged = n0;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float meanb = __shfl_xor_sync(0xffffffffu, mean[c], 16);
      const float m2b = __shfl_xor_sync(0xffffffffu, m2[c], 16);
      merged = n0;
      merge_into(merged, mean[c], m2[c], nb, meanb, m2b);
    }
    n = merged;
  }
  if (lane < 16) {
    float* to_mean = &warp_mean[warp][cx * 4];
    float* to_m2 = &warp_m2[warp][cx * 4];
    to_mean[0] = mean[0];
    to_mean[1] = mean[1];
    to_mean[2] = mean[2];
    to_mean[3] = mean[3];
    to_m2[0] = m2[0];
    to_m2[1] = m2[1];
    to_m2[2] = m2[2];
    to_m2[3] = m2[3];
    if (lane == 0) warp_n[warp] = n;
  }
  __syncthreads();

  // the eight warps of a block
  if (tid < 64) {
    float bn = 0.0f, bmean = 0.0f, bm2 = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      merge_into(bn, bmean, bm2, warp_n[w], warp_mean[w][tid], warp_m2[w][tid]);
    }
    block_mean[tid] = bmean;
    block_m2[tid] = bm2;
    if (tid == 0) block_n = bn;
  }
  cluster.sync();

  // the eight blocks of a cluster: each block finishes eight columns
  if (tid < 8) {
    const int c = rank * 8 + tid;
    float ns[8], means[8], m2s[8];
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      ns[b] = *cluster.map_shared_rank(&block_n, b);
      means[b] = *cluster.map_shared_rank(&block_mean[c], b);
      m2s[b] = *cluster.map_shared_rank(&block_m2[c], b);
    }
    float cn = 0.0f, cmean = 0.0f, cm2 = 0.0f;
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      merge_into(cn, cmean, cm2, ns[b], means[b], m2s[b]);
    }
    if (column0 + c < N) out[column0 + c] = cm2 / M;
  }
  cluster.sync();
}
