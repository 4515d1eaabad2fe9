// Each row times the matrix of the expert that it was given to: the rows are grouped by expert,
// then each group is multiplied by the matrix of its expert in tiles of 128 x 128 results.

#include <cstdint>
#include <cstddef>

//@ scratch count: i32[E]
//@ scratch perm: i32[E, M]
//@ launch group_rows<<<E, 1024>>>(expert, count, perm, M)
//@ launch expert_product<<<(ceil_div(N, 128), ceil_div(M, 128) + E), 256>>>(x, expert, W, out, count, perm, M, N, K)

#define BM 128
#define BN 128
#define BK 16
#define LDA 132

// One block for each expert: the list of its rows (in any order) and their number.
__global__ void __launch_bounds__(1024) group_rows(const int* __restrict__ expert, int* __restrict__ count,
                                                   int* __restrict__ perm, int M) {
  __shared__ int total;
  const int e = blockIdx.x;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const unsigned below = (1u << lane) - 1u;
  int* list = perm + (size_t)e * M;
  if (tid == 0) total = 0;
  __syncthreads();
  for (int base = 0; base < M; base += 8 * 1024) {
    int v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      int i = base + j * 1024 + tid;
      v[j] = i < M ? expert[i] : -1;
    }
    unsigned mask[8];
    int sum = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      mask[j] = __ballot_sync(0xffffffffu, v[j] == e);
      sum += __popc(mask[j]);
    }
    int pos = 0;
    if (lane == 0 && sum > 0) pos = atomicAdd(&total, sum);
    pos = __shfl_sync(0xffffffffu, pos, 0);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (v[j] == e) list[pos + __popc(mask[j] & below)] = base + j * 1024 + tid;
      pos += __popc(mask[j]);
    }
  }
  __syncthreads();
  if (tid == 0) count[e] = total;
}

__device__ __forceinline__ void copy4(uint32_t s, const float* g) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(s), "l"(g) : "memory");
}

__device__ __forceinline__ void copy4_if(uint32_t s, const float* g, bool p) {
  int size = p ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(s), "l"(g), "r"(size) : "memory");
}

__device__ __forceinline__ void copy16(uint32_t s, const float* g) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(s), "l"(g) : "memory");
}

template <bool FAST>
__device__ __forceinline__ void tile_product(const float* __restrict__ x, const float* __restrict__ We,
                                             float* __restrict__ out, int N, int K, int n0, int valid,
                                             float* As, float* Bs, const int* rows) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wcol = warp & 1;
  const int wrow = warp >> 1;
  const int lr = (lane & 1) | ((lane >> 4) << 1);
  const int lc = (lane >> 1) & 7;
  const bool active = wrow * 32 < valid;

  // loading x: 8 values of k by 32 rows at a time
  const int ak = tid & 7;
  const int am = tid >> 3;
  const float* ap[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) ap[j] = x + (size_t)rows[am + 32 * j] * K + ak;
  const uint32_t sA = (uint32_t)__cvta_generic_to_shared(As) + (uint32_t)(ak * LDA + am) * 4u;

  // loading W: vectors of 4 where that is possible, single values otherwise
  const int bk = FAST ? (tid >> 5) : (tid >> 7);
  const int bn = FAST ? (tid & 31) * 4 : (tid & 127);
  const float* bp = We + (size_t)bk * N + n0 + bn;
  const size_t bstep = (size_t)BK * N;
  const size_t bhalf = (size_t)8 * N;
  const uint32_t sB = (uint32_t)__cvta_generic_to_shared(Bs) + (uint32_t)(bk * BN + bn) * 4u;

  auto issue = [&](int kt, int buf) {
    const uint32_t sa = sA + (uint32_t)buf * (BK * LDA * 4);
    const uint32_t sb = sB + (uint32_t)buf * (BK * BN * 4);
    if (FAST) {
      copy16(sb, bp);
      copy16(sb + 8 * BN * 4, bp + bhalf);
      bp += bstep;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        copy4(sa + 32 * j * 4, ap[j]);
        copy4(sa + (8 * LDA + 32 * j) * 4, ap[j] + 8);
        ap[j] += BK;
      }
    } else {
      const int k0 = kt * BK;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int k = k0 + bk + 2 * j;
        const bool p = k < K && n0 + bn < N;
        const float* g = p ? We + (size_t)k * N + n0 + bn : We;
        copy4_if(sb + 2 * j * BN * 4, g, p);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const bool p = k0 + ak + 8 * h < K;
          const float* g = p ? ap[j] + k0 + 8 * h : x;
          copy4_if(sa + (8 * h * LDA + 32 * j) * 4, g, p);
        }
      }
    }
  };

  float acc[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

  const int nk = (K + BK - 1) / BK;
  issue(0, 0);
  asm volatile("cp.async.commit_group;\n" ::: "memory");

  int buf = 0;
#pragma unroll 1
  for (int kt = 0; kt < nk; ++kt) {
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();

    const float* a = As + buf * (BK * LDA) + wrow * 32 + lr * 4;
    const float* b = Bs + buf * (BK * BN) + wcol * 64 + lc * 4;
    float4 fa[2][2], fb[2][2];
    fa[0][0] = *reinterpret_cast<const float4*>(a);
    fa[0][1] = *reinterpret_cast<const float4*>(a + 16);
    fb[0][0] = *reinterpret_cast<const float4*>(b);
    fb[0][1] = *reinterpret_cast<const float4*>(b + 32);

    if (kt + 1 < nk) issue(kt + 1, buf ^ 1);
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    if (active) {
#pragma unroll
      for (int kk = 0; kk < BK; ++kk) {
        const int c = kk & 1;
        if (kk + 1 < BK) {
          fa[c ^ 1][0] = *reinterpret_cast<const float4*>(a + (kk + 1) * LDA);
          fa[c ^ 1][1] = *reinterpret_cast<const float4*>(a + (kk + 1) * LDA + 16);
          fb[c ^ 1][0] = *reinterpret_cast<const float4*>(b + (kk + 1) * BN);
          fb[c ^ 1][1] = *reinterpret_cast<const float4*>(b + (kk + 1) * BN + 32);
        }
        const float av[8] = {fa[c][0].x, fa[c][0].y, fa[c][0].z, fa[c][0].w,
                             fa[c][1].x, fa[c][1].y, fa[c][1].z, fa[c][1].w};
        const float bv[8] = {fb[c][0].x, fb[c][0].y, fb[c][0].z, fb[c][0].w,
                             fb[c][1].x, fb[c][1].y, fb[c][1].z, fb[c][1].w};
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
          for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(av[i], bv[j], acc[i][j]);
      }
    }
    buf ^= 1;
  }

  if (active) {
    const int n = n0 + wcol * 64 + lc * 4;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int r = wrow * 32 + (i >> 2) * 16 + lr * 4 + (i & 3);
      if (r < valid) {
        float* o = out + (size_t)rows[r] * N;
        if (FAST) {
          *reinterpret_cast<float4*>(o + n) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
          *reinterpret_cast<float4*>(o + n + 32) = make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]);
        } else {
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            const int c = n + (j >> 2) * 32 + (j & 3);
            if (c < N) o[c] = acc[i][j];
          }
        }
      }
    }
  }
}

