// Each row times the matrix of the expert that it was given to: rows are grouped by expert, then multiplied tile by tile.

#include <cstdint>
#include <cstddef>
#include <climits>

//@ scratch perm: i32[M]
//@ scratch count: i32[E]
//@ launch route<<<E, 1024>>>(expert, perm, count, M)
//@ launch expert_product<<<(ceil_div(N, 128), ceil_div(M, 128) + E), 128>>>(x, W, out, perm, count, M, N, K)

constexpr int BM = 128;   // rows of a tile
constexpr int BN = 128;   // columns of a tile
constexpr int BK = 16;    // depth of a tile
constexpr int AST = 20;   // padded row of the x tile in shared memory

// Block e lists the rows of expert e in perm, behind those of all smaller experts, and counts them.
__global__ void __launch_bounds__(1024) route(const int* __restrict__ expert, int* __restrict__ perm,
                                              int* __restrict__ count, int M) {
  __shared__ int s_less[32];
  __shared__ int s_eq[32];
  const int e = blockIdx.x;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int chunk = ((M + 1023) / 1024) * 32;
  const int begin = warp * chunk;
  const int end = min(begin + chunk, M);

  int less = 0, eq = 0;
  for (int b = begin; b < end; b += 256) {
    int v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      const int m = b + u * 32 + lane;
      v[u] = m < end ? expert[m] : INT_MAX;
    }
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      less += v[u] < e ? 1 : 0;
      eq += v[u] == e ? 1 : 0;
    }
  }
  less = __reduce_add_sync(0xffffffffu, less);
  eq = __reduce_add_sync(0xffffffffu, eq);
  if (lane == 0) {
    s_less[warp] = less;
    s_eq[warp] = eq;
  }
  __syncthreads();
  const int all_eq = s_eq[lane];
  const int part = s_less[lane] + (lane < warp ? all_eq : 0);
  int pos = __reduce_add_sync(0xffffffffu, part);
  const int total = __reduce_add_sync(0xffffffffu, all_eq);
  if (threadIdx.x == 0) count[e] = total;

  const unsigned below = (1u << lane) - 1u;
  for (int b = begin; b < end; b += 256) {
    int v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      const int m = b + u * 32 + lane;
      v[u] = m < end ? expert[m] : INT_MAX;
    }
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      const bool mine = v[u] == e;
      const unsigned mask = __ballot_sync(0xffffffffu, mine);
      if (mine) perm[pos + __popc(mask & below)] = b + u * 32 + lane;
      pos += __popc(mask);
    }
  }
}

__device__ __forceinline__ void cp16(uint32_t dst, const float* src, bool ok) {
  const int n = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(n) : "memory");
}

__device__ __forceinline__ void cp4(uint32_t dst, const float* src, bool ok) {
  const int n = ok ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(n) : "memory");
}

__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int LEFT>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT) : "memory");
}

__device__ __forceinline__ void fma_row(float (&c)[16], float a, const float4 (&b)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    c[4 * j + 0] = fmaf(a, b[j].x, c[4 * j + 0]);
    c[4 * j + 1] = fmaf(a, b[j].y, c[4 * j + 1]);
    c[4 * j + 2] = fmaf(a, b[j].z, c[4 * j + 2]);
    c[4 * j + 3] = fmaf(a, b[j].w, c[4 * j + 3]);
  }
}

__device__ __forceinline__ void load_b(float4 (&b)[4], const float* p) {
#pragma unroll
  for (int j = 0; j < 4; ++j) b[j] = *reinterpret_cast<const float4*>(p + j * 16);
}

// One tile of 16 * RI rows and 128 columns; each thread has RI x 16 results.
template <int RI, bool VEC>
__device__ __forceinline__ void run_tile(const float* __restrict__ x, const float* __restrict__ w,
                                         float* __restrict__ out, const int* __restrict__ perm,
                                         float* As, float* Bs, int first, int rows, int n0, int N, int K) {
  constexpr int AL = RI / 2;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int ly = (lane >> 1) & 7;
  const int lx = (lane & 1) | ((lane >> 3) & 2);
  const int wm = warp >> 1;
  const int wn = warp & 1;

  // what this thread copies
  const int ac = (tid & 3) * 4;
  const float* ap[AL];
#pragma unroll
  for (int i = 0; i < AL; ++i) {
    const int r = min((tid >> 2) + 32 * i, rows - 1);
    ap[i] = x + (size_t)perm[first + r] * K + ac;
  }
  const int bk = tid >> 5;
  const int bc = (tid & 31) * 4;
  const int bcol = n0 + bc;
  const float* bp = w + bcol;
  const uint32_t a_dst = (uint32_t)__cvta_generic_to_shared(As) + (uint32_t)(((tid >> 2) * AST + ac) * 4);
  const uint32_t b_dst = (uint32_t)__cvta_generic_to_shared(Bs) + (uint32_t)((bk * BN + bc) * 4);

  auto load = [&](int t) {
    const int k0 = t * BK;
    const uint32_t ad = a_dst + (uint32_t)((t & 1) * (BM * AST * 4));
    const uint32_t bd = b_dst + (uint32_t)((t & 1) * (BK * BN * 4));
    if (VEC) {
      const bool ka = k0 + ac < K;
#pragma unroll
      for (int i = 0; i < AL; ++i) cp16(ad + i * (32 * AST * 4), ap[i] + k0, ka);
      const bool nb = bcol < N;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = k0 + bk + 4 * i;
        cp16(bd + i * (4 * BN * 4), bp + (size_t)k * N, nb && k < K);
      }
    } else {
#pragma unroll
      for (int i = 0; i < AL; ++i) {
#pragma unroll
        for (int v = 0; v < 4; ++v)
          cp4(ad + (i * 32 * AST + v) * 4, ap[i] + k0 + v, k0 + ac + v < K);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = k0 + bk + 4 * i;
#pragma unroll
        for (int v = 0; v < 4; ++v)
          cp4(bd + (i * 4 * BN + v) * 4, bp + (size_t)k * N + v, k < K && bcol + v < N);
      }
    }
  };

  const int T = (K + BK - 1) / BK;
  load(0);
  cp_commit();
  if (T > 1) load(1);
  cp_commit();

  float acc[RI][16];
