// Each row times the matrix of the expert that it was given to: rows grouped by expert, then tiles of 128 x 128 results.

#include <cstdint>

//@ scratch order: i32[M]
//@ scratch start: i32[E]
//@ scratch count: i32[E]
//@ scratch ctl: i32[272]
//@ scratch part: f32[4325376]
//@ launch group_rows<<<E, 1024>>>(expert, order, start, count, ctl, M)
//@ launch expert_product<<<264, 128>>>(x, W, out, order, start, count, ctl, part, M, N, K)

#define BLOCKS 264   // blocks of expert_product, two for each compute unit
#define BM 128
#define BN 128
#define BK 16
#define AS 20        // padded row of the x tile

// Block e lists the rows of expert e, in their order.
__global__ void __launch_bounds__(1024) group_rows(const int* __restrict__ expert, int* __restrict__ order,
                                                   int* __restrict__ start, int* __restrict__ count,
                                                   int* __restrict__ ctl, int M) {
  __shared__ int eqs[32];
  __shared__ int lts[32];
  const int e = blockIdx.x;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int per = ((M + 1023) / 1024) * 32;
  const int lo = warp * per;
  const int hi = min(lo + per, M);
  int eq = 0, lt = 0;
#pragma unroll 8
  for (int i = lo + lane; i < hi; i += 32) {
    int v = expert[i];
    eq += (v == e) ? 1 : 0;
    lt += (v < e) ? 1 : 0;
  }
  eq = __reduce_add_sync(0xffffffffu, eq);
  lt = __reduce_add_sync(0xffffffffu, lt);
  if (lane == 0) {
    eqs[warp] = eq;
    lts[warp] = lt;
  }
  __syncthreads();
  const int a = eqs[lane];
  const int b = lts[lane];
  const int before = __reduce_add_sync(0xffffffffu, lane < warp ? a : 0);
  const int total = __reduce_add_sync(0xffffffffu, a);
  const int first = __reduce_add_sync(0xffffffffu, b);
  int pos = first + before;
  const unsigned below = (1u << lane) - 1u;
#pragma unroll 4
  for (int i0 = lo; i0 < hi; i0 += 32) {
    int i = i0 + lane;
    bool p = (i < hi) && (expert[i] == e);
    unsigned m = __ballot_sync(0xffffffffu, p);
    if (p) order[pos + __popc(m & below)] = i;
    pos += __popc(m);
  }
  if (tid == 0) {
    start[e] = first;
    count[e] = total;
  }
  if (e == 0) {
    if (tid < BLOCKS) ctl[tid] = 0;
    if (tid == BLOCKS) ctl[BLOCKS] = gridDim.x;
  }
}

__device__ __forceinline__ void copy16(float* dst, const float* src, int bytes) {
  unsigned d = (unsigned)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(d), "l"(src), "r"(bytes) : "memory");
}

// One tile of NI * 16 rows and 128 columns, over the k tiles kt0 to kt1 - 1.
template <int NI, bool VEC>
__device__ __forceinline__ void tile_product(const float* __restrict__ x, const float* __restrict__ We,
                                             float* __restrict__ out, float* __restrict__ part, int* counter,
                                             float (*As)[BM * AS], float (*Bs)[BK * BN], const int* sRow, int* sLast,
                                             int rows, int n0, int kt0, int kt1, int S, int s, int N, int K) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wm = warp >> 1;
  const int wn = warp & 1;
  const int ty = (lane >> 1) & 7;
  const int tx = ((lane >> 4) << 1) | (lane & 1);

  float4 acc[NI][4];
