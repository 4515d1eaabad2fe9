// Two products of one input, and one result gated by the other: one launch, tensor cores with split operands.

#define GP_BM 128
#define GP_BN 128
#define GP_BK 16
#define GP_LDA 20
#define GP_LDB 264
#define GP_STAGES 4
#define GP_STAGE_FLOATS (GP_BM * GP_LDA + GP_BK * GP_LDB)

__device__ __forceinline__ void cp_async16(unsigned dst, const float* src, bool ok) {
  int bytes = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void cp_async4(unsigned dst, const float* src, bool ok) {
  int bytes = ok ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void split_tf32(unsigned bits, unsigned& hi, unsigned& lo) {
  hi = (bits + 0x1000u) & 0xffffe000u;
  lo = __float_as_uint(__uint_as_float(bits) - __uint_as_float(hi));
}

__device__ __forceinline__ void mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                         float c0, float c1, float c2, float c3) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
        "f"(c0), "f"(c1), "f"(c2), "f"(c3));
}

__device__ __forceinline__ float gated(float g, float v) {
  return g / (1.0f + expf(-g)) * v;
}

//@ launch gated_projection<<<(ceil_div(N, 128), ceil_div(M, 128)), 256, 108544>>>(x, W, V, out, M, N, K)
__global__ void __launch_bounds__(256, 1) gated_projection(const float* __restrict__ x, const float* __restrict__ W,
                                                           const float* __restrict__ V, float* __restrict__ out,
                                                           int M, int N, int K) {
  extern __shared__ __align__(16) float smem[];
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int warp_m = warp & 1;
  const int warp_n = warp >> 1;
  const int m0 = blockIdx.y * GP_BM;
  const int n0 = blockIdx.x * GP_BN;
  const bool vec = ((K & 3) == 0) && ((N & 3) == 0);
  const unsigned sbase = (unsigned)__cvta_generic_to_shared(smem);
  const int tiles = (K + GP_BK - 1) / GP_BK;

  auto load_tile = [&](int kt) {
    const unsigned sa = sbase + (unsigned)((kt % GP_STAGES) * GP_STAGE_FLOATS) * 4u;
    const unsigned sb = sa + GP_BM * GP_LDA * 4u;
    const int k0 = kt * GP_BK;
    if (vec) {
      const int kc = (tid & 3) * 4;
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const int r = (tid >> 2) + q * 64;
        const bool ok = m0 + r < M && k0 + kc < K;
        const float* src = ok ? x + (size_t)(m0 + r) * K + k0 + kc : x;
        cp_async16(sa + (unsigned)(r * GP_LDA + kc) * 4u, src, ok);
      }
      const int c = (tid & 31) * 4;
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const int r = (tid >> 5) + q * 8;
        const bool ok = k0 + r < K && n0 + c < N;
        const size_t off = ok ? (size_t)(k0 + r) * N + n0 + c : 0;
        cp_async16(sb + (unsigned)(r * GP_LDB + c) * 4u, W + off, ok);
        cp_async16(sb + (unsigned)(r * GP_LDB + GP_BN + c) * 4u, V + off, ok);
      }
    } else {
#pragma unroll 1
      for (int e = tid; e < GP_BM * GP_BK; e += 256) {
        const int r = e / GP_BK;
        const int kc = e % GP_BK;
        const bool ok = m0 + r < M && k0 + kc < K;
        const float* src = ok ? x + (size_t)(m0 + r) * K + k0 + kc : x;
        cp_async4(sa + (unsigned)(r * GP_LDA + kc) * 4u, src, ok);
      }
#pragma unroll 1
      for (int e = tid; e < GP_BK * GP_BN; e += 256) {
        const int r = e / GP_BN;
        const int c = e % GP_BN;
        const bool ok = k0 + r < K && n0 + c < N;
        const size_t off = ok ? (size_t)(k0 + r) * N + n0 + c : 0;
        cp_async4(sb + (unsigned)(r * GP_LDB + c) * 4u, W + off, ok);
        cp_async4(sb + (unsigned)(r * GP_LDB + GP_BN + c) * 4u, V + off, ok);
      }
    }
  };

  float acc[4][8][4];
