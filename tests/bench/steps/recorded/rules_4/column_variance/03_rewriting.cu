// The variance of each column: a cluster of 8 blocks for 64 columns, x is read once, partial moments are merged.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

//@ launch column_variance<<<ceil_div(N, 64) * 8, 512, cluster(8, 1, 1)>>>(x, out, M, N)

template <bool VEC>
__device__ __forceinline__ float4 load_row(const float* __restrict__ p, int left) {
  if (VEC) {
    return __ldcs(reinterpret_cast<const float4*>(p));
  } else {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (left > 0) v.x = p[0];
    if (left > 1) v.y = p[1];
    if (left > 2) v.z = p[2];
    if (left > 3) v.w = p[3];
    return v;
  }
}

template <bool VEC>
__device__ __forceinline__ void gather(const float* __restrict__ x, int M, int N, int g, int c, float4& mean,
                                       float4& sq, float& n) {
  constexpr int STEP = 256;
  const int left = N - c;
  int row = g;
  const float* p = x + (long long)g * N + c;
  const long long stride = (long long)STEP * N;
  float t = 0.0f;
  for (; row + 7 * STEP < M; row += 8 * STEP) {
    float4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = load_row<VEC>(p + k * stride, left);
    p += 8 * stride;
    const float w = 1.0f / (t + 1.0f);
    const float f = 8.0f * t * w;
    t += 1.0f;
#define MERGE(e)                                                                                        \
    {                                                                                                   \
      const float m = (((v[0].e + v[1].e) + (v[2].e + v[3].e)) + ((v[4].e + v[5].e) + (v[6].e + v[7].e))) * 0.125f; \
      float s0 = 0.0f, s1 = 0.0f;                                                                       \
      _Pragma("unroll") for (int k = 0; k < 8; k += 2) {                                                \
        const float a = v[k].e - m;                                                                     \
        const float b = v[k + 1].e - m;                                                                 \
        s0 = fmaf(a, a, s0);                                                                            \
        s1 = fmaf(b, b, s1);                                                                            \
      }                                                                                                 \
      const float d = m - mean.e;                                                                       \
      mean.e = fmaf(d, w, mean.e);                                                                      \
      sq.e += fmaf(d * f, d, s0 + s1);                                                                  \
    }
    MERGE(x)
    MERGE(y)
    MERGE(z)
    MERGE(w)
#undef MERGE
  }
  n = t * 8.0f;
  for (; row < M; row += STEP) {
    const float4 v = load_row<VEC>(p, left);
    p += stride;
    n += 1.0f;
    const float w = 1.0f / n;
#define ONE(e)                              \
    {                                       \
      const float d = v.e - mean.e;         \
      mean.e = fmaf(d, w, mean.e);          \
      sq.e = fmaf(d, v.e - mean.e, sq.e);   \
    }
    ONE(x)
    ONE(y)
    ONE(z)
    ONE(w)
#undef ONE
  }
}

__device__ __forceinline__ void meet(float& mean, float& sq, float n, float no, float inv) {
  const float mo = __shfl_xor_sync(0xffffffffu, mean, 16);
  const float so = __shfl_xor_sync(0xffffffffu, sq, 16);
  const float m = (n * mean + no * mo) * inv;
  const float a = mean - m;
  const float b = mo - m;
  sq = sq + so + (n * a * a + no * b * b);
  mean = m;
}

__global__ void __launch_bounds__(512, 2) column_variance(const float* __restrict__ x, float* __restrict__ out, int M,
                                                          int N) {
  __shared__ float4 means[16][16];
  __shared__ float4 sqs[16][16];
  __shared__ float counts[16];
  __shared__ float block_mean[64];
  __shared__ float block_sq[64];
  __shared__ float block_count[1];
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = blockIdx.x & 7;
  const int strip = blockIdx.x >> 3;
  const int tid = threadIdx.x;
  const int lane = tid & 15;
  const int warp = tid >> 5;
  const int c = strip * 64 + lane * 4;
  const int g = rank * 32 + (tid >> 4);

  float4 mean = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 sq = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float n = 0.0f;
  if ((N & 63) == 0) {
    gather<true>(x, M, N, g, c, mean, sq, n);
  } else {
    gather<false>(x, M, N, g, c, mean, sq, n);
  }
  __syncwarp();
  {
    const float no = __shfl_xor_sync(0xffffffffu, n, 16);
    const float nt = n + no;
    const float inv = nt > 0.0f ? 1.0f / nt : 0.0f;
    meet(mean.x, sq.x, n, no, inv);
    meet(mean.y, sq.y, n, no, inv);
    meet(mean.z, sq.z, n, no, inv);
    meet(mean.w, sq.w, n, no, inv);
    if ((tid & 16) == 0) {
      means[warp][lane] = mean;
      sqs[warp][lane] = sq;
      if (lane == 0) counts[warp] = nt;
    }
  }
  __syncthreads();
  if (tid < 64) {
    const float* ms = reinterpret_cast<const float*>(&means[0][0]) + tid;
    const float* ss = reinterpret_cast<const float*>(&sqs[0][0]) + tid;
    float total = 0.0f, m = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      total += counts[k];
      m = fmaf(counts[k], ms[k * 64], m);
    }
    m = total > 0.0f ? m / total : 0.0f;
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const float d = ms[k * 64] - m;
      s += fmaf(counts[k] * d, d, ss[k * 64]);
    }
    block_mean[tid] = m;
    block_sq[tid] = s;
    if (tid == 0) block_count[0] = total;
  }
  cluster.sync();
  if (rank == 0 && tid < 64) {
    float nk[8], mk[8], sk[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      nk[k] = *cluster.map_shared_rank(block_count, k);
      mk[k] = cluster.map_shared_rank(block_mean, k)[tid];
      sk[k] = cluster.map_shared_rank(block_sq, k)[tid];
    }
    float m = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) m = fmaf(nk[k], mk[k], m);
    m /= (float)M;
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float d = mk[k] - m;
      s += fmaf(nk[k] * d, d, sk[k]);
    }
    const int j = strip * 64 + tid;
    if (j < N) out[j] = s / (float)M;
  }
  cluster.sync();
}
