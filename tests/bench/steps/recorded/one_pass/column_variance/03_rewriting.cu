#include <cooperative_groups.h>

// The variance of each column in one pass: a cluster of blocks shares the rows of 64 columns.

namespace cg = cooperative_groups;

constexpr int CV_CLUSTER = 8;
constexpr int CV_COLS = 64;
constexpr int CV_LANES = CV_COLS / 4;
constexpr int CV_GROUPS = 32;
constexpr int CV_THREADS = CV_LANES * CV_GROUPS;
constexpr int CV_PITCH = CV_COLS + 4;
constexpr int CV_BATCH = 8;

__device__ __forceinline__ void cv_combine(float& n, float& mean, float& m2, float nb, float mb, float m2b) {
  float nt = n + nb;
  if (nt > 0.0f) {
    float f = nb / nt;
    float d = mb - mean;
    mean += d * f;
    m2 += m2b + d * d * (n * f);
    n = nt;
  }
}

template <bool VEC>
__device__ __forceinline__ float4 cv_load(const float* __restrict__ p, int left) {
  if (VEC) {
    return __ldcs(reinterpret_cast<const float4*>(p));
  }
  float4 v;
  v.x = p[0];
  v.y = left > 1 ? p[1] : 0.0f;
  v.z = left > 2 ? p[2] : 0.0f;
  v.w = left > 3 ? p[3] : 0.0f;
  return v;
}

template <bool VEC>
__device__ __forceinline__ void cv_rows(const float* __restrict__ x, int M, int N, int j, int row,
                                        float& n, float (&mean)[4], float (&m2)[4]) {
  constexpr int STEP = CV_CLUSTER * CV_GROUPS;
  const int left = N - j;
  const float* p = x + (size_t)row * (size_t)N + j;
  const size_t step = (size_t)STEP * (size_t)N;
  int i = row;
  for (; i + (CV_BATCH - 1) * STEP < M; i += CV_BATCH * STEP) {
    float v[CV_BATCH][4];
#pragma unroll
    for (int k = 0; k < CV_BATCH; ++k) {
      float4 a = cv_load<VEC>(p, left);
      p += step;
      v[k][0] = a.x;
      v[k][1] = a.y;
      v[k][2] = a.z;
      v[k][3] = a.w;
    }
    const float nt = n + (float)CV_BATCH;
    const float f = (float)CV_BATCH / nt;
    const float nf = n * f;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      float s = 0.0f;
#pragma unroll
      for (int k = 0; k < CV_BATCH; ++k) {
        s += v[k][c];
      }
      const float mb = s * (1.0f / CV_BATCH);
      float q = 0.0f;
#pragma unroll
      for (int k = 0; k < CV_BATCH; ++k) {
        float e = v[k][c] - mb;
        q += e * e;
      }
      const float d = mb - mean[c];
      mean[c] += d * f;
      m2[c] += q + d * d * nf;
    }
    n = nt;
  }
  for (; i < M; i += STEP) {
    float4 a = cv_load<VEC>(p, left);
    p += step;
    float v[4] = {a.x, a.y, a.z, a.w};
    const float nt = n + 1.0f;
    const float f = 1.0f / nt;
    const float nf = n * f;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float d = v[c] - mean[c];
      mean[c] += d * f;
      m2[c] += d * d * nf;
    }
    n = nt;
  }
}

//@ launch column_variance<<<(8, ceil_div(N, 64)), 512>>>(x, out, M, N)
__global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(512, 2)
column_variance(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
  __shared__ __align__(16) float s_mean[CV_GROUPS * CV_PITCH];
  __shared__ __align__(16) float s_m2[CV_GROUPS * CV_PITCH];
  __shared__ float s_n[CV_GROUPS];
  __shared__ float b_mean[CV_COLS];
  __shared__ float b_m2[CV_COLS];
  __shared__ float b_n[CV_COLS];

  cg::cluster_group cluster = cg::this_cluster();
  const int rank = (int)cluster.block_rank();
  const int t = threadIdx.x;
  const int tx = t % CV_LANES;
  const int g = t / CV_LANES;
  const int j0 = blockIdx.y * CV_COLS;
  const int j = j0 + tx * 4;
  const int row = rank * CV_GROUPS + g;

  float n = 0.0f;
  float mean[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float m2[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if (j < N) {
    if ((N & 3) == 0) {
      cv_rows<true>(x, M, N, j, row, n, mean, m2);
    } else {
      cv_rows<false>(x, M, N, j, row, n, mean, m2);
    }
  }

  *reinterpret_cast<float4*>(&s_mean[g * CV_PITCH + tx * 4]) = make_float4(mean[0], mean[1], mean[2], mean[3]);
  *reinterpret_cast<float4*>(&s_m2[g * CV_PITCH + tx * 4]) = make_float4(m2[0], m2[1], m2[2], m2[3]);
  if (tx == 0) {
    s_n[g] = n;  // the first column of a strip is always inside, so this is the count of the row group
  }
  __syncthreads();

  {
    const int c = t >> 3;
    const int sub = t & 7;
    float an = s_n[sub];
    float am = s_mean[sub * CV_PITCH + c];
    float aq = s_m2[sub * CV_PITCH + c];
#pragma unroll
    for (int k = 1; k < CV_GROUPS / 8; ++k) {
      const int h = sub + 8 * k;
      cv_combine(an, am, aq, s_n[h], s_mean[h * CV_PITCH + c], s_m2[h * CV_PITCH + c]);
    }
#pragma unroll
    for (int d = 4; d > 0; d >>= 1) {
      float on = __shfl_down_sync(0xffffffffu, an, d, 8);
      float om = __shfl_down_sync(0xffffffffu, am, d, 8);
      float oq = __shfl_down_sync(0xffffffffu, aq, d, 8);
      cv_combine(an, am, aq, on, om, oq);
    }
    if (sub == 0) {
      b_n[c] = an;
      b_mean[c] = am;
      b_m2[c] = aq;
    }
  }
  cluster.sync();

  if (t < CV_COLS) {
    const int c = rank * (CV_COLS / CV_CLUSTER) + (t >> 3);
    const int src = t & 7;
    float an = *cluster.map_shared_rank(&b_n[c], src);
    float am = *cluster.map_shared_rank(&b_mean[c], src);
    float aq = *cluster.map_shared_rank(&b_m2[c], src);
#pragma unroll
    for (int d = 4; d > 0; d >>= 1) {
      float on = __shfl_down_sync(0xffffffffu, an, d, 8);
      float om = __shfl_down_sync(0xffffffffu, am, d, 8);
      float oq = __shfl_down_sync(0xffffffffu, aq, d, 8);
      cv_combine(an, am, aq, on, om, oq);
    }
    if (src == 0 && j0 + c < N) {
      out[j0 + c] = aq / M;
    }
  }
  cluster.sync();
}
