// The variance of each column, in one pass: a cluster of 8 blocks takes a strip of 64 columns.
// Parts are (count, mean, sum of squared deviations), merged in a fixed order.

#include <cstdint>
#include <cooperative_groups.h>

//@ launch column_variance<<<8 * ceil_div(N, 64), 512, cluster(8, 1, 1)>>>(x, out, M, N)

namespace cg = cooperative_groups;

constexpr int kRanks = 8;               // blocks of a cluster
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kCols = 64;               // columns of a strip, 4 a lane
constexpr int kGroups = kThreads / 16;  // rows a block reads at a time
constexpr int kStep = kRanks * kGroups; // rows a cluster reads at a time

template <bool kVector>
__device__ __forceinline__ float4 load4(const float* p, int valid) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (kVector) {
    if (valid > 0) v = __ldcs(reinterpret_cast<const float4*>(p));
  } else {
    if (valid > 0) v.x = p[0];
    if (valid > 1) v.y = p[1];
    if (valid > 2) v.z = p[2];
    if (valid > 3) v.w = p[3];
  }
  return v;
}

__device__ __forceinline__ void add1(float x, float p, float& s, float& q) {
  const float d = x - p;
  s += d;
  q = fmaf(d, d, q);
}

__device__ __forceinline__ void add4(const float4& v, const float4& p, float4& s, float4& q) {
  add1(v.x, p.x, s.x, q.x);
  add1(v.y, p.y, s.y, q.y);
  add1(v.z, p.z, s.z, q.z);
  add1(v.w, p.w, s.w, q.w);
}

template <bool kVector>
__device__ __forceinline__ void stream_rows(const float* p, size_t stride, int rows, int valid,
                                            float4& pivot, float4& s, float4& q) {
  if (rows <= 0) return;
  pivot = load4<kVector>(p, valid);
  int t = 0;
  for (; t + 4 <= rows; t += 4) {
    const float4 a = load4<kVector>(p, valid);
    const float4 b = load4<kVector>(p + stride, valid);
    const float4 c = load4<kVector>(p + 2 * stride, valid);
    const float4 d = load4<kVector>(p + 3 * stride, valid);
    p += 4 * stride;
    add4(a, pivot, s, q);
    add4(b, pivot, s, q);
    add4(c, pivot, s, q);
    add4(d, pivot, s, q);
  }
  for (; t < rows; ++t) {
    const float4 a = load4<kVector>(p, valid);
    p += stride;
    add4(a, pivot, s, q);
  }
}

// From shifted sums to mean and squared deviations.
__device__ __forceinline__ void settle(float pivot, float s, float q, float inverse,
                                       float& mean, float& m2) {
  const float shift = s * inverse;
  mean = pivot + shift;
  const float rest = fmaf(-s, shift, q);
  m2 = rest < 0.0f ? 0.0f : rest;  // keeps NaN
}

// Adds the part of the lane 16 further on.
__device__ __forceinline__ void merge_half(float n, float n_other, float weight, float& mean, float& m2) {
  const float mean_other = __shfl_down_sync(0xffffffffu, mean, 16);
  const float m2_other = __shfl_down_sync(0xffffffffu, m2, 16);
  const float delta = mean_other - mean;
  const float move = delta * weight;
  mean += move;
  m2 = m2 + m2_other + (move * n) * delta;
}

// Merges kParts parts of one column, in order.
template <int kParts>
__device__ __forceinline__ void merge_parts(const float* counts, const float (*means)[kCols],
                                            const float (*squares)[kCols], int column,
                                            float& n, float& mean, float& m2) {
  const float base = means[0][column];
  float total = 0.0f, moved = 0.0f;
#pragma unroll
  for (int k = 0; k < kParts; ++k) {
    const float c = counts[k];
    total += c;
    moved += c > 0.0f ? c * (means[k][column] - base) : 0.0f;
  }
  const float center = base + (total > 0.0f ? moved / total : 0.0f);
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kParts; ++k) {
    const float c = counts[k];
    const float d = means[k][column] - center;
    sum += c > 0.0f ? fmaf(c * d, d, squares[k][column]) : 0.0f;
  }
  n = total;
  mean = center;
  m2 = sum;
}

