// Each row times the matrix of the expert that it was given to: rows are grouped by expert, then a tiled product.

//@ scratch rows: i32[E * M]
//@ scratch meta: i32[E + 1]
//@ scratch flags: i32[528]
//@ scratch part: f32[528 * 8192]
//@ launch group_rows<<<E, 1024>>>(expert, rows, meta, flags, M)
//@ launch expert_product<<<528, 64>>>(x, W, out, rows, meta, flags, part, M, N, K)
#include <cstdint>

constexpr int BM = 64;
constexpr int BN = 128;
constexpr int BK = 8;
constexpr int ST = 4;
constexpr int AS = 68;                  // padded row of the transposed tile of x
constexpr int AFL = BK * AS;            // floats of the tile of x
constexpr int STF = AFL + BK * BN;      // floats of one stage
constexpr int NBLK = 528;               // blocks of expert_product

// Block e lists the rows of expert e in ascending order.
__global__ void __launch_bounds__(1024) group_rows(const int* __restrict__ expert, int* rows, int* meta, int* flags, int M) {
  __shared__ int wcnt[32];
  const unsigned full = 0xffffffffu;
  const int e = blockIdx.x;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int seg = ((M + 1023) / 1024) * 32;
  const int beg = warp * seg;
  const int end = min(M, beg + seg);
  int c = 0;
  for (int i = beg; i < end; i += 256) {
    int v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      int idx = i + j * 32 + lane;
      v[j] = idx < end ? expert[idx] : -1;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) c += __popc(__ballot_sync(full, v[j] == e));
  }
  if (lane == 0) wcnt[warp] = c;
  __syncthreads();
  int w = wcnt[lane];
  int pos = __reduce_add_sync(full, lane < warp ? w : 0);
  int total = __reduce_add_sync(full, w);
  int* dst = rows + (size_t)e * M;
  for (int i = beg; i < end; i += 256) {
    int v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      int idx = i + j * 32 + lane;
      v[j] = idx < end ? expert[idx] : -1;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      bool p = v[j] == e;
      unsigned b = __ballot_sync(full, p);
      if (p) dst[pos + __popc(b & ((1u << lane) - 1u))] = i + j * 32 + lane;
      pos += __popc(b);
    }
  }
  if (tid == 0) {
    meta[1 + e] = total;
    if (e == 0) meta[0] = (int)gridDim.x;
  }
  if (e == 0) {
    for (int i = tid; i < NBLK; i += 1024) flags[i] = 0;
  }
}

__device__ __forceinline__ void cp4(uint32_t dst, const float* src) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;\n" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp4z(uint32_t dst, const float* src, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp16(uint32_t dst, const float* src) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
__device__ __forceinline__ void cp_wait_stage() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(ST - 2) : "memory");
}

