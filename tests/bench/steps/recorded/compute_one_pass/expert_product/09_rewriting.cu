// Each row times the matrix of the expert that it was given to.
// Launch 1: for every expert, the list of its rows. Launch 2: a tiled product over these lists.

//@ scratch rows: i32[E, M]
//@ scratch meta: i32[E + 1]
//@ launch route_rows<<<E, 1024>>>(expert, rows, meta, M)
//@ launch expert_product<<<(ceil_div(N, 256), ceil_div((M + 31 * E) / 32, 8)), 256, 204800>>>(x, W, rows, meta, out, M, N, K)

#include <cstdint>

__global__ void __launch_bounds__(1024) route_rows(const int* __restrict__ expert, int* __restrict__ rows,
                                                   int* __restrict__ meta, int M) {
  __shared__ int cnt;
  const int e = blockIdx.x;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  if (tid == 0) cnt = 0;
  __syncthreads();
  int* list = rows + (size_t)e * M;
  for (int base = 0; base < M; base += 8192) {
    int v[8];
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      int m = base + q * 1024 + tid;
      v[q] = (m < M) ? expert[m] : -1;
    }
    unsigned bal[8];
    int tot = 0;
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      bal[q] = __ballot_sync(0xffffffffu, v[q] == e);
      tot += __popc(bal[q]);
    }
    int pos = 0;
    if (lane == 0 && tot > 0) pos = atomicAdd(&cnt, tot);
    pos = __shfl_sync(0xffffffffu, pos, 0);
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      if (v[q] == e) list[pos + __popc(bal[q] & ((1u << lane) - 1u))] = base + q * 1024 + tid;
      pos += __popc(bal[q]);
    }
  }
  __syncthreads();
  if (tid == 0) {
    meta[1 + e] = cnt;
    if (e == 0) meta[0] = (int)gridDim.x;
  }
}

constexpr int BK = 32;                       // depth of one slab
constexpr int BN = 256;                      // columns of a block
constexpr int LDA = BK + 4;                  // padded row of the tile of x
constexpr int A_FLOATS = 128 * LDA;          // 4608
constexpr int STAGE_FLOATS = A_FLOATS + BK * BN;  // 12800
constexpr int STAGES = 4;

__device__ __forceinline__ void cp16(float* dst, const float* src) {
  unsigned d = (unsigned)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(d), "l"(src));
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N_>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N_) : "memory");
}

// Brings slab s (32 values of k) of 32*U rows of x and of 256 columns of W into its stage.
template <int U>
__device__ __forceinline__ void load_slab(float* smem, const float* __restrict__ x, const float* __restrict__ We,
                                          const int* aoff, const int* s_row, int s, int S, int n0, int N, int K,
                                          bool vec) {
  if (s < S) {
    const int tid = threadIdx.x;
    float* As = smem + (s & (STAGES - 1)) * STAGE_FLOATS;
    float* Bs = As + A_FLOATS;
    const int k0 = s * BK;
    if (vec) {
      const int lr = tid >> 3;
      const int lc = (tid & 7) * 4;
#pragma unroll
      for (int p = 0; p < U; ++p) cp16(As + (lr + 32 * p) * LDA + lc, x + (aoff[p] + k0));
      const int bk = tid >> 6;
      const int bc = (tid & 63) * 4;
      const int col = (n0 + bc < N) ? n0 + bc : 0;
      const float* wp = We + ((size_t)(k0 + bk) * N + col);
      const size_t step = (size_t)4 * N;
#pragma unroll
      for (int p = 0; p < 8; ++p) {
        cp16(Bs + (bk + 4 * p) * BN + bc, wp);
        wp += step;
      }
    } else {
#pragma unroll 1
      for (int idx = tid; idx < 32 * U * BK; idx += 256) {
        int r = idx >> 5;
        int k = idx & 31;
        float v = 0.0f;
        if (k0 + k < K) v = x[(size_t)s_row[r] * K + k0 + k];
        As[r * LDA + k] = v;
      }
#pragma unroll 1
      for (int k = 0; k < BK; ++k) {
        float v = 0.0f;
        if (k0 + k < K && n0 + tid < N) v = We[(size_t)(k0 + k) * N + n0 + tid];
        Bs[k * BN + tid] = v;
      }
    }
  }
  cp_commit();
}

