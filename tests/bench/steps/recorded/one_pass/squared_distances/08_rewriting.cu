// Squared distances between two sets of points, a tile of 128 x 128 pairs for each block.

#define BT 128
#define BK 8
#define LD 132

template <bool VEC>
__device__ __forceinline__ float4 load_piece(const float* __restrict__ row, int d, int D) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (VEC) {
    if (d < D) v = __ldg(reinterpret_cast<const float4*>(row + d));
  } else {
    if (d < D) v.x = row[d];
    if (d + 1 < D) v.y = row[d + 1];
    if (d + 2 < D) v.z = row[d + 2];
    if (d + 3 < D) v.w = row[d + 3];
  }
  return v;
}

__device__ __forceinline__ void store_piece(float* to, float4 v) {
  to[0 * LD] = v.x;
  to[1 * LD] = v.y;
  to[2 * LD] = v.z;
  to[3 * LD] = v.w;
}

__device__ __forceinline__ float add_squares(float4 v, float sum) {
  return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, sum))));
}

// DIRECT: sums of squared differences; otherwise products, and in nq and np this thread's part of the squared norms.
template <bool VEC, bool DIRECT>
__device__ __forceinline__ void tile(const float* __restrict__ qrow, const float* __restrict__ prow, int D, float* As, float* Bs,
                                     int to, int mt, int nt, float (&acc)[8][8], float& nq, float& np) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;
  }
  const int part = (threadIdx.x & 1) * 4;
  float4 ra = load_piece<VEC>(qrow, part, D);
  float4 rb = load_piece<VEC>(prow, part, D);
  store_piece(As + to, ra);
  store_piece(Bs + to, rb);
  if (!DIRECT) {
    nq = add_squares(ra, nq);
    np = add_squares(rb, np);
  }
  __syncthreads();

  int buf = 0;
#pragma unroll 1
  for (int d0 = 0; d0 < D; d0 += BK) {
    const bool more = d0 + BK < D;
    if (more) {
      ra = load_piece<VEC>(qrow, d0 + BK + part, D);
      rb = load_piece<VEC>(prow, d0 + BK + part, D);
    }
    const float* a = As + buf * BK * LD + mt;
    const float* b = Bs + buf * BK * LD + nt;
    float fa[2][8], fb[2][8];
    *reinterpret_cast<float4*>(&fa[0][0]) = *reinterpret_cast<const float4*>(a);
    *reinterpret_cast<float4*>(&fa[0][4]) = *reinterpret_cast<const float4*>(a + 16);
    *reinterpret_cast<float4*>(&fb[0][0]) = *reinterpret_cast<const float4*>(b);
    *reinterpret_cast<float4*>(&fb[0][4]) = *reinterpret_cast<const float4*>(b + 32);
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const int now = k & 1;
      if (k + 1 < BK) {
        const int then = now ^ 1;
        *reinterpret_cast<float4*>(&fa[then][0]) = *reinterpret_cast<const float4*>(a + (k + 1) * LD);
        *reinterpret_cast<float4*>(&fa[then][4]) = *reinterpret_cast<const float4*>(a + (k + 1) * LD + 16);
        *reinterpret_cast<float4*>(&fb[then][0]) = *reinterpret_cast<const float4*>(b + (k + 1) * LD);
        *reinterpret_cast<float4*>(&fb[then][4]) = *reinterpret_cast<const float4*>(b + (k + 1) * LD + 32);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          if (DIRECT) {
            const float difference = fa[now][i] - fb[now][j];
            acc[i][j] = fmaf(difference, difference, acc[i][j]);
          } else {
            acc[i][j] = fmaf(fa[now][i], fb[now][j], acc[i][j]);
          }
        }
      }
    }
    if (more) {
      buf ^= 1;
      store_piece(As + buf * BK * LD + to, ra);
      store_piece(Bs + buf * BK * LD + to, rb);
      if (!DIRECT) {
        nq = add_squares(ra, nq);
        np = add_squares(rb, np);
      }
      __syncthreads();
    }
  }
}

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ out, int M, int N, int D) {
  __shared__ __align__(16) float As[2 * BK * LD];
  __shared__ __align__(16) float Bs[2 * BK * LD];
  __shared__ __align__(16) float norm_q[BT];
  __shared__ __align__(16) float norm_p[BT];
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int m0 = blockIdx.y * BT;
  const int n0 = blockIdx.x * BT;
  const int lm = ((lane >> 4) << 1) | (lane & 1);
  const int ln = (lane >> 1) & 7;
  const int mt = (warp >> 1) * 32 + lm * 4;
  const int nt = (warp & 1) * 64 + ln * 4;
  const int to = (t & 1) * 4 * LD + (t >> 1);
  // rows behind the end repeat the last one and are not stored
  const float* qrow = q + (size_t)min(m0 + (t >> 1), M - 1) * D;
  const float* prow = p + (size_t)min(n0 + (t >> 1), N - 1) * D;
  const bool vec = (D & 3) == 0;

  float acc[8][8];
  float nq = 0.0f, np = 0.0f;
  if (vec) {
    tile<true, false>(qrow, prow, D, As, Bs, to, mt, nt, acc, nq, np);
  } else {
    tile<false, false>(qrow, prow, D, As, Bs, to, mt, nt, acc, nq, np);
  }
  nq += __shfl_xor_sync(0xffffffffu, nq, 1);
  np += __shfl_xor_sync(0xffffffffu, np, 1);
  if ((t & 1) == 0) {
    norm_q[t >> 1] = nq;
    norm_p[t >> 1] = np;
  }
  __syncthreads();

  int bad = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float sq = norm_q[mt + (i & 3) + (i >> 2) * 16];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float both = sq + norm_p[nt + (j & 3) + (j >> 2) * 32];
      const float r = fmaf(-2.0f, acc[i][j], both);
      if (!(r >= 0.125f * both && both < 1e37f && both > 1e-30f)) bad = 1;
      acc[i][j] = r;
    }
  }
  if (__syncthreads_or(bad)) {
    if (vec) {
      tile<true, true>(qrow, prow, D, As, Bs, to, mt, nt, acc, nq, np);
    } else {
      tile<false, true>(qrow, prow, D, As, Bs, to, mt, nt, acc, nq, np);
    }
  }

  const bool wide = (N & 3) == 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int m = m0 + mt + (i & 3) + (i >> 2) * 16;
    if (m < M) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int n = n0 + nt + h * 32;
        float* o = out + (size_t)m * N + n;
        if (wide) {
          if (n < N) {
            __stcs(reinterpret_cast<float4*>(o), make_float4(acc[i][h * 4], acc[i][h * 4 + 1], acc[i][h * 4 + 2], acc[i][h * 4 + 3]));
          }
        } else {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            if (n + e < N) o[e] = acc[i][h * 4 + e];
          }
        }
      }
    }
  }
}