#pragma unroll
  for (int i = 0; i < RI; ++i) {
#pragma unroll
    for (int j = 0; j < 16; ++j) acc[i][j] = 0.0f;
  }

  cp_wait<1>();
  __syncthreads();

  const float* a_s = As + (wm * 8 * RI + ly) * AST;
  const float* b_s = Bs + wn * 64 + lx * 4;
  float4 a[RI];
  float4 b0[4], b1[4];
#pragma unroll
  for (int i = 0; i < RI; ++i) a[i] = *reinterpret_cast<const float4*>(a_s + i * 8 * AST);
  load_b(b0, b_s);

  const float* bn = b_s;
  const int G = T * 4;
#pragma unroll 1
  for (int g = 0; g < G; ++g) {
    load_b(b1, bn + BN);
#pragma unroll
    for (int i = 0; i < RI; ++i) fma_row(acc[i], a[i].x, b0);
    load_b(b0, bn + 2 * BN);
#pragma unroll
    for (int i = 0; i < RI; ++i) fma_row(acc[i], a[i].y, b1);
    load_b(b1, bn + 3 * BN);
#pragma unroll
    for (int i = 0; i < RI; ++i) fma_row(acc[i], a[i].z, b0);

    const int gn = g + 1;
    if ((gn & 3) == 0) {
      // the next tile has arrived, and all have read the last of this one
      cp_wait<0>();
      __syncthreads();
      const int t = (gn >> 2) + 1;
      if (t < T) load(t);
      cp_commit();
    }
    const int buf = (gn >> 2) & 1;
    const float* an = a_s + buf * (BM * AST) + (gn & 3) * 4;
    bn = b_s + buf * (BK * BN) + (gn & 3) * (4 * BN);
    load_b(b0, bn);
#pragma unroll
    for (int i = 0; i < RI; ++i) {
      fma_row(acc[i], a[i].w, b1);
      a[i] = *reinterpret_cast<const float4*>(an + i * 8 * AST);
    }
  }

  const int nb = n0 + wn * 64 + lx * 4;
#pragma unroll
  for (int i = 0; i < RI; ++i) {
    const int r = wm * 8 * RI + i * 8 + ly;
    if (r < rows) {
      float* o = out + (size_t)perm[first + r] * N;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int n = nb + j * 16;
        if (VEC) {
          if (n < N)
            *reinterpret_cast<float4*>(o + n) =
                make_float4(acc[i][4 * j], acc[i][4 * j + 1], acc[i][4 * j + 2], acc[i][4 * j + 3]);
        } else {
#pragma unroll
          for (int v = 0; v < 4; ++v)
            if (n + v < N) o[n + v] = acc[i][4 * j + v];
        }
      }
    }
  }
}

__global__ void __launch_bounds__(128, 2) expert_product(const float* __restrict__ x, const float* __restrict__ W,
                                                         float* __restrict__ out, const int* __restrict__ perm,
                                                         const int* __restrict__ count, int M, int N, int K) {
  __shared__ __align__(16) float As[2 * BM * AST];
  __shared__ __align__(16) float Bs[2 * BK * BN];

  // which tile: first all full ones, then the remainders of more than 64 rows, then the others
  const int E = (int)gridDim.y - (M + BM - 1) / BM;
  int t = blockIdx.y;
  int e_tile = -1, first = 0, rows = 0;
  {
    int off = 0, full = 0;
#pragma unroll 8
    for (int e = 0; e < E; ++e) {
      const int c = count[e];
      const int q = c / BM;
      if (e_tile < 0 && t < full + q) {
        e_tile = e;
        first = off + (t - full) * BM;
        rows = BM;
      }
      full += q;
      off += c;
    }
    if (e_tile < 0) {
      t -= full;
      for (int pass = 0; pass < 2 && e_tile < 0; ++pass) {
        off = 0;
        for (int e = 0; e < E && e_tile < 0; ++e) {
          const int c = count[e];
          const int r = c % BM;
          const bool take = pass == 0 ? r > 64 : (r > 0 && r <= 64);
          if (take) {
            if (t == 0) {
              e_tile = e;
              first = off + (c - r);
              rows = r;
            }
            --t;
          }
          off += c;
        }
      }
    }
  }
  if (e_tile < 0) return;

  const float* w = W + (size_t)e_tile * K * N;
  const int n0 = blockIdx.x * BN;
  const bool vec = (K % 4 == 0) && (N % 4 == 0) &&
                   (((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(W) |
                      reinterpret_cast<uintptr_t>(out)) & 15) == 0);
  if (vec) {
    if (rows > 64)
      run_tile<8, true>(x, w, out, perm, As, Bs, first, rows, n0, N, K);
    else if (rows > 32)
      run_tile<4, true>(x, w, out, perm, As, Bs, first, rows, n0, N, K);
    else
      run_tile<2, true>(x, w, out, perm, As, Bs, first, rows, n0, N, K);
  } else {
    run_tile<8, false>(x, w, out, perm, As, Bs, first, rows, n0, N, K);
  }
}
