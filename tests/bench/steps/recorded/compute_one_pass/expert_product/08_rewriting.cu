// Each row times the matrix of the expert that it was given to: the rows are first listed by expert,
// then every block multiplies a tile of rows of one expert with 128 columns of its matrix.

//@ scratch perm: i32[E, M]
//@ scratch count: i32[E]
//@ launch group_rows<<<E, 1024>>>(expert, perm, count, M)
//@ launch expert_product<<<(ceil_div(N, 128), ceil_div(M, 128) + E), 128>>>(x, perm, count, W, out, M, N, K)

// Block e lists the rows of expert e in perm[e * M ...] and counts them.
__global__ void __launch_bounds__(1024) group_rows(const int* __restrict__ expert, int* __restrict__ perm,
                                                   int* __restrict__ count, int M) {
  __shared__ int total;
  const int e = blockIdx.x;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  if (tid == 0) total = 0;
  __syncthreads();
  int* list = perm + (size_t)e * M;
  for (int base = 0; base < M; base += 8 * 1024) {
    int v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      int m = base + u * 1024 + tid;
      v[u] = (m < M) ? expert[m] : -1;
    }
    unsigned mask[8];
    int c = 0;
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      mask[u] = __ballot_sync(0xffffffffu, v[u] == e);
      c += __popc(mask[u]);
    }
    int pos = 0;
    if (lane == 0 && c > 0) pos = atomicAdd(&total, c);
    pos = __shfl_sync(0xffffffffu, pos, 0);
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (v[u] == e) list[pos + __popc(mask[u] & ((1u << lane) - 1u))] = base + u * 1024 + tid;
      pos += __popc(mask[u]);
    }
  }
  __syncthreads();
  if (tid == 0) count[e] = total;
}

__device__ __forceinline__ void copy16(float* dst, const float* src, bool ok) {
  unsigned d = (unsigned)__cvta_generic_to_shared(dst);
  int bytes = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(d), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy4(float* dst, const float* src, bool ok) {
  unsigned d = (unsigned)__cvta_generic_to_shared(dst);
  int bytes = ok ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(d), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copies_done() {
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}

template <int TM>
__device__ __forceinline__ void load_fragments(float (&a)[TM], float (&b)[16], const float* A, const float* B) {
  if constexpr (TM == 2) {
    float2 v = *reinterpret_cast<const float2*>(A);
    a[0] = v.x;
    a[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < TM / 4; ++i) {
      float4 v = *reinterpret_cast<const float4*>(A + i * 32);
      a[i * 4 + 0] = v.x;
      a[i * 4 + 1] = v.y;
      a[i * 4 + 2] = v.z;
      a[i * 4 + 3] = v.w;
    }
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float4 v = *reinterpret_cast<const float4*>(B + j * 16);
    b[j * 4 + 0] = v.x;
    b[j * 4 + 1] = v.y;
    b[j * 4 + 2] = v.z;
    b[j * 4 + 3] = v.w;
  }
}

// 16 * TM rows (of which the first `rows` exist) times 128 columns, TM x 16 results per thread.
template <int TM, bool VEC>
__device__ __forceinline__ void product_tile(const float* __restrict__ x, const float* __restrict__ We,
                                             float* __restrict__ out, const int* __restrict__ list, int rows,
                                             int n0, int N, int K, float* As, float* Bs) {
  constexpr int BM = 16 * TM;
  constexpr int WM = 8 * TM;
  constexpr int AL = (BM * 2 + 127) / 128;
  constexpr int STAGE = 1024;

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wr = warp >> 1;
  const int wc = warp & 1;
  const int lc = (lane & 1) | ((lane >> 1) & 2);
  const int lr = ((lane >> 1) & 1) | ((lane >> 2) & 6);

  // what this thread brings of x: quads of k of rows
  const int aq = tid & 1;
  const int ar = tid >> 1;
  const bool aOn = (BM * 2 >= 128) || (tid < BM * 2);
  const float* ap[AL];
#pragma unroll
  for (int i = 0; i < AL; ++i) {
    int r = ar + i * 64;
    if (r >= rows) r = rows - 1;
    ap[i] = x + (size_t)list[r] * K + aq * 4;
  }
  float* const aSt = As + aq * 4 * BM + (ar ^ (aq << 4));
  int ka = aq * 4;

  // what this thread brings of W: quads of columns
  const int bn = (tid & 31) * 4;
  const int bcol = n0 + bn;
  int kb = tid >> 5;
  const float* bp = We + (size_t)kb * N + (bcol < N ? bcol : 0);
  float* const bSt = Bs + (tid >> 5) * 128 + bn;
  const size_t bHalf = (size_t)4 * N;
  const size_t bStep = (size_t)8 * N;

  float4 ra[AL];

  auto loadA = [&]() {
#pragma unroll
    for (int i = 0; i < AL; ++i) {
      float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (aOn) {
        if (VEC) {
          if (ka < K) v = __ldg(reinterpret_cast<const float4*>(ap[i]));
        } else {
          if (ka + 0 < K) v.x = ap[i][0];
          if (ka + 1 < K) v.y = ap[i][1];
          if (ka + 2 < K) v.z = ap[i][2];
          if (ka + 3 < K) v.w = ap[i][3];
        }
      }
      ra[i] = v;
      ap[i] += 8;
    }
    ka += 8;
  };
  auto storeA = [&](int stage) {
    if (aOn) {
#pragma unroll
      for (int i = 0; i < AL; ++i) {
        float* s = aSt + stage + i * 64;
        s[0 * BM] = ra[i].x;
        s[1 * BM] = ra[i].y;
        s[2 * BM] = ra[i].z;
        s[3 * BM] = ra[i].w;
      }
    }
  };
  auto loadB = [&](int stage) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool kOk = kb + i * 4 < K;
      float* d = bSt + stage + i * 4 * 128;
      const float* s = kOk ? bp + i * bHalf : We;
      if (VEC) {
        copy16(d, s, kOk);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const bool ok = kOk && (bcol + j < N);
          copy4(d + j, ok ? s + j : We, ok);
        }
      }
    }
    bp += bStep;
    kb += 8;
  };

  float acc[TM][16];
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < 16; ++j) acc[i][j] = 0.0f;

  float a[2][TM];
  float b[2][16];

  const int aRow = wr * WM + lr * (TM == 2 ? 2 : 4);
  const float* const aRd0 = As + aRow;
  const float* const aRd1 = As + (aRow ^ 16);
  const float* const bRd = Bs + wc * 64 + lc * 4;

  const int T = (K + 7) / 8;
  int stage = 0;

  loadB(0);
  loadA();
  storeA(0);
  copies_done();
  __syncthreads();
  load_fragments<TM>(a[0], b[0], aRd0, bRd);