__global__ void __launch_bounds__(256, 2) expert_product(const float* __restrict__ x, const int* __restrict__ expert,
                                                         const float* __restrict__ W, float* __restrict__ out,
                                                         const int* __restrict__ count, const int* __restrict__ perm,
                                                         int M, int N, int K) {
  __shared__ __align__(16) float As[2 * BK * LDA];
  __shared__ __align__(16) float Bs[2 * BK * BN];
  __shared__ int rows[BM];
  __shared__ int found;

  const int tid = threadIdx.x;
  const int E = (int)gridDim.y - (M + BM - 1) / BM;

  // which tile: all full tiles first, then the partial ones, the largest first
  if (tid == 0) found = -1;
  __syncthreads();
  int e = -1, tile = 0;
  int t = blockIdx.y;
  for (int f = 0; f < E; ++f) {
    const int full = count[f] / BM;
    if (t < full) {
      e = f;
      tile = t;
      break;
    }
    t -= full;
  }
  if (e < 0) {
    for (int f = tid; f < E; f += 256) {
      const int r = count[f] % BM;
      if (r > 0) {
        int rank = 0;
        for (int g = 0; g < E; ++g) {
          const int q = count[g] % BM;
          rank += (q > r || (q == r && g < f)) ? 1 : 0;
        }
        if (rank == t) found = f;
      }
    }
    __syncthreads();
    e = found;
    if (e < 0) return;
    tile = count[e] / BM;
  }
  const int left = count[e] - tile * BM;
  const int valid = left < BM ? left : BM;

  // rows past the end repeat the first one; their results are not written
  if (tid < BM) rows[tid] = perm[(size_t)e * M + (size_t)tile * BM + (tid < valid ? tid : 0)];
  __syncthreads();

  const float* We = W + (size_t)e * K * N;
  const int n0 = blockIdx.x * BN;
  const bool fast = (K % BK == 0) && (N % BN == 0) &&
                    ((reinterpret_cast<uintptr_t>(W) | reinterpret_cast<uintptr_t>(out)) & 15) == 0;
  if (fast)
    tile_product<true>(x, We, out, N, K, n0, valid, As, Bs, rows);
  else
    tile_product<false>(x, We, out, N, K, n0, valid, As, Bs, rows);
}