__global__ void __launch_bounds__(kThreads, 3)
column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ __align__(16) float warp_mean[kWarps][kCols];
  __shared__ __align__(16) float warp_m2[kWarps][kCols];
  __shared__ float warp_n[kWarps];
  __shared__ float rank_mean[kRanks][kCols];
  __shared__ float rank_m2[kRanks][kCols];
  __shared__ float rank_n[kRanks];

  // Tells the cluster that this block runs; waited for only before the remote writes.
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");

  const int tid = threadIdx.x;
  const int rank = blockIdx.x % kRanks;
  const int strip = blockIdx.x / kRanks;
  const int first_col = strip * kCols;

  {
    const int col = first_col + (tid & 15) * 4;
    const int row = rank * kGroups + (tid >> 4);
    const int rows = row < M ? (M - 1 - row) / kStep + 1 : 0;
    const int valid = N - col;

    float4 pivot = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 s = pivot, q = pivot;
    const float* p = x + (size_t)row * N + col;
    const size_t stride = (size_t)kStep * N;
    if ((N & 3) == 0 && (reinterpret_cast<uintptr_t>(x) & 15) == 0) {
      if (valid > 0) stream_rows<true>(p, stride, rows, 4, pivot, s, q);
    } else {
      stream_rows<false>(p, stride, rows, valid, pivot, s, q);
    }
    __syncwarp();

    const float n = (float)rows;
    const float inverse = rows > 0 ? 1.0f / n : 0.0f;
    float4 mean, m2;
    settle(pivot.x, s.x, q.x, inverse, mean.x, m2.x);
    settle(pivot.y, s.y, q.y, inverse, mean.y, m2.y);
    settle(pivot.z, s.z, q.z, inverse, mean.z, m2.z);
    settle(pivot.w, s.w, q.w, inverse, mean.w, m2.w);

    const float n_other = __shfl_down_sync(0xffffffffu, n, 16);
    const float n_both = n + n_other;
    const float weight = n_both > 0.0f ? n_other / n_both : 0.0f;
    merge_half(n, n_other, weight, mean.x, m2.x);
    merge_half(n, n_other, weight, mean.y, m2.y);
    merge_half(n, n_other, weight, mean.z, m2.z);
    merge_half(n, n_other, weight, mean.w, m2.w);

    const int warp = tid >> 5, lane = tid & 31;
    if (lane < 16) {
      *reinterpret_cast<float4*>(&warp_mean[warp][lane * 4]) = mean;
      *reinterpret_cast<float4*>(&warp_m2[warp][lane * 4]) = m2;
      if (lane == 0) warp_n[warp] = n_both;
    }
  }
  __syncthreads();

  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");

  if (tid < kCols) {
    float n, mean, m2;
    merge_parts<kWarps>(warp_n, warp_mean, warp_m2, tid, n, mean, m2);
    cg::cluster_group cluster = cg::this_cluster();
    float* far_mean = cluster.map_shared_rank(&rank_mean[0][0], 0);
    float* far_m2 = cluster.map_shared_rank(&rank_m2[0][0], 0);
    float* far_n = cluster.map_shared_rank(&rank_n[0], 0);
    far_mean[rank * kCols + tid] = mean;
    far_m2[rank * kCols + tid] = m2;
    if (tid == 0) far_n[rank] = n;
  }
  __syncwarp();

  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");

  if (rank == 0 && tid < kCols && first_col + tid < N) {
    float n, mean, m2;
    merge_parts<kRanks>(rank_n, rank_mean, rank_m2, tid, n, mean, m2);
    out[first_col + tid] = m2 / (float)M;
  }
}
