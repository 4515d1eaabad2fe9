// The variance of each column, in one pass: groups of 8 rows are reduced exactly as in two passes in registers
// and merged by Chan's formula; a cluster of 8 blocks shares a strip of 64 columns and combines over
// distributed shared memory.

#include <cooperative_groups.h>
#include <cstddef>

namespace cg = cooperative_groups;

constexpr int kCluster = 8;               // blocks that share a strip
constexpr int kLanes = 16;                // threads along a row, 4 columns each
constexpr int kRows = 16;                 // threads along the column
constexpr int kCols = kLanes * 4;         // columns of a strip
constexpr int kBatch = 8;                 // rows of a thread in flight
constexpr int kTile = kRows * kBatch;     // rows of a block in flight
constexpr int kPitch = kCols + 4;         // keeps float4 alignment, spreads the banks

//@ launch column_variance<<<ceil_div(N, 64) * 8, 256, 0, cluster(8, 1, 1)>>>(x, out, M, N)
__global__ void __launch_bounds__(256, 3)
column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ __align__(16) float part_mean[kRows * kPitch];
  __shared__ __align__(16) float part_m2[kRows * kPitch];
  __shared__ float part_n[kRows];

  cg::cluster_group cluster = cg::this_cluster();
  const int rank = (int)cluster.block_rank();
  const int strip = blockIdx.x / kCluster;
  const int tx = threadIdx.x % kLanes;
  const int ty = threadIdx.x / kLanes;
  const int j = strip * kCols + tx * 4;

  float mean[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float m2[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float n = 0.0f;
  int t = rank;

  // Whole tiles, four columns at a time.
  if ((N & 3) == 0 && j < N) {
    const int full = M / kTile;
    const size_t row_step = (size_t)kRows * (size_t)N;
    const size_t tile_step = (size_t)kCluster * kTile * (size_t)N;
    const float* p = x + ((size_t)rank * kTile + ty) * (size_t)N + j;
    float k = 0.0f;  // groups merged so far
    for (; t < full; t += kCluster) {
      float v[kBatch][4];
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        const float4 q = __ldcs(reinterpret_cast<const float4*>(p + u * row_step));
        v[u][0] = q.x;
        v[u][1] = q.y;
        v[u][2] = q.z;
        v[u][3] = q.w;
      }
      p += tile_step;
      const float w = __frcp_rn(k + 1.0f);
      const float c2 = (float)kBatch * k * w;
      k += 1.0f;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float s = ((v[0][c] + v[1][c]) + (v[2][c] + v[3][c])) +
                        ((v[4][c] + v[5][c]) + (v[6][c] + v[7][c]));
        const float gm = s * (1.0f / kBatch);
        float qa = 0.0f, qb = 0.0f;
#pragma unroll
        for (int u = 0; u < kBatch; u += 2) {
          const float da = v[u][c] - gm;
          const float db = v[u + 1][c] - gm;
          qa = fmaf(da, da, qa);
          qb = fmaf(db, db, qb);
        }
        const float delta = gm - mean[c];
        mean[c] = fmaf(delta, w, mean[c]);
        m2[c] += fmaf(delta * c2, delta, qa + qb);
      }
    }
    n = k * (float)kBatch;
  }

  // What is left: the last, partial tile, or everything where rows are not aligned to float4.
  for (; (long long)t * kTile < (long long)M; t += kCluster) {
    for (int u = 0; u < kBatch; ++u) {
      const long long r = (long long)t * kTile + u * kRows + ty;
      if (r < M) {
        const float before = n;
        n += 1.0f;
        const float w = __frcp_rn(n);
        const float c2 = before * w;
        const float* p = x + (size_t)r * (size_t)N + j;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          if (j + c < N) {
            const float delta = p[c] - mean[c];
            mean[c] = fmaf(delta, w, mean[c]);
            m2[c] = fmaf(delta * c2, delta, m2[c]);
          }
        }
      }
    }
  }

  *reinterpret_cast<float4*>(&part_mean[ty * kPitch + tx * 4]) =
      make_float4(mean[0], mean[1], mean[2], mean[3]);
  *reinterpret_cast<float4*>(&part_m2[ty * kPitch + tx * 4]) =
      make_float4(m2[0], m2[1], m2[2], m2[3]);
  if (tx == 0) part_n[ty] = n;

  cluster.sync();

  // Each block finishes 8 columns of the strip, one warp per column: 128 partial results, 4 per lane.
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int col = rank * (kCols / kCluster) + warp;
  const float inv = 1.0f / (float)M;

  float pn[4], pm[4], pq[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int index = lane + 32 * i;
    const int from = index / kRows;
    const int row = index % kRows;
    const float* far_mean = cluster.map_shared_rank(&part_mean[0], from);
    const float* far_m2 = cluster.map_shared_rank(&part_m2[0], from);
    const float* far_n = cluster.map_shared_rank(&part_n[0], from);
    pn[i] = far_n[row];
    pm[i] = far_mean[row * kPitch + col];
    pq[i] = far_m2[row * kPitch + col];
  }

  float all_mean = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) all_mean = fmaf(pn[i] * inv, pm[i], all_mean);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) all_mean += __shfl_xor_sync(0xffffffffu, all_mean, d);

  float all_m2 = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float delta = pm[i] - all_mean;
    all_m2 += fmaf(pn[i] * delta, delta, pq[i]);
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) all_m2 += __shfl_xor_sync(0xffffffffu, all_m2, d);

  const int target = strip * kCols + col;
  if (lane == 0 && target < N) out[target] = all_m2 / (float)M;

  // No block may leave while another still reads its shared memory.
  cluster.sync();
}
