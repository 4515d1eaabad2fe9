// Each row times the matrix of the expert that it was given to: rows are listed by expert, then multiplied in tiles.

//@ scratch rows: i32[E, M]
//@ scratch count: i32[E + 1]
//@ launch group_rows<<<E, 1024>>>(expert, rows, count, M)
//@ launch expert_product<<<(ceil_div(N, 128), ceil_div(M, 64) + E), 128, 51200>>>(x, rows, count, W, out, M, N, K)
__global__ void __launch_bounds__(1024) group_rows(const int* __restrict__ expert, int* __restrict__ rows, int* __restrict__ count, int M) {
  __shared__ int total;
  const int e = blockIdx.x;
  const int lane = threadIdx.x & 31;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  int* list = rows + (long long)e * M;
  for (int base = 0; base < M; base += 8 * 1024) {
    int whose[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int m = base + i * 1024 + (int)threadIdx.x;
      whose[i] = m < M ? expert[m] : -1;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int m = base + i * 1024 + (int)threadIdx.x;
      const bool mine = whose[i] == e;
      const unsigned mask = __ballot_sync(0xffffffffu, mine);
      if (mask != 0) {
        int at = 0;
        if (lane == 0) at = atomicAdd(&total, __popc(mask));
        at = __shfl_sync(0xffffffffu, at, 0);
        if (mine) list[at + __popc(mask & ((1u << lane) - 1u))] = m;
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    count[1 + e] = total;
    if (e == 0) count[0] = gridDim.x;
  }
}

__device__ __forceinline__ void copy16(unsigned to, const float* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__global__ void __launch_bounds__(128, 4) expert_product(const float* __restrict__ x, const int* __restrict__ rows, const int* __restrict__ count, const float* __restrict__ W, float* __restrict__ out, int M, int N, int K) {
  constexpr int BM = 64;
  constexpr int BN = 128;
  constexpr int BK = 32;
  constexpr int AS = BK + 4;                    // padded row of the tile of x
  constexpr int STAGE = BM * AS + BK * BN;      // floats

  extern __shared__ __align__(16) float memory[];
  __shared__ int row_of[BM];

  const int t = threadIdx.x;

  // Which expert, and which of its rows.
  const int experts = count[0];
  int slot = blockIdx.y;
  int full = 0;
#pragma unroll 4
  for (int i = 0; i < experts; ++i) full += count[1 + i] / BM;
  int e = -1, first = 0, here = 0;
  if (slot < full) {
    for (int i = 0; i < experts; ++i) {
      const int tiles = count[1 + i] / BM;
      if (slot < tiles) {
        e = i;
        first = slot * BM;
        here = BM;
        break;
      }
      slot -= tiles;
    }
  } else {
    slot -= full;
    for (int i = 0; i < experts; ++i) {
      const int c = count[1 + i];
      const int rest = c % BM;
      if (rest != 0) {
        if (slot == 0) {
          e = i;
          first = c - rest;
          here = rest;
          break;
        }
        --slot;
      }
    }
  }
  if (e < 0) return;

  if (t < BM) row_of[t] = t < here ? rows[(long long)e * M + first + t] : -1;
  __syncthreads();

  const int n0 = blockIdx.x * BN;
  const float* We = W + (long long)e * K * N;
  const bool vectors = (K & 3) == 0 && (N & 3) == 0;
  const unsigned memory_at = (unsigned)__cvta_generic_to_shared(memory);

  auto load = [&](int k0, int stage) {
    if (vectors) {
      {
        const int part = (t & 7) * 4;
        const int r0 = t >> 3;
        const bool k_ok = k0 + part < K;
        const unsigned to = memory_at + 4u * (stage * STAGE + r0 * AS + part);
#pragma unroll
        for (int i = 0; i < BM / 16; ++i) {
          const int row = row_of[r0 + 16 * i];
          const bool ok = k_ok && row >= 0;
          const float* from = ok ? x + (long long)row * K + (k0 + part) : x;
          copy16(to + 4u * (16 * i * AS), from, ok ? 16 : 0);
        }
      }
      {
        const int part = (t & 31) * 4;
        const int kr = t >> 5;
        const bool n_ok = n0 + part < N;
        const unsigned to = memory_at + 4u * (stage * STAGE + BM * AS + kr * BN + part);
        const float* from = We + (long long)(k0 + kr) * N + (n0 + part);
#pragma unroll
        for (int i = 0; i < BK / 4; ++i) {
          const bool ok = n_ok && k0 + kr + 4 * i < K;
          copy16(to + 4u * (4 * i * BN), ok ? from : W, ok ? 16 : 0);
          from += 4 * (long long)N;
        }
      }
    } else {
      float* a = memory + stage * STAGE;
      float* b = a + BM * AS;
      for (int i = t; i < BM * BK; i += 128) {
        const int r = i / BK, k = i % BK;
        const int row = row_of[r];
        float v = 0.0f;
        if (row >= 0 && k0 + k < K) v = x[(long long)row * K + k0 + k];
        a[r * AS + k] = v;
      }
      for (int i = t; i < BK * BN; i += 128) {
        const int k = i / BN, n = i % BN;
        float v = 0.0f;
        if (k0 + k < K && n0 + n < N) v = We[(long long)(k0 + k) * N + n0 + n];
        b[k * BN + n] = v;
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };

  const int lane = t & 31;
  const int warp = t >> 5;
  const int ng = lane & 7;
  const int mg = lane >> 3;
  const int m_base = (warp >> 1) * 32 + mg;          // rows m_base + 4 i
  const int n_base = (warp & 1) * 64 + ng * 4;       // columns n_base + 0..3 and n_base + 32 + 0..3
  const bool active = (warp >> 1) * 32 < here && n0 + (warp & 1) * 64 < N;

  float acc[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;
  }

  load(0, 0);
  int stage = 0;
  for (int k0 = 0; k0 < K; k0 += BK) {
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();
    if (k0 + BK < K) load(k0 + BK, stage ^ 1);

    if (active) {
      const float* a = memory + stage * STAGE + m_base * AS;
      const float* b = memory + stage * STAGE + BM * AS + n_base;
#pragma unroll 2
      for (int k = 0; k < BK; k += 4) {
        float4 av[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) av[i] = *reinterpret_cast<const float4*>(a + 4 * i * AS + k);
#pragma unroll
        for (int s = 0; s < 4; ++s) {
          const float4 b0 = *reinterpret_cast<const float4*>(b + (k + s) * BN);
          const float4 b1 = *reinterpret_cast<const float4*>(b + (k + s) * BN + 32);
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const float v = s == 0 ? av[i].x : s == 1 ? av[i].y : s == 2 ? av[i].z : av[i].w;
            acc[i][0] = fmaf(v, b0.x, acc[i][0]);
            acc[i][1] = fmaf(v, b0.y, acc[i][1]);
            acc[i][2] = fmaf(v, b0.z, acc[i][2]);
            acc[i][3] = fmaf(v, b0.w, acc[i][3]);
            acc[i][4] = fmaf(v, b1.x, acc[i][4]);
            acc[i][5] = fmaf(v, b1.y, acc[i][5]);
            acc[i][6] = fmaf(v, b1.z, acc[i][6]);
            acc[i][7] = fmaf(v, b1.w, acc[i][7]);
          }
        }
      }
    }
    stage ^= 1;
  }

  if (active) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = row_of[m_base + 4 * i];
      if (row < 0) continue;
      const int n = n0 + n_base;
      float* to = out + (long long)row * N + n;
      if ((N & 3) == 0) {
        if (n < N) *reinterpret_cast<float4*>(to) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
        if (n + 32 < N) *reinterpret_cast<float4*>(to + 32) = make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (n + j < N) to[j] = acc[i][j];
          if (n + 32 + j < N) to[32 + j] = acc[i][4 + j];
        }
      }
    }
  }
}