#pragma unroll
  for (int mi = 0; mi < 4; ++mi)
#pragma unroll
    for (int nj = 0; nj < 8; ++nj)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[mi][nj][e] = 0.0f;

#pragma unroll 1
  for (int s = 0; s < GP_STAGES - 1; ++s) {
    if (s < tiles) load_tile(s);
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  }

  const int g = lane >> 2;
  const int t4 = lane & 3;
  // row and column of this lane's address for ldmatrix
  const int arow = warp_m * 64 + (lane & 7) + ((lane >> 3) & 1) * 8;
  const int acol = (lane >> 4) * 4;
  const unsigned a_off = (unsigned)(arow * GP_LDA + acol) * 4u;
  const int b_off = GP_BM * GP_LDA + t4 * GP_LDB + warp_n * 32 + g;

#pragma unroll 1
  for (int kt = 0; kt < tiles; ++kt) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(GP_STAGES - 2) : "memory");
    __syncthreads();
    if (kt + GP_STAGES - 1 < tiles) load_tile(kt + GP_STAGES - 1);
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    const int stage = (kt % GP_STAGES) * GP_STAGE_FLOATS;
    const unsigned sa = sbase + (unsigned)stage * 4u + a_off;
    const float* sb = smem + stage + b_off;
#pragma unroll
    for (int ks = 0; ks < GP_BK / 8; ++ks) {
      unsigned bh[8][2], bl[8][2];
#pragma unroll
      for (int nj = 0; nj < 8; ++nj) {
        const int col = (nj & 3) * 8 + (nj >> 2) * GP_BN;
        const float b0 = sb[(ks * 8) * GP_LDB + col];
        const float b1 = sb[(ks * 8 + 4) * GP_LDB + col];
        split_tf32(__float_as_uint(b0), bh[nj][0], bl[nj][0]);
        split_tf32(__float_as_uint(b1), bh[nj][1], bl[nj][1]);
      }
#pragma unroll
      for (int mi = 0; mi < 4; ++mi) {
        unsigned r[4], ah[4], al[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(sa + (unsigned)(mi * 16 * GP_LDA + ks * 8) * 4u)
                     : "memory");
#pragma unroll
        for (int e = 0; e < 4; ++e) split_tf32(r[e], ah[e], al[e]);
        float t[8][4];
#pragma unroll
        for (int nj = 0; nj < 8; ++nj) mma_tf32(t[nj], al, bh[nj], 0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int nj = 0; nj < 8; ++nj) mma_tf32(t[nj], ah, bl[nj], t[nj][0], t[nj][1], t[nj][2], t[nj][3]);
#pragma unroll
        for (int nj = 0; nj < 8; ++nj) mma_tf32(t[nj], ah, bh[nj], t[nj][0], t[nj][1], t[nj][2], t[nj][3]);
#pragma unroll
        for (int nj = 0; nj < 8; ++nj)
#pragma unroll
          for (int e = 0; e < 4; ++e) acc[mi][nj][e] += t[nj][e];
      }
    }
  }
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");

#pragma unroll
  for (int mi = 0; mi < 4; ++mi) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = m0 + warp_m * 64 + mi * 16 + h * 8 + g;
      if (row < M) {
        float* o = out + (size_t)row * N;
#pragma unroll
        for (int nj = 0; nj < 4; ++nj) {
          const int col = n0 + warp_n * 32 + nj * 8 + t4 * 2;
          const float r0 = gated(acc[mi][nj][h * 2], acc[mi][nj + 4][h * 2]);
          const float r1 = gated(acc[mi][nj][h * 2 + 1], acc[mi][nj + 4][h * 2 + 1]);
          if (vec) {
            if (col < N) *reinterpret_cast<float2*>(o + col) = make_float2(r0, r1);
          } else {
            if (col < N) o[col] = r0;
            if (col + 1 < N) o[col + 1] = r1;
          }
        }
      }
    }
  }
}