#pragma unroll
  for (int i = 0; i < NI; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) acc[i][j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }

  // what this thread brings in
  const int ac = (tid & 3) * 4;
  const int ar = tid >> 2;
  const int bk = tid >> 5;
  const int bn = (tid & 31) * 4;
  int aoff[NI / 2];
  if (VEC) {
#pragma unroll
    for (int i = 0; i < NI / 2; ++i) aoff[i] = sRow[ar + 32 * i] * K + ac;
  }
  const bool bcol = n0 + bn < N;

  auto load = [&](int buf, int kt) {
    const int k0 = kt * BK;
    if (VEC) {
      const bool ka = k0 + ac < K;
#pragma unroll
      for (int i = 0; i < NI / 2; ++i) {
        const float* src = ka ? x + (aoff[i] + k0) : x;
        copy16(&As[buf][(ar + 32 * i) * AS + ac], src, ka ? 16 : 0);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = k0 + bk + 4 * i;
        const bool ok = bcol && k < K;
        const float* src = ok ? We + ((size_t)k * N + (n0 + bn)) : We;
        copy16(&Bs[buf][(bk + 4 * i) * BN + bn], src, ok ? 16 : 0);
      }
    } else {
#pragma unroll 1
      for (int idx = tid; idx < NI * 16 * BK; idx += 128) {
        const int r = idx >> 4;
        const int k = idx & 15;
        As[buf][r * AS + k] = (k0 + k < K) ? x[(size_t)sRow[r] * K + (k0 + k)] : 0.0f;
      }
      const int n = n0 + tid;
#pragma unroll 1
      for (int k = 0; k < BK; ++k) {
        Bs[buf][k * BN + tid] = (k0 + k < K && n < N) ? We[(size_t)(k0 + k) * N + n] : 0.0f;
      }
    }
  };

  int buf = 0;
  load(0, kt0);
#pragma unroll 1
  for (int kt = kt0; kt < kt1; ++kt) {
    if (VEC) asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    if (kt + 1 < kt1) load(buf ^ 1, kt + 1);
    const float* A = &As[buf][(wm * 8 + ty) * AS];
    const float* B = &Bs[buf][wn * 64 + tx * 4];
#pragma unroll 2
    for (int kk = 0; kk < BK; kk += 4) {
      float4 a[NI];
#pragma unroll
      for (int i = 0; i < NI; ++i) a[i] = *reinterpret_cast<const float4*>(A + i * 16 * AS + kk);
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        float4 b[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) b[j] = *reinterpret_cast<const float4*>(B + (kk + q) * BN + j * 16);
#pragma unroll
        for (int i = 0; i < NI; ++i) {
          const float v = q == 0 ? a[i].x : q == 1 ? a[i].y : q == 2 ? a[i].z : a[i].w;
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            acc[i][j].x = fmaf(v, b[j].x, acc[i][j].x);
            acc[i][j].y = fmaf(v, b[j].y, acc[i][j].y);
            acc[i][j].z = fmaf(v, b[j].z, acc[i][j].z);
            acc[i][j].w = fmaf(v, b[j].w, acc[i][j].w);
          }
        }
      }
    }
    buf ^= 1;
  }

  if (S > 1) {
    // part points to the partial results of the first split of this tile
    float4* mine = reinterpret_cast<float4*>(part + (size_t)s * (BM * BN)) + tid;
#pragma unroll
    for (int i = 0; i < NI; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) __stcg(mine + (i * 4 + j) * 128, acc[i][j]);
    }
    __threadfence();
    __syncthreads();
    if (tid == 0) *sLast = (atomicAdd(counter, 1) == S - 1) ? 1 : 0;
    __syncthreads();
    if (*sLast == 0) return;
    __threadfence();
    const float4* all = reinterpret_cast<const float4*>(part) + tid;
#pragma unroll
    for (int i = 0; i < NI; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[i][j] = __ldcg(all + (i * 4 + j) * 128);
    }
#pragma unroll 1
    for (int t = 1; t < S; ++t) {
      const float4* p = all + (size_t)t * (BM * BN / 4);
#pragma unroll
      for (int i = 0; i < NI; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          float4 v = __ldcg(p + (i * 4 + j) * 128);
          acc[i][j].x += v.x;
          acc[i][j].y += v.y;
          acc[i][j].z += v.z;
          acc[i][j].w += v.w;
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < NI; ++i) {
    const int r = i * 16 + wm * 8 + ty;
    if (r < rows) {
      float* o = out + (size_t)sRow[r] * N;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int c = n0 + wn * 64 + j * 16 + tx * 4;
        if (VEC) {
          if (c < N) *reinterpret_cast<float4*>(o + c) = acc[i][j];
        } else {
          if (c < N) o[c] = acc[i][j].x;
          if (c + 1 < N) o[c + 1] = acc[i][j].y;
          if (c + 2 < N) o[c + 2] = acc[i][j].z;
          if (c + 3 < N) o[c + 3] = acc[i][j].w;
        }
      }
    }
  }
}