// 32*U rows (the first nrows of them exist) times 256 columns, of one expert.
template <int U>
__device__ __forceinline__ void product_tile(float* smem, int* s_row, const float* __restrict__ x,
                                             const float* __restrict__ We, const int* __restrict__ list, int nrows,
                                             float* __restrict__ out, int n0, int N, int K, bool vec) {
  constexpr int R = 4 * U;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int laneRow = (lane & 1) | (((lane >> 3) & 3) << 1);
  const int laneCol = (lane >> 1) & 3;
  const int S = (K + BK - 1) / BK;
  const int T = S * (BK / 4);

  __syncthreads();  // the tile before is done with shared memory
  if (tid < 32 * U) s_row[tid] = list[min(tid, nrows - 1)];
  int aoff[U];
#pragma unroll
  for (int p = 0; p < U; ++p) {
    int r = (tid >> 3) + 32 * p;
    aoff[p] = list[min(r, nrows - 1)] * K + (tid & 7) * 4;
  }
  if (!vec) __syncthreads();  // the slow loads read s_row

#pragma unroll 1
  for (int s = 0; s < STAGES - 1; ++s) load_slab<U>(smem, x, We, aoff, s_row, s, S, n0, N, K, vec);
  cp_wait<STAGES - 2>();
  __syncthreads();

  float acc[R][8];
#pragma unroll
  for (int i = 0; i < R; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

  const int aBase = laneRow * LDA;
  const int bBase = A_FLOATS + warp * 32 + laneCol * 4;

  float b[4][8];
  float4 a[2];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    float4 v0 = *reinterpret_cast<const float4*>(smem + bBase + k * BN);
    float4 v1 = *reinterpret_cast<const float4*>(smem + bBase + k * BN + 16);
    b[k][0] = v0.x; b[k][1] = v0.y; b[k][2] = v0.z; b[k][3] = v0.w;
    b[k][4] = v1.x; b[k][5] = v1.y; b[k][6] = v1.z; b[k][7] = v1.w;
  }
  int ac = aBase;
  a[0] = *reinterpret_cast<const float4*>(smem + ac);
  a[1] = *reinterpret_cast<const float4*>(smem + ac + 8 * LDA);

#pragma unroll 1
  for (int t = 0; t < T; ++t) {
    const int nt = t + 1;
    if ((nt & 7) == 0) {
      // last block of this slab: the next slab must be there before it is prefetched into registers
      cp_wait<STAGES - 3>();
      __syncthreads();
      load_slab<U>(smem, x, We, aoff, s_row, (nt >> 3) + STAGES - 2, S, n0, N, K, vec);
    }
    const int stage = ((nt >> 3) & (STAGES - 1)) * STAGE_FLOATS;
    const int an = stage + aBase + (nt & 7) * 4;
    const int bn = stage + bBase + (nt & 7) * (4 * BN);

#pragma unroll
    for (int i = 0; i < R; ++i) {
      const float4 cur = a[i & 1];
      if (i + 2 < R)
        a[i & 1] = *reinterpret_cast<const float4*>(smem + ac + (i + 2) * 8 * LDA);
      else
        a[i & 1] = *reinterpret_cast<const float4*>(smem + an + (i + 2 - R) * 8 * LDA);
      const float av[4] = {cur.x, cur.y, cur.z, cur.w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(av[k], b[k][j], acc[i][j]);
        if (i == R - 1) {
          float4 v0 = *reinterpret_cast<const float4*>(smem + bn + k * BN);
          float4 v1 = *reinterpret_cast<const float4*>(smem + bn + k * BN + 16);
          b[k][0] = v0.x; b[k][1] = v0.y; b[k][2] = v0.z; b[k][3] = v0.w;
          b[k][4] = v1.x; b[k][5] = v1.y; b[k][6] = v1.z; b[k][7] = v1.w;
        }
      }
    }
    ac = an;
  }

  const int c0 = n0 + warp * 32 + laneCol * 4;
#pragma unroll
  for (int i = 0; i < R; ++i) {
    const int r = laneRow + 8 * i;
    if (r < nrows) {
      float* o = out + (size_t)s_row[r] * N;
      if (vec) {
        if (c0 < N)
          *reinterpret_cast<float4*>(o + c0) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
        if (c0 + 16 < N)
          *reinterpret_cast<float4*>(o + c0 + 16) = make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]);
      } else {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int c = c0 + (j & 3) + (j >> 2) * 16;
          if (c < N) o[c] = acc[i][j];
        }
      }
    }
  }
}

__global__ void __launch_bounds__(256, 1)
expert_product(const float* __restrict__ x, const float* __restrict__ W, const int* __restrict__ rows,
               const int* __restrict__ meta, float* __restrict__ out, int M, int N, int K) {
  extern __shared__ __align__(16) float smem[];
  __shared__ int s_row[128];

  const int n0 = blockIdx.x * BN;
  const int E = meta[0];
  int total = 0;
#pragma unroll 8
  for (int i = 0; i < E; ++i) total += (meta[1 + i] + 31) >> 5;

  // this block's share of the units of 32 rows
  int u = (int)((long long)total * blockIdx.y / gridDim.y);
  const int u1 = (int)((long long)total * (blockIdx.y + 1) / gridDim.y);

  const bool vec = (K % BK == 0) && (N % 4 == 0) &&
                   ((((uintptr_t)x | (uintptr_t)W | (uintptr_t)out) & 15) == 0);

  int e = 0;
  int ub = 0;  // first unit of expert e
  while (u < u1) {
    int c, nu;
    for (;;) {
      c = meta[1 + e];
      nu = (c + 31) >> 5;
      if (u < ub + nu) break;
      ub += nu;
      ++e;
    }
    const int left = min(u1, ub + nu) - u;
    const int take = (left <= 4) ? left : ((left <= 8) ? (left + 1) / 2 : 4);
    const int r0 = (u - ub) * 32;
    const int* list = rows + (size_t)e * M + r0;
    const float* We = W + (size_t)e * K * N;
    const int nrows = c - r0;
    switch (take) {
      case 4:
        product_tile<4>(smem, s_row, x, We, list, nrows, out, n0, N, K, vec);
        break;
      case 3:
        product_tile<3>(smem, s_row, x, We, list, nrows, out, n0, N, K, vec);
        break;
      case 2:
        product_tile<2>(smem, s_row, x, We, list, nrows, out, n0, N, K, vec);
        break;
      default:
        product_tile<1>(smem, s_row, x, We, list, nrows, out, n0, N, K, vec);
        break;
    }
    u += take;
  }
}
