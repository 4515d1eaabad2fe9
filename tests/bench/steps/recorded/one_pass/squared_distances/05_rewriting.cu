// Squared distances between two sets of points, a block for a tile of 128 x 128 pairs.

constexpr int BT = 128;      // tile edge
constexpr int BK = 8;        // dimensions of a step
constexpr int ST = BT + 4;   // padded row of a transposed tile

__device__ __forceinline__ float4 load4(const float* __restrict__ a, int row, int d, int rows, int D, bool vec) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row < rows && d < D) {
    const float* s = a + (size_t)row * D + d;
    if (vec) {
      v = __ldg(reinterpret_cast<const float4*>(s));
    } else {
      v.x = s[0];
      if (d + 1 < D) v.y = s[1];
      if (d + 2 < D) v.z = s[2];
      if (d + 3 < D) v.w = s[3];
    }
  }
  return v;
}

__device__ __forceinline__ void put4(float* at, float4 v) {
  at[0 * ST] = v.x;
  at[1 * ST] = v.y;
  at[2 * ST] = v.z;
  at[3 * ST] = v.w;
}

__device__ __forceinline__ float squares4(float4 v, float s) {
  s = fmaf(v.x, v.x, s);
  s = fmaf(v.y, v.y, s);
  s = fmaf(v.z, v.z, s);
  s = fmaf(v.w, v.w, s);
  return s;
}

// DIRECT: sums of squared differences; otherwise products, and the squares of the rows this thread brings
template <bool DIRECT>
__device__ __forceinline__ void run_tile(const float* __restrict__ q, const float* __restrict__ p, int i0, int j0,
                                         int M, int N, int D, float (*Qs)[BK * ST], float (*Ps)[BK * ST], int m0,
                                         int n0, float (&acc)[8][8], float& qq, float& pp) {
  const int row = threadIdx.x >> 1;
  const int kq = (threadIdx.x & 1) * 4;
  const bool vec = (D & 3) == 0;
  const int steps = (D + BK - 1) / BK;

#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int c = 0; c < 8; ++c) acc[r][c] = 0.0f;
  }

  float4 a = load4(q, i0 + row, kq, M, D, vec);
  float4 b = load4(p, j0 + row, kq, N, D, vec);
  put4(&Qs[0][kq * ST + row], a);
  put4(&Ps[0][kq * ST + row], b);
  if (!DIRECT) {
    qq = squares4(a, qq);
    pp = squares4(b, pp);
  }
  __syncthreads();

  int buf = 0;
  for (int t = 0; t < steps; ++t) {
    const bool more = t + 1 < steps;
    if (more) {
      const int d = (t + 1) * BK + kq;
      a = load4(q, i0 + row, d, M, D, vec);
      b = load4(p, j0 + row, d, N, D, vec);
    }

    const float* qa = &Qs[buf][m0];
    const float* pb = &Ps[buf][n0];
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const float4 a0 = *reinterpret_cast<const float4*>(qa + k * ST);
      const float4 a1 = *reinterpret_cast<const float4*>(qa + k * ST + 16);
      const float4 b0 = *reinterpret_cast<const float4*>(pb + k * ST);
      const float4 b1 = *reinterpret_cast<const float4*>(pb + k * ST + 32);
      const float ar[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      const float br[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
      for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          if (DIRECT) {
            const float difference = ar[r] - br[c];
            acc[r][c] = fmaf(difference, difference, acc[r][c]);
          } else {
            acc[r][c] = fmaf(ar[r], br[c], acc[r][c]);
          }
        }
      }
    }

    if (more) {
      put4(&Qs[buf ^ 1][kq * ST + row], a);
      put4(&Ps[buf ^ 1][kq * ST + row], b);
      if (!DIRECT) {
        qq = squares4(a, qq);
        pp = squares4(b, pp);
      }
      __syncthreads();
    }
    buf ^= 1;
  }
}

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p,
                                                            float* __restrict__ out, int M, int N, int D) {
  __shared__ __align__(16) float Qs[2][BK * ST];
  __shared__ __align__(16) float Ps[2][BK * ST];
  __shared__ float q_square[BT];
  __shared__ float p_square[BT];

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int i0 = blockIdx.y * BT;
  const int j0 = blockIdx.x * BT;
  const int m0 = (warp >> 1) * 32 + (lane >> 3) * 4;  // rows m0..m0+3 and m0+16..m0+19
  const int n0 = (warp & 1) * 64 + (lane & 7) * 4;    // columns n0..n0+3 and n0+32..n0+35

  float acc[8][8];
  float qq = 0.0f, pp = 0.0f;
  run_tile<false>(q, p, i0, j0, M, N, D, Qs, Ps, m0, n0, acc, qq, pp);

  qq += __shfl_xor_sync(0xffffffffu, qq, 1);
  pp += __shfl_xor_sync(0xffffffffu, pp, 1);
  if ((tid & 1) == 0) {
    q_square[tid >> 1] = qq;
    p_square[tid >> 1] = pp;
  }
  __syncthreads();

  int bad = 0;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int m = m0 + (r & 3) + (r >> 2) * 16;
    const float sq = q_square[m];
    const bool row_in = i0 + m < M;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const int n = n0 + (c & 3) + (c >> 2) * 32;
      const float s = sq + p_square[n];
      const float d = fmaf(-2.0f, acc[r][c], s);
      acc[r][c] = d;
      const bool good = d >= 0.125f * s && s > 1e-30f && s < 1e38f;
      if (row_in && j0 + n < N && !good) bad = 1;
    }
  }
  if (__syncthreads_or(bad)) {
    run_tile<true>(q, p, i0, j0, M, N, D, Qs, Ps, m0, n0, acc, qq, pp);
  }

  const bool vec_n = (N & 3) == 0;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int i = i0 + m0 + (r & 3) + (r >> 2) * 16;
    if (i < M) {
      float* o = out + (size_t)i * N;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int j = j0 + n0 + h * 32;
        if (vec_n) {
          if (j < N) {
            __stcs(reinterpret_cast<float4*>(o + j),
                   make_float4(acc[r][h * 4 + 0], acc[r][h * 4 + 1], acc[r][h * 4 + 2], acc[r][h * 4 + 3]));
          }
        } else {
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            if (j + c < N) o[j + c] = acc[r][h * 4 + c];
          }
        }
      }
    }
  }
}