template <bool FAST>
__device__ __forceinline__ void run_tiles(const float* __restrict__ x, const float* __restrict__ W, float* __restrict__ out,
                                          const int* __restrict__ rows, const int* __restrict__ meta, int* flags,
                                          float* part, int M, int N, int K, float* sm, int* s_rows) {
  const unsigned full = 0xffffffffu;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int tx = (lane >> 1) & 7;
  const int ty = (lane & 1) | ((lane >> 4) << 1);
  const int E = meta[0];
  const int KT = (K + BK - 1) / BK;
  const int NT = (N + BN - 1) / BN;

  int R = 0;
  for (int e0 = 0; e0 < E; e0 += 32) {
    int c = e0 + lane < E ? meta[1 + e0 + lane] : 0;
    R += __reduce_add_sync(full, (c + BM - 1) / BM);
  }
  const int T = R * NT;
  const int total = T * KT;
  const int waves = (T + NBLK - 1) / NBLK;
  const int chunk = (total + NBLK - 1) / NBLK;
  // whole tiles where that balances well, else even pieces of the k ranges
  const bool dp = waves <= 1 || waves * KT * 25 <= chunk * 26;

  int pos = (int)blockIdx.x * (dp ? KT : chunk);
  const int end = dp ? total : min(total, pos + chunk);

  const uint32_t sbase = (uint32_t)__cvta_generic_to_shared(sm);
  const uint32_t adst = sbase + (uint32_t)(((lane & 7) * AS + warp * 4 + (lane >> 3)) * 4);
  const uint32_t bdst = sbase + (uint32_t)((AFL + warp * BN + (FAST ? lane * 4 : lane)) * 4);
  const float* fa = sm + ty * 4;
  const float* fb = sm + AFL + warp * 64 + tx * 4;

  while (pos < end) {
    const int t = pos / KT;
    const int kb = pos - t * KT;
    const int ke = dp ? KT : min(KT, end - t * KT);
    const int rt = t / NT;
    const int n0 = (t - rt * NT) * BN;

    // the expert of this tile of rows
    int e = 0, start = 0, cnt = 1;
    {
      int a = 0;
      for (int e0 = 0; e0 < E; e0 += 32) {
        int c = e0 + lane < E ? meta[1 + e0 + lane] : 0;
        int n = (c + BM - 1) / BM;
        int inc = n;
#pragma unroll
        for (int d = 1; d < 32; d <<= 1) {
          int u = __shfl_up_sync(full, inc, d);
          if (lane >= d) inc += u;
        }
        unsigned b = __ballot_sync(full, a + inc > rt);
        if (b) {
          int f = __ffs(b) - 1;
          e = e0 + f;
          cnt = __shfl_sync(full, c, f);
          start = a + __shfl_sync(full, inc - n, f);
          break;
        }
        a += __shfl_sync(full, inc, 31);
      }
    }
    const int row0 = (rt - start) * BM;
    const int nrows = min(BM, cnt - row0);
    s_rows[tid] = rows[(size_t)e * M + row0 + min(tid, nrows - 1)];
    __syncthreads();

    const float* xp[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      int m = warp * 4 + (lane >> 3) + 8 * i;
      xp[i] = x + (size_t)s_rows[m] * K + (kb * BK + (lane & 7));
    }
    const float* wp;
    if (FAST) {
      int n = min(n0 + lane * 4, N - 4);
      wp = W + ((size_t)e * K + kb * BK + warp) * N + n;
    } else {
      wp = W + ((size_t)e * K + kb * BK + warp) * N + n0 + lane;
    }
    int kl = kb;

    auto load_stage = [&](int s) {
      const uint32_t so = (uint32_t)(s * STF * 4);
      if (FAST) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          cp4(adst + so + i * 32, xp[i]);
          xp[i] += BK;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) cp16(bdst + so + i * (2 * BN * 4), wp + (size_t)(2 * i) * N);
        wp += (size_t)BK * N;
      } else {
        const bool ka = kl * BK + (lane & 7) < K;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          cp4z(adst + so + i * 32, ka ? xp[i] : x, ka ? 4 : 0);
          xp[i] += BK;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const bool kv = kl * BK + warp + 2 * i < K;
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const bool ok = kv && (n0 + lane + 32 * c < N);
            cp4z(bdst + so + i * (2 * BN * 4) + c * 128, ok ? wp + (size_t)(2 * i) * N + 32 * c : W, ok ? 4 : 0);
          }
        }
        wp += (size_t)BK * N;
      }
      ++kl;
    };

    float acc[16][8];
#pragma unroll
    for (int i = 0; i < 16; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

#pragma unroll
    for (int s = 0; s < ST - 1; ++s) {
      if (kl < ke) load_stage(s);
      cp_commit();
    }
    cp_wait_stage();
    __syncthreads();

    float a[2][16];
    float b[2][8];
    auto load_frag = [&](int buf, int so, int kk) {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        float4 v = *reinterpret_cast<const float4*>(fa + so + kk * AS + 16 * q);
        a[buf][q * 4 + 0] = v.x;
        a[buf][q * 4 + 1] = v.y;
        a[buf][q * 4 + 2] = v.z;
        a[buf][q * 4 + 3] = v.w;
      }
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        float4 v = *reinterpret_cast<const float4*>(fb + so + kk * BN + 32 * p);
        b[buf][p * 4 + 0] = v.x;
        b[buf][p * 4 + 1] = v.y;
        b[buf][p * 4 + 2] = v.z;
        b[buf][p * 4 + 3] = v.w;
      }
    };
    load_frag(0, 0, 0);

    int stage = 0;
