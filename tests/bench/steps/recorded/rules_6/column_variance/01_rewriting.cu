// The variance of each column, in one pass over x.
// A cluster of 8 blocks takes 64 columns; its blocks and their threads split the rows.
// Each thread sums x - k and (x - k)^2 for 4 columns, k being its own first value;
// (count, mean, squared deviations) are then merged in a fixed order.

//@ launch column_variance<<<(8, ceil_div(N, 64), 1), 512, cluster(8, 1, 1)>>>(x, out, M, N)
#include <cstdint>
#include <cstddef>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kThreads = 512;
constexpr int kCols = 64;                      // columns of a cluster
constexpr int kGroups = kCols / 4;             // threads side by side, 4 columns each
constexpr int kSlots = kThreads / kGroups;     // rows a block reads at a time (32)
constexpr int kSplits = 8;                     // blocks of a cluster
constexpr int kStride = kSlots * kSplits;      // rows a cluster reads at a time (256)
constexpr int kWarps = kThreads / 32;

__device__ __forceinline__ int rows_of_slot(int slot, int M) {
  return slot < M ? (M - 1 - slot) / kStride + 1 : 0;
}

__device__ __forceinline__ void add1(float v, float k, float& s, float& q) {
  const float d = v - k;
  s += d;
  q = fmaf(d, d, q);
}

__device__ __forceinline__ void add4(const float4& v, const float4& k, float4& s, float4& q) {
  add1(v.x, k.x, s.x, q.x);
  add1(v.y, k.y, s.y, q.y);
  add1(v.z, k.z, s.z, q.z);
  add1(v.w, k.w, s.w, q.w);
}

template <bool VEC>
__device__ __forceinline__ float4 load4(const float* p, int valid) {
  if (VEC) {
    return __ldg(reinterpret_cast<const float4*>(p));
  } else {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (valid > 0) v.x = __ldg(p);
    if (valid > 1) v.y = __ldg(p + 1);
    if (valid > 2) v.z = __ldg(p + 2);
    if (valid > 3) v.w = __ldg(p + 3);
    return v;
  }
}

template <bool VEC>
__device__ __forceinline__ void gather(const float* p, size_t stride, int n, int valid,
                                       float4& k, float4& s, float4& q) {
  k = load4<VEC>(p, valid);
  int left = n;
#pragma unroll 1
  for (; left >= 4; left -= 4) {
    const float4 a = load4<VEC>(p, valid);
    p += stride;
    const float4 b = load4<VEC>(p, valid);
    p += stride;
    const float4 c = load4<VEC>(p, valid);
    p += stride;
    const float4 d = load4<VEC>(p, valid);
    p += stride;
    add4(a, k, s, q);
    add4(b, k, s, q);
    add4(c, k, s, q);
    add4(d, k, s, q);
  }
#pragma unroll 1
  for (; left > 0; --left) {
    const float4 a = load4<VEC>(p, valid);
    p += stride;
    add4(a, k, s, q);
  }
}

// From shifted sums to mean and squared deviations.
__device__ __forceinline__ void settle(float k, float s, float q, float inv,
                                       float& mean, float& m2) {
  const float t = s * inv;
  mean = k + t;
  m2 = fmaf(-t, s, q);
  if (m2 < 0.0f) m2 = 0.0f;  // keeps NaN
}

// Merges with the lane 16 further, which has the same columns.
__device__ __forceinline__ void merge_half(float& mean, float& m2, float n_own, float share) {
  const float other_mean = __shfl_down_sync(0xffffffffu, mean, 16);
  const float other_m2 = __shfl_down_sync(0xffffffffu, m2, 16);
  const float d = other_mean - mean;
  const float t = d * share;           // share = n_other / (n_own + n_other)
  m2 = (m2 + other_m2) + (n_own * t) * d;
  mean = mean + t;
}

