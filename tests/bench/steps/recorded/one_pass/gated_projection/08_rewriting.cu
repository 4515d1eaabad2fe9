// Two products of one input, and one result gated by the other: one launch, a tile of both products in each block.

#include <cstdint>

#define BM 128
#define BN 64
#define BK 16
#define LDA 132
#define LDB 128

__device__ __forceinline__ void copy16(float* to, const float* from, bool take) {
  const uint32_t s = (uint32_t)__cvta_generic_to_shared(to);
  const int bytes = take ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(s), "l"(from), "r"(bytes) : "memory");
}

template <bool VEC>
__device__ __forceinline__ void load_a(const float* __restrict__ x, int m0, int k0, int M, int K, int t, float4 (&ra)[2]) {
  const int k = k0 + (t & 3) * 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = min(m0 + (t >> 2) + h * 64, M - 1);
    const float* p = x + (size_t)row * K + k;
    ra[h] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (VEC) {
      if (k < K) ra[h] = __ldg(reinterpret_cast<const float4*>(p));
    } else {
      if (k < K) ra[h].x = p[0];
      if (k + 1 < K) ra[h].y = p[1];
      if (k + 2 < K) ra[h].z = p[2];
      if (k + 3 < K) ra[h].w = p[3];
    }
  }
}

__device__ __forceinline__ void store_a(float* As, int t, const float4 (&ra)[2]) {
  float* p = As + (t & 3) * 4 * LDA + (t >> 2);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    p[0 * LDA + h * 64] = ra[h].x;
    p[1 * LDA + h * 64] = ra[h].y;
    p[2 * LDA + h * 64] = ra[h].z;
    p[3 * LDA + h * 64] = ra[h].w;
  }
}

template <bool VEC>
__device__ __forceinline__ void load_b(const float* __restrict__ W, const float* __restrict__ V, float* Bs, int n0, int k0, int N, int K, int t) {
  const int k = k0 + (t >> 4);
  const int n = n0 + (t & 15) * 4;
  float* to = Bs + (t >> 4) * LDB + (t & 15) * 4;
  if (VEC) {
    const bool take = k < K && n < N;
    const size_t at = take ? (size_t)k * N + n : 0;
    copy16(to, W + at, take);
    copy16(to + BN, V + at, take);
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool take = k < K && n + e < N;
      const size_t at = (size_t)k * N + n + e;
      to[e] = take ? W[at] : 0.0f;
      to[BN + e] = take ? V[at] : 0.0f;
    }
  }
}

__device__ __forceinline__ float gated(float g, float v) {
  return g / (1.0f + expf(-g)) * v;
}

template <bool VEC>
__device__ __forceinline__ void tile(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V, float* __restrict__ out,
                                     int M, int N, int K, float* As, float* Bs) {
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int m0 = blockIdx.y * BM;
  const int n0 = blockIdx.x * BN;
  const int lm = ((lane >> 4) << 1) | (lane & 1);
  const int ln = (lane >> 1) & 7;
  const int mt = (warp >> 1) * 32 + lm * 4;
  const int nt = (warp & 1) * 32 + ln * 4;

  float acc[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;
  }

  float4 ra[2];
  load_b<VEC>(W, V, Bs, n0, 0, N, K, t);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  load_a<VEC>(x, m0, 0, M, K, t, ra);
  store_a(As, t, ra);
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  __syncthreads();

  int buf = 0;
  for (int k0 = 0; k0 < K; k0 += BK) {
    const bool more = k0 + BK < K;
    if (more) {
      load_b<VEC>(W, V, Bs + (buf ^ 1) * BK * LDB, n0, k0 + BK, N, K, t);
      asm volatile("cp.async.commit_group;\n" ::: "memory");
      load_a<VEC>(x, m0, k0 + BK, M, K, t, ra);
    }
    const float* a = As + buf * BK * LDA + mt;
    const float* b = Bs + buf * BK * LDB + nt;
    float fa[2][8], fb[2][8];
    *reinterpret_cast<float4*>(&fa[0][0]) = *reinterpret_cast<const float4*>(a);
    *reinterpret_cast<float4*>(&fa[0][4]) = *reinterpret_cast<const float4*>(a + 16);
    *reinterpret_cast<float4*>(&fb[0][0]) = *reinterpret_cast<const float4*>(b);
    *reinterpret_cast<float4*>(&fb[0][4]) = *reinterpret_cast<const float4*>(b + BN);
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const int now = k & 1;
      if (k + 1 < BK) {
        const int then = now ^ 1;
        *reinterpret_cast<float4*>(&fa[then][0]) = *reinterpret_cast<const float4*>(a + (k + 1) * LDA);
        *reinterpret_cast<float4*>(&fa[then][4]) = *reinterpret_cast<const float4*>(a + (k + 1) * LDA + 16);
        *reinterpret_cast<float4*>(&fb[then][0]) = *reinterpret_cast<const float4*>(b + (k + 1) * LDB);
        *reinterpret_cast<float4*>(&fb[then][4]) = *reinterpret_cast<const float4*>(b + (k + 1) * LDB + BN);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(fa[now][i], fb[now][j], acc[i][j]);
      }
    }
    if (more) {
      store_a(As + (buf ^ 1) * BK * LDA, t, ra);
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");
      __syncthreads();
      buf ^= 1;
    }
  }

  const int n = n0 + nt;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int m = m0 + mt + (i & 3) + (i >> 2) * 16;
    if (m < M) {
      float* p = out + (size_t)m * N + n;
      const float4 r = make_float4(gated(acc[i][0], acc[i][4]), gated(acc[i][1], acc[i][5]),
                                   gated(acc[i][2], acc[i][6]), gated(acc[i][3], acc[i][7]));
      if (VEC) {
        if (n < N) *reinterpret_cast<float4*>(p) = r;
      } else {
        if (n < N) p[0] = r.x;
        if (n + 1 < N) p[1] = r.y;
        if (n + 2 < N) p[2] = r.z;
        if (n + 3 < N) p[3] = r.w;
      }
    }
  }
}

//@ launch gated_projection<<<(ceil_div(N, 64), ceil_div(M, 128)), 256>>>(x, W, V, out, M, N, K)
__global__ void __launch_bounds__(256, 2) gated_projection(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V,
                                                           float* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(16) float As[2 * BK * LDA];
  __shared__ __align__(16) float Bs[2 * BK * LDB];
  if (((N | K) & 3) == 0) {
    tile<true>(x, W, V, out, M, N, K, As, Bs);
  } else {
    tile<false>(x, W, V, out, M, N, K, As, Bs);
  }
}
