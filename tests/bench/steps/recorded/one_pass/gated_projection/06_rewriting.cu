// Two products of one input, and one result gated by the other: one launch, register tiles of both products.

#define GP_BM 128
#define GP_BN 64
#define GP_BK 16
#define GP_LDA 132

struct GpTiles {
  float a[2][GP_BK][GP_LDA];
  float b[2][GP_BK][2 * GP_BN];
};

__device__ __forceinline__ void gp_copy16(float* dst, const float* src) {
  unsigned d = (unsigned)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(d), "l"(src) : "memory");
}

template <bool FULL>
__device__ __forceinline__ float4 gp_load(const float* p, int row, int col, int rows, int cols) {
  if (FULL) {
    return *reinterpret_cast<const float4*>(p + (size_t)row * cols + col);
  }
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row < rows) {
    const float* q = p + (size_t)row * cols;
    if (col < cols) v.x = q[col];
    if (col + 1 < cols) v.y = q[col + 1];
    if (col + 2 < cols) v.z = q[col + 2];
    if (col + 3 < cols) v.w = q[col + 3];
  }
  return v;
}

template <bool FULL>
__device__ __forceinline__ void gp_load_b(float* dst, const float* p, int row, int col, int rows, int cols) {
  if (FULL) {
    gp_copy16(dst, p + (size_t)row * cols + col);
  } else {
    *reinterpret_cast<float4*>(dst) = gp_load<false>(p, row, col, rows, cols);
  }
}

__device__ __forceinline__ float gp_gate(float g, float v) {
  return g / (1.0f + expf(-g)) * v;
}

template <bool FULL>
__device__ __forceinline__ void gp_block(GpTiles& s, const float* x, const float* W, const float* V, float* out, int M, int N, int K) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int tx = (lane >> 1) & 7;
  const int ty = ((lane >> 4) << 1) | (lane & 1);
  const int rm = (warp >> 1) * 32 + ty * 4;
  const int cn = (warp & 1) * 32 + tx * 4;
  const int m0 = blockIdx.y * GP_BM;
  const int n0 = blockIdx.x * GP_BN;

  const int arow = tid >> 2;
  const int acol = (tid & 3) * 4;
  const int brow = tid >> 4;
  const int bcol = (tid & 15) * 4;

  float g[8][4], v[8][4];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      g[i][j] = 0.0f;
      v[i][j] = 0.0f;
    }
  }

  float4 a0 = gp_load<FULL>(x, m0 + arow, acol, M, K);
  float4 a1 = gp_load<FULL>(x, m0 + arow + 64, acol, M, K);
  gp_load_b<FULL>(&s.b[0][brow][bcol], W, brow, n0 + bcol, K, N);
  gp_load_b<FULL>(&s.b[0][brow][GP_BN + bcol], V, brow, n0 + bcol, K, N);
  s.a[0][acol + 0][arow] = a0.x;
  s.a[0][acol + 1][arow] = a0.y;
  s.a[0][acol + 2][arow] = a0.z;
  s.a[0][acol + 3][arow] = a0.w;
  s.a[0][acol + 0][arow + 64] = a1.x;
  s.a[0][acol + 1][arow + 64] = a1.y;
  s.a[0][acol + 2][arow + 64] = a1.z;
  s.a[0][acol + 3][arow + 64] = a1.w;
  asm volatile("cp.async.wait_all;\n" ::: "memory");
  __syncthreads();

  int buf = 0;
  for (int k0 = 0; k0 < K; k0 += GP_BK) {
    const int kn = k0 + GP_BK;
    const bool more = kn < K;
    if (more) {
      gp_load_b<FULL>(&s.b[buf ^ 1][brow][bcol], W, kn + brow, n0 + bcol, K, N);
      gp_load_b<FULL>(&s.b[buf ^ 1][brow][GP_BN + bcol], V, kn + brow, n0 + bcol, K, N);
      a0 = gp_load<FULL>(x, m0 + arow, kn + acol, M, K);
      a1 = gp_load<FULL>(x, m0 + arow + 64, kn + acol, M, K);
    }

    const float* as = &s.a[buf][0][rm];
    const float* bs = &s.b[buf][0][cn];
#pragma unroll
    for (int k = 0; k < GP_BK; ++k) {
      const float4 p0 = *reinterpret_cast<const float4*>(as + k * GP_LDA);
      const float4 p1 = *reinterpret_cast<const float4*>(as + k * GP_LDA + 16);
      const float4 q0 = *reinterpret_cast<const float4*>(bs + k * 2 * GP_BN);
      const float4 q1 = *reinterpret_cast<const float4*>(bs + k * 2 * GP_BN + GP_BN);
      const float p[8] = {p0.x, p0.y, p0.z, p0.w, p1.x, p1.y, p1.z, p1.w};
      const float qw[4] = {q0.x, q0.y, q0.z, q0.w};
      const float qv[4] = {q1.x, q1.y, q1.z, q1.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          g[i][j] = fmaf(p[i], qw[j], g[i][j]);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          v[i][j] = fmaf(p[i], qv[j], v[i][j]);
        }
      }
    }

    if (more) {
      const int nb = buf ^ 1;
      s.a[nb][acol + 0][arow] = a0.x;
      s.a[nb][acol + 1][arow] = a0.y;
      s.a[nb][acol + 2][arow] = a0.z;
      s.a[nb][acol + 3][arow] = a0.w;
      s.a[nb][acol + 0][arow + 64] = a1.x;
      s.a[nb][acol + 1][arow + 64] = a1.y;
      s.a[nb][acol + 2][arow + 64] = a1.z;
      s.a[nb][acol + 3][arow + 64] = a1.w;
      asm volatile("cp.async.wait_all;\n" ::: "memory");
      __syncthreads();
    }
    buf ^= 1;
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = m0 + rm + (i & 3) + (i >> 2) * 16;
    const int col = n0 + cn;
    if (FULL) {
      float4 r;
      r.x = gp_gate(g[i][0], v[i][0]);
      r.y = gp_gate(g[i][1], v[i][1]);
      r.z = gp_gate(g[i][2], v[i][2]);
      r.w = gp_gate(g[i][3], v[i][3]);
      *reinterpret_cast<float4*>(out + (size_t)row * N + col) = r;
    } else if (row < M) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (col + j < N) {
          out[(size_t)row * N + col + j] = gp_gate(g[i][j], v[i][j]);
        }
      }
    }
  }
}

//@ launch gated_projection<<<(ceil_div(N, 64), ceil_div(M, 128)), 256>>>(x, W, V, out, M, N, K)
__global__ void __launch_bounds__(256, 2) gated_projection(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V, float* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(16) GpTiles s;
  const bool full = (N & 3) == 0 && K % GP_BK == 0 && ((int)blockIdx.y + 1) * GP_BM <= M && ((int)blockIdx.x + 1) * GP_BN <= N;
  if (full) {
    gp_block<true>(s, x, W, V, out, M, N, K);
  } else {
    gp_block<false>(s, x, W, V, out, M, N, K);
  }
}
