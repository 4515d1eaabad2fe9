// The variance of each column in one pass: a cluster of eight blocks for 64 columns, partial results merged by Chan's rule.

#include <cooperative_groups.h>
#include <cstddef>

namespace cg = cooperative_groups;

#define THREADS 512
#define WARPS 16
#define COLUMNS 64
#define SPLITS 8
#define LANES_OF_ROWS 32
#define FULL 0xffffffffu

//@ launch column_variance<<<(8, ceil_div(N, 64), 1), 512, 0, cluster(8, 1, 1)>>>(x, out, M, N)

__device__ __forceinline__ void merge_chunk(float a, float b, float c, float d, float weight, float count_weight,
                                            float& mean, float& m2) {
  const float m = ((a + b) + (c + d)) * 0.25f;
  const float ea = a - m;
  const float eb = b - m;
  const float ec = c - m;
  const float ed = d - m;
  const float s = (ea * ea + eb * eb) + (ec * ec + ed * ed);
  const float delta = m - mean;
  mean += delta * weight;
  m2 += s + delta * delta * count_weight;
}

__device__ __forceinline__ void merge_one(float a, float inverse, float& mean, float& m2) {
  const float delta = a - mean;
  mean += delta * inverse;
  m2 += delta * (a - mean);
}

__global__ void __launch_bounds__(THREADS, 3) column_variance(const float* __restrict__ x, float* __restrict__ out,
                                                              int M, int N) {
  __shared__ float warp_mean[WARPS][COLUMNS];
  __shared__ float warp_m2[WARPS][COLUMNS];
  __shared__ float warp_count[WARPS];
  // filled by all blocks of the cluster, used in the first one
  __shared__ float all_mean[SPLITS][COLUMNS];
  __shared__ float all_m2[SPLITS][COLUMNS];
  __shared__ float all_count[SPLITS][COLUMNS];

  // every block of the cluster has started when the matching wait is over
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");

  cg::cluster_group cluster = cg::this_cluster();
  const int t = threadIdx.x;
  const int warp = t >> 5;
  const int rank = blockIdx.x;
  const int first = blockIdx.y * COLUMNS;
  const int local = (t & 15) * 4;
  const int col = first + local;
  const int step = SPLITS * LANES_OF_ROWS;
  int i = rank * LANES_OF_ROWS + (t >> 4);

  float mean0 = 0.0f, mean1 = 0.0f, mean2 = 0.0f, mean3 = 0.0f;
  float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
  float n = 0.0f;

  if ((N & 3) == 0 && col < N) {
    const float* p = x + (size_t)i * (size_t)N + col;
    const size_t stride = (size_t)step * (size_t)N;
    for (; i + 3 * step < M; i += 4 * step) {
      const float4 a = __ldcs(reinterpret_cast<const float4*>(p));
      const float4 b = __ldcs(reinterpret_cast<const float4*>(p + stride));
      const float4 c = __ldcs(reinterpret_cast<const float4*>(p + 2 * stride));
      const float4 d = __ldcs(reinterpret_cast<const float4*>(p + 3 * stride));
      p += 4 * stride;
      const float weight = __fdividef(4.0f, n + 4.0f);
      const float count_weight = n * weight;
      n += 4.0f;
      merge_chunk(a.x, b.x, c.x, d.x, weight, count_weight, mean0, s0);
      merge_chunk(a.y, b.y, c.y, d.y, weight, count_weight, mean1, s1);
      merge_chunk(a.z, b.z, c.z, d.z, weight, count_weight, mean2, s2);
      merge_chunk(a.w, b.w, c.w, d.w, weight, count_weight, mean3, s3);
    }
    for (; i < M; i += step) {
      const float4 a = *reinterpret_cast<const float4*>(p);
      p += stride;
      n += 1.0f;
      const float inverse = 1.0f / n;
      merge_one(a.x, inverse, mean0, s0);
      merge_one(a.y, inverse, mean1, s1);
      merge_one(a.z, inverse, mean2, s2);
      merge_one(a.w, inverse, mean3, s3);
    }
  } else {
    for (; i < M; i += step) {
      const float* p = x + (size_t)i * (size_t)N;
      n += 1.0f;
      const float inverse = 1.0f / n;
      if (col < N) merge_one(p[col], inverse, mean0, s0);
      if (col + 1 < N) merge_one(p[col + 1], inverse, mean1, s1);
      if (col + 2 < N) merge_one(p[col + 2], inverse, mean2, s2);
      if (col + 3 < N) merge_one(p[col + 3], inverse, mean3, s3);
    }
  }
  __syncwarp();

  // the two halves of a warp hold the same columns
  {
    const float other = __shfl_xor_sync(FULL, n, 16);
    const float total = n + other;
    const float weight = total > 0.0f ? other / total : 0.0f;
    const float count_weight = n * weight;
    float m, q, delta;
    m = __shfl_xor_sync(FULL, mean0, 16);
    q = __shfl_xor_sync(FULL, s0, 16);
    delta = m - mean0;
    mean0 += delta * weight;
    s0 += q + delta * delta * count_weight;
    m = __shfl_xor_sync(FULL, mean1, 16);
    q = __shfl_xor_sync(FULL, s1, 16);
    delta = m - mean1;
    mean1 += delta * weight;
    s1 += q + delta * delta * count_weight;
    m = __shfl_xor_sync(FULL, mean2, 16);
    q = __shfl_xor_sync(FULL, s2, 16);
    delta = m - mean2;
    mean2 += delta * weight;
    s2 += q + delta * delta * count_weight;
    m = __shfl_xor_sync(FULL, mean3, 16);
    q = __shfl_xor_sync(FULL, s3, 16);
    delta = m - mean3;
    mean3 += delta * weight;
    s3 += q + delta * delta * count_weight;
    n = total;
  }
  if ((t & 31) < 16) {
    warp_mean[warp][local] = mean0;
    warp_mean[warp][local + 1] = mean1;
    warp_mean[warp][local + 2] = mean2;
    warp_mean[warp][local + 3] = mean3;
    warp_m2[warp][local] = s0;
    warp_m2[warp][local + 1] = s1;
    warp_m2[warp][local + 2] = s2;
    warp_m2[warp][local + 3] = s3;
  }
  if ((t & 31) == 0) {
    warp_count[warp] = n;
  }
  __syncthreads();

  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");

  if (t < COLUMNS) {
    float count = 0.0f;
    float sum = 0.0f;
    float squares = 0.0f;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      count += warp_count[w];
      sum += warp_mean[w][t] * warp_count[w];
      squares += warp_m2[w][t];
    }
    const float mean = count > 0.0f ? sum / count : 0.0f;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      const float delta = warp_mean[w][t] - mean;
      squares += delta * delta * warp_count[w];
    }
    float* to_mean = cluster.map_shared_rank(&all_mean[0][0], 0);
    float* to_m2 = cluster.map_shared_rank(&all_m2[0][0], 0);
    float* to_count = cluster.map_shared_rank(&all_count[0][0], 0);
    to_mean[rank * COLUMNS + t] = mean;
    to_m2[rank * COLUMNS + t] = squares;
    to_count[rank * COLUMNS + t] = count;
  }
  __syncthreads();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");

  if (rank == 0 && t < COLUMNS && first + t < N) {
    float sum = 0.0f;
    float squares = 0.0f;
    #pragma unroll
    for (int k = 0; k < SPLITS; ++k) {
      sum += all_mean[k][t] * all_count[k][t];
      squares += all_m2[k][t];
    }
    const float mean = sum / M;
    #pragma unroll
    for (int k = 0; k < SPLITS; ++k) {
      const float delta = all_mean[k][t] - mean;
      squares += delta * delta * all_count[k][t];
    }
    out[first + t] = squares / M;
  }
}