__global__ void __launch_bounds__(128, 2) expert_product(const float* __restrict__ x, const float* __restrict__ W,
                                                         float* __restrict__ out, const int* __restrict__ order,
                                                         const int* __restrict__ start, const int* __restrict__ count,
                                                         int* ctl, float* part, int M, int N, int K) {
  __shared__ __align__(16) float As[2][BM * AS];
  __shared__ __align__(16) float Bs[2][BK * BN];
  __shared__ int sRow[BM];
  __shared__ int sLast;

  const int tid = threadIdx.x;
  const int E = ctl[BLOCKS];

  // tiles of rows: the full ones first, then the larger rests, then the small ones
  int nf = 0, nb = 0, nr = 0;
#pragma unroll 4
  for (int e = 0; e < E; ++e) {
    const int c = count[e];
    const int rem = c & (BM - 1);
    nf += c / BM;
    nb += rem > 64 ? 1 : 0;
    nr += rem > 0 ? 1 : 0;
  }
  const int NT = (N + BN - 1) / BN;
  const int T = (nf + nr) * NT;
  const int nk = (K + BK - 1) / BK;
  const int G = BLOCKS;
  const int F = T / G * G;
  const int R = T - F;
  int SR = 1;
  if (R > 0) SR = max(1, min(min(G / R, 8), nk));
  const int units = F + R * SR;
  const bool vec = (K & 3) == 0 && (N & 3) == 0 &&
                   ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(W) |
                     reinterpret_cast<uintptr_t>(out)) & 15) == 0;

#pragma unroll 1
  for (int u = blockIdx.x; u < units; u += gridDim.x) {
    int tile = u, S = 1, s = 0;
    if (u >= F) {
      S = SR;
      tile = F + (u - F) / S;
      s = (u - F) % S;
    }
    const int rt = tile / NT;
    const int n0 = (tile - rt * NT) * BN;
    int e = 0, first, rows;
    if (rt < nf) {
      int t = rt;
      for (e = 0; e < E; ++e) {
        const int f = count[e] / BM;
        if (t < f) break;
        t -= f;
      }
      first = start[e] + t * BM;
      rows = BM;
    } else {
      const bool big = rt < nf + nb;
      int t = rt - nf - (big ? 0 : nb);
      int rem = 0;
      for (e = 0; e < E; ++e) {
        rem = count[e] & (BM - 1);
        const bool hit = big ? rem > 64 : (rem > 0 && rem <= 64);
        if (hit) {
          if (t == 0) break;
          --t;
        }
      }
      first = start[e] + count[e] - rem;
      rows = rem;
    }

    __syncthreads();
    sRow[tid] = order[first + min(tid, rows - 1)];
    __syncthreads();

    const int kt0 = (int)((long long)s * nk / S);
    const int kt1 = (int)((long long)(s + 1) * nk / S);
    const float* We = W + (size_t)e * K * N;
    float* pt = part;
    int* counter = ctl;
    if (S > 1) {
      pt = part + (size_t)(tile - F) * S * (BM * BN);
      counter = ctl + (tile - F);
    }
    if (vec) {
      if (rows > 64) {
        tile_product<8, true>(x, We, out, pt, counter, As, Bs, sRow, &sLast, rows, n0, kt0, kt1, S, s, N, K);
      } else if (rows > 32) {
        tile_product<4, true>(x, We, out, pt, counter, As, Bs, sRow, &sLast, rows, n0, kt0, kt1, S, s, N, K);
      } else {
        tile_product<2, true>(x, We, out, pt, counter, As, Bs, sRow, &sLast, rows, n0, kt0, kt1, S, s, N, K);
      }
    } else {
      tile_product<8, false>(x, We, out, pt, counter, As, Bs, sRow, &sLast, rows, n0, kt0, kt1, S, s, N, K);
    }
  }
}