#pragma unroll 1
    for (int kt = kb; kt < ke; ++kt) {
      if (kl < ke) load_stage((stage + ST - 1) & (ST - 1));
      cp_commit();
      const int so = stage * STF;
      stage = (stage + 1) & (ST - 1);
      const int sn = stage * STF;
#pragma unroll
      for (int kk = 0; kk < BK; ++kk) {
        if (kk == BK - 1) {
          cp_wait_stage();
          __syncthreads();
          load_frag((kk + 1) & 1, sn, 0);
        } else {
          load_frag((kk + 1) & 1, so, kk + 1);
        }
#pragma unroll
        for (int i = 0; i < 16; ++i)
#pragma unroll
          for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(a[kk & 1][i], b[kk & 1][j], acc[i][j]);
      }
    }

    if (kb > 0) {
      // the later part of a tile that the block before this one finishes
      float4* p4 = reinterpret_cast<float4*>(part) + (size_t)blockIdx.x * 2048 + tid;
#pragma unroll
      for (int i = 0; i < 16; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          __stcg(p4 + (i * 2 + h) * 64,
                 make_float4(acc[i][h * 4 + 0], acc[i][h * 4 + 1], acc[i][h * 4 + 2], acc[i][h * 4 + 3]));
      __threadfence();
      __syncthreads();
      if (tid == 0) atomicExch(flags + blockIdx.x, 1);
    } else {
      if (ke < KT) {
        if (tid == 0) {
          volatile int* f = flags + blockIdx.x + 1;
          while (*f == 0) __nanosleep(64);
          __threadfence();
        }
        __syncthreads();
        const float4* p4 = reinterpret_cast<const float4*>(part) + (size_t)(blockIdx.x + 1) * 2048 + tid;
#pragma unroll
        for (int i = 0; i < 16; ++i)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            float4 v = __ldcg(p4 + (i * 2 + h) * 64);
            acc[i][h * 4 + 0] += v.x;
            acc[i][h * 4 + 1] += v.y;
            acc[i][h * 4 + 2] += v.z;
            acc[i][h * 4 + 3] += v.w;
          }
      }
      const int nb = n0 + warp * 64 + tx * 4;
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int m = ty * 4 + 16 * (i >> 2) + (i & 3);
        if (m < nrows) {
          float* o = out + (size_t)s_rows[m] * N;
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int n = nb + 32 * h;
            if (FAST) {
              if (n < N)
                *reinterpret_cast<float4*>(o + n) =
                    make_float4(acc[i][h * 4 + 0], acc[i][h * 4 + 1], acc[i][h * 4 + 2], acc[i][h * 4 + 3]);
            } else {
#pragma unroll
              for (int c = 0; c < 4; ++c)
                if (n + c < N) o[n + c] = acc[i][h * 4 + c];
            }
          }
        }
      }
    }
    __syncthreads();
    pos = dp ? pos + NBLK * KT : t * KT + ke;
  }
}

__global__ void __launch_bounds__(64, 4) expert_product(const float* __restrict__ x, const float* __restrict__ W,
                                                        float* __restrict__ out, const int* __restrict__ rows,
                                                        const int* __restrict__ meta, int* flags, float* part, int M, int N,
                                                        int K) {
  __shared__ __align__(128) float sm[ST * STF];
  __shared__ int s_rows[BM];
  const bool fast = (K % BK == 0) && (N % 4 == 0) && ((reinterpret_cast<uintptr_t>(W) & 15) == 0) &&
                    ((reinterpret_cast<uintptr_t>(out) & 15) == 0);
  if (fast)
    run_tiles<true>(x, W, out, rows, meta, flags, part, M, N, K, sm, s_rows);
  else
    run_tiles<false>(x, W, out, rows, meta, flags, part, M, N, K, sm, s_rows);
}