__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__global__ void __launch_bounds__(512, 3)
column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ alignas(16) float warp_mean[kWarps][kCols];
  __shared__ alignas(16) float warp_m2[kWarps][kCols];
  __shared__ float warp_count[kWarps];
  __shared__ float block_mean[kSplits][kCols];  // used in block 0 of the cluster
  __shared__ float block_m2[kSplits][kCols];

  cluster_arrive();  // waited for before the first access to another block's memory

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int split = blockIdx.x;
  const int group = tid % kGroups;
  const int first_col = blockIdx.y * kCols;
  const int col = first_col + group * 4;
  const int slot = split * kSlots + tid / kGroups;
  const int n = rows_of_slot(slot, M);
  const int valid = N - col;

  float4 mean = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 m2 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (n > 0 && valid > 0) {
    float4 k;
    float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 q = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float* p = x + (size_t)slot * (size_t)N + (size_t)col;
    const size_t stride = (size_t)kStride * (size_t)N;
    if ((N & 3) == 0 && (reinterpret_cast<uintptr_t>(x) & 15) == 0) {
      gather<true>(p, stride, n, valid, k, s, q);
    } else {
      gather<false>(p, stride, n, valid, k, s, q);
    }
    const float inv = 1.0f / (float)n;
    settle(k.x, s.x, q.x, inv, mean.x, m2.x);
    settle(k.y, s.y, q.y, inv, mean.y, m2.y);
    settle(k.z, s.z, q.z, inv, mean.z, m2.z);
    settle(k.w, s.w, q.w, inv, mean.w, m2.w);
  }
  __syncwarp();

  // The two halves of a warp.
  {
    const float n_own = (float)n;
    const float n_other = __shfl_down_sync(0xffffffffu, n_own, 16);
    const float n_both = n_own + n_other;
    const float share = n_both > 0.0f ? n_other / n_both : 0.0f;
    merge_half(mean.x, m2.x, n_own, share);
    merge_half(mean.y, m2.y, n_own, share);
    merge_half(mean.z, m2.z, n_own, share);
    merge_half(mean.w, m2.w, n_own, share);
    if (lane < 16) {
      *reinterpret_cast<float4*>(&warp_mean[warp][group * 4]) = mean;
      *reinterpret_cast<float4*>(&warp_m2[warp][group * 4]) = m2;
    }
    if (lane == 0) warp_count[warp] = n_both;
  }
  __syncthreads();
  cluster_wait();  // all blocks of the cluster run

  // The warps of a block; the result goes to block 0 of the cluster.
  if (tid < kCols) {
    const float base = warp_mean[0][tid];
    float total = 0.0f;
    float shift = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float c = warp_count[w];
      total += c;
      shift = fmaf(c, warp_mean[w][tid] - base, shift);
    }
    const float mid = base + (total > 0.0f ? shift / total : 0.0f);
    float squares = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float d = warp_mean[w][tid] - mid;
      squares += fmaf(warp_count[w] * d, d, warp_m2[w][tid]);
    }
    cg::cluster_group cluster = cg::this_cluster();
    float* far_mean = cluster.map_shared_rank(&block_mean[0][0], 0);
    float* far_m2 = cluster.map_shared_rank(&block_m2[0][0], 0);
    far_mean[split * kCols + tid] = mid;
    far_m2[split * kCols + tid] = squares;
  }
  __syncwarp();
  cluster_arrive();
  cluster_wait();

  // The blocks of the cluster.
  if (split == 0 && tid < kCols && first_col + tid < N) {
    const int whole = (M / kStride) * kSlots;
    const int rest = M % kStride;
    const float base = block_mean[0][tid];
    float shift = 0.0f;
#pragma unroll
    for (int b = 0; b < kSplits; ++b) {
      const float c = (float)(whole + min(max(rest - b * kSlots, 0), kSlots));
      shift = fmaf(c, block_mean[b][tid] - base, shift);
    }
    const float mid = base + shift / (float)M;
    float squares = 0.0f;
#pragma unroll
    for (int b = 0; b < kSplits; ++b) {
      const float c = (float)(whole + min(max(rest - b * kSlots, 0), kSlots));
      const float d = block_mean[b][tid] - mid;
      squares += fmaf(c * d, d, block_m2[b][tid]);
    }
    out[first_col + tid] = squares / (float)M;
  }
}