#pragma unroll 1
  for (int t = 0; t < T; ++t) {
    // the next tile; behind the last one these bring zeros that nothing uses
    loadA();
    loadB(stage ^ STAGE);
#pragma unroll
    for (int kk = 0; kk < 8; ++kk) {
      if (kk == 7) {
        stage ^= STAGE;
        storeA(stage);
        copies_done();
        __syncthreads();
        load_fragments<TM>(a[0], b[0], aRd0 + stage, bRd + stage);
      } else {
        const int kn = kk + 1;
        load_fragments<TM>(a[kn & 1], b[kn & 1], (kn < 4 ? aRd0 : aRd1) + stage + kn * BM,
                           bRd + stage + kn * 128);
      }
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < 16; ++j) acc[i][j] = fmaf(a[kk & 1][i], b[kk & 1][j], acc[i][j]);
    }
  }

  const int nBase = n0 + wc * 64 + lc * 4;
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = aRow + (i >> 2) * 32 + (i & 3);
    if (m < rows) {
      float* o = out + (size_t)list[m] * N;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int n = nBase + j * 16;
        if (VEC) {
          if (n < N)
            *reinterpret_cast<float4*>(o + n) =
                make_float4(acc[i][j * 4 + 0], acc[i][j * 4 + 1], acc[i][j * 4 + 2], acc[i][j * 4 + 3]);
        } else {
#pragma unroll
          for (int c = 0; c < 4; ++c)
            if (n + c < N) o[n + c] = acc[i][j * 4 + c];
        }
      }
    }
  }
}

__global__ void __launch_bounds__(128, 2)
    expert_product(const float* __restrict__ x, const int* __restrict__ perm, const int* __restrict__ count,
                   const float* __restrict__ W, float* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(16) float As[2 * 1024];
  __shared__ __align__(16) float Bs[2 * 1024];

  const unsigned all = 0xffffffffu;
  const int E = (int)gridDim.y - (M + 127) / 128;
  const int lane = threadIdx.x & 31;

  // Which tile: first the full ones of all experts, then what remains of each, the largest first.
  int t = blockIdx.y;
  int e = -1, row0 = 0, rows = 0;
  for (int base = 0; base < E; base += 32) {
    const int c = (base + lane < E) ? count[base + lane] : 0;
    const int f = c / 128;
    int incl = f;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      int v = __shfl_up_sync(all, incl, d);
      if (lane >= d) incl += v;
    }
    const int sum = __shfl_sync(all, incl, 31);
    if (t < sum) {
      const int l = __ffs(__ballot_sync(all, t < incl)) - 1;
      const int before = __shfl_sync(all, incl - f, l);
      e = base + l;
      row0 = (t - before) * 128;
      rows = 128;
      break;
    }
    t -= sum;
  }
  if (e < 0) {
    for (int base = 0; base < E; base += 32) {
      const int c = (base + lane < E) ? count[base + lane] : 0;
      const int r = c % 128;
      const int some = __popc(__ballot_sync(all, r > 0));
      if (t < some) {
        int rank = 0;
#pragma unroll
        for (int j = 0; j < 32; ++j) {
          const int rj = __shfl_sync(all, r, j);
          rank += (rj > r || (rj == r && j < lane)) ? 1 : 0;
        }
        const int l = __ffs(__ballot_sync(all, r > 0 && rank == t)) - 1;
        e = base + l;
        row0 = __shfl_sync(all, c - r, l);
        rows = __shfl_sync(all, r, l);
        break;
      }
      t -= some;
    }
  }
  if (e < 0) return;

  const int n0 = blockIdx.x * 128;
  const float* We = W + (size_t)e * K * N;
  const int* list = perm + (size_t)e * M + row0;

  if ((N & 3) == 0 && (K & 3) == 0) {
    if (rows > 64)
      product_tile<8, true>(x, We, out, list, rows, n0, N, K, As, Bs);
    else if (rows > 32)
      product_tile<4, true>(x, We, out, list, rows, n0, N, K, As, Bs);
    else
      product_tile<2, true>(x, We, out, list, rows, n0, N, K, As, Bs);
  } else {
    product_tile<8, false>(x, We, out, list, rows, n0, N, K, As, Bs);
  }
}
