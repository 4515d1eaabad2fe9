// Two products of one input, and one result gated by the other: one launch, a block for a 128 x 64 tile.

__device__ __forceinline__ void copy16(float* dst, const float* src, int bytes) {
  unsigned s = (unsigned)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(s), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy4(float* dst, const float* src, int bytes) {
  unsigned s = (unsigned)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(s), "l"(src), "r"(bytes) : "memory");
}

// four neighbouring elements of row k, from column j on; zeros outside
__device__ __forceinline__ void copy_row4(float* dst, const float* __restrict__ src, int k, int j, int K, int N, bool vec) {
  if (vec) {
    const bool ok = k < K && j < N;
    copy16(dst, ok ? src + (size_t)k * N + j : src, ok ? 16 : 0);
  } else {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const bool ok = k < K && j + c < N;
      copy4(dst + c, ok ? src + (size_t)k * N + j + c : src, ok ? 4 : 0);
    }
  }
}

__device__ __forceinline__ float4 load_x4(const float* __restrict__ x, int i, int k, int M, int K, bool vec) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (i < M) {
    const float* p = x + (size_t)i * K + k;
    if (vec) {
      if (k < K) v = __ldg(reinterpret_cast<const float4*>(p));
    } else {
      if (k < K) v.x = p[0];
      if (k + 1 < K) v.y = p[1];
      if (k + 2 < K) v.z = p[2];
      if (k + 3 < K) v.w = p[3];
    }
  }
  return v;
}

__device__ __forceinline__ float gated(float g, float v) {
  return g / (1.0f + expf(-g)) * v;
}

//@ launch gated_projection<<<(ceil_div(N, 64), ceil_div(M, 128)), 256>>>(x, W, V, out, M, N, K)
__global__ void __launch_bounds__(256, 2) gated_projection(const float* __restrict__ x, const float* __restrict__ W,
                                                           const float* __restrict__ V, float* __restrict__ out,
                                                           int M, int N, int K) {
  constexpr int BM = 128, BN = 64, BK = 16, SA = BM + 4;
  __shared__ __align__(16) float As[2][BK * SA];
  __shared__ __align__(16) float Ws[2][BK * BN];
  __shared__ __align__(16) float Vs[2][BK * BN];

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int i0 = blockIdx.y * BM;
  const int j0 = blockIdx.x * BN;
  const bool vec_k = (K & 3) == 0;
  const bool vec_n = (N & 3) == 0;

  // what this thread brings
  const int lk = (tid & 3) * 4;           // x: four neighbouring k
  const int lm = tid >> 2;                // x: rows lm and lm + 64
  const int lsw = lm ^ (lk & 8);          // swizzled column in As
  const int bk = tid >> 4;                // W, V: row of the tile
  const int bj = (tid & 15) * 4;          // W, V: four neighbouring columns

  // what this thread computes
  const int m0 = (warp >> 1) * 32 + (lane >> 3) * 4;  // rows m0..m0+3 and m0+16..m0+19
  const int n0 = (warp & 1) * 32 + (lane & 7) * 4;    // columns n0..n0+3 of both products

  float accg[8][4], accv[8][4];
#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      accg[r][c] = 0.0f;
      accv[r][c] = 0.0f;
    }
  }

  const int tiles = (K + BK - 1) / BK;

  float4 p0 = load_x4(x, i0 + lm, lk, M, K, vec_k);
  float4 p1 = load_x4(x, i0 + lm + 64, lk, M, K, vec_k);
  copy_row4(&Ws[0][bk * BN + bj], W, bk, j0 + bj, K, N, vec_n);
  copy_row4(&Vs[0][bk * BN + bj], V, bk, j0 + bj, K, N, vec_n);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  {
    float* d = &As[0][lk * SA + lsw];
    d[0 * SA] = p0.x;
    d[1 * SA] = p0.y;
    d[2 * SA] = p0.z;
    d[3 * SA] = p0.w;
    d[0 * SA + 64] = p1.x;
    d[1 * SA + 64] = p1.y;
    d[2 * SA + 64] = p1.z;
    d[3 * SA + 64] = p1.w;
  }
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  __syncthreads();

  int buf = 0;
  for (int t = 0; t < tiles; ++t) {
    const bool more = t + 1 < tiles;
    if (more) {
      const int k0 = (t + 1) * BK;
      p0 = load_x4(x, i0 + lm, k0 + lk, M, K, vec_k);
      p1 = load_x4(x, i0 + lm + 64, k0 + lk, M, K, vec_k);
      copy_row4(&Ws[buf ^ 1][bk * BN + bj], W, k0 + bk, j0 + bj, K, N, vec_n);
      copy_row4(&Vs[buf ^ 1][bk * BN + bj], V, k0 + bk, j0 + bj, K, N, vec_n);
      asm volatile("cp.async.commit_group;\n" ::: "memory");
    }

    const float* a_lo = &As[buf][m0];
    const float* a_hi = &As[buf][m0 ^ 8];
    const float* w_at = &Ws[buf][n0];
    const float* v_at = &Vs[buf][n0];
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const float* ap = (k & 8) ? a_hi : a_lo;
      const float4 a0 = *reinterpret_cast<const float4*>(ap + k * SA);
      const float4 a1 = *reinterpret_cast<const float4*>(ap + k * SA + 16);
      const float4 w4 = *reinterpret_cast<const float4*>(w_at + k * BN);
      const float4 v4 = *reinterpret_cast<const float4*>(v_at + k * BN);
      const float ar[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      const float wr[4] = {w4.x, w4.y, w4.z, w4.w};
      const float vr[4] = {v4.x, v4.y, v4.z, v4.w};
#pragma unroll
      for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          accg[r][c] = fmaf(ar[r], wr[c], accg[r][c]);
          accv[r][c] = fmaf(ar[r], vr[c], accv[r][c]);
        }
      }
    }

    if (more) {
      float* d = &As[buf ^ 1][lk * SA + lsw];
      d[0 * SA] = p0.x;
      d[1 * SA] = p0.y;
      d[2 * SA] = p0.z;
      d[3 * SA] = p0.w;
      d[0 * SA + 64] = p1.x;
      d[1 * SA + 64] = p1.y;
      d[2 * SA + 64] = p1.z;
      d[3 * SA + 64] = p1.w;
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");
      __syncthreads();
    }
    buf ^= 1;
  }

  const int j = j0 + n0;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int i = i0 + m0 + (r & 3) + (r >> 2) * 16;
    if (i < M) {
      float* o = out + (size_t)i * N + j;
      if (vec_n) {
        if (j < N) {
          float4 q;
          q.x = gated(accg[r][0], accv[r][0]);
          q.y = gated(accg[r][1], accv[r][1]);
          q.z = gated(accg[r][2], accv[r][2]);
          q.w = gated(accg[r][3], accv[r][3]);
          *reinterpret_cast<float4*>(o) = q;
        }
      } else {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          if (j + c < N) o[c] = gated(accg[r][c], accv[r][c]);
        }
      }
    }
  }
}
