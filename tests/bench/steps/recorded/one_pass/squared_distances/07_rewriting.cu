// Squared distances between two sets of points, a tile of pairs for each block, on tensor cores with split operands.

#define SD_BM 128
#define SD_BN 128
#define SD_BK 16
#define SD_LD 20
#define SD_STAGES 4
#define SD_STAGE_FLOATS ((SD_BM + SD_BN) * SD_LD)

__device__ __forceinline__ void sd_cp16(unsigned dst, const float* src, bool ok) {
  int bytes = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void sd_cp4(unsigned dst, const float* src, bool ok) {
  int bytes = ok ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void sd_split(unsigned bits, unsigned& hi, unsigned& lo) {
  hi = (bits + 0x1000u) & 0xffffe000u;
  lo = __float_as_uint(__uint_as_float(bits) - __uint_as_float(hi));
}

__device__ __forceinline__ void sd_ldmatrix(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void sd_mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                       float c0, float c1, float c2, float c3) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
        "f"(c0), "f"(c1), "f"(c2), "f"(c3));
}

__device__ __forceinline__ float sd_norm(const float* row) {
  float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
  for (int e = 0; e < SD_BK; e += 4) {
    const float4 v = *reinterpret_cast<const float4*>(row + e);
    s0 = fmaf(v.x, v.x, s0);
    s1 = fmaf(v.y, v.y, s1);
    s2 = fmaf(v.z, v.z, s2);
    s3 = fmaf(v.w, v.w, s3);
  }
  return (s0 + s1) + (s2 + s3);
}

// below this the expanded form has cancelled too much
__device__ __forceinline__ float sd_limit(float both) {
  return fmaxf(0.125f * both, 1e-30f);
}

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 128, 81920>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(128, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p,
                                                            float* out, int M, int N, int D) {
  extern __shared__ __align__(16) float smem[];
  __shared__ float norm_q[SD_BM];
  __shared__ float norm_p[SD_BN];
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int warp_m = warp & 1;
  const int warp_n = warp >> 1;
  const int m0 = blockIdx.y * SD_BM;
  const int n0 = blockIdx.x * SD_BN;
  const bool vec = (D & 3) == 0;
  const unsigned sbase = (unsigned)__cvta_generic_to_shared(smem);
  const int tiles = (D + SD_BK - 1) / SD_BK;

  auto load_tile = [&](int kt) {
    const unsigned sa = sbase + (unsigned)((kt % SD_STAGES) * SD_STAGE_FLOATS) * 4u;
    const unsigned sb = sa + SD_BM * SD_LD * 4u;
    const int k0 = kt * SD_BK;
    if (vec) {
      const int kc = (tid & 3) * 4;
      const bool kok = k0 + kc < D;
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        const int r = (tid >> 2) + s * 32;
        const bool oka = kok && m0 + r < M;
        const bool okb = kok && n0 + r < N;
        sd_cp16(sa + (unsigned)(r * SD_LD + kc) * 4u, oka ? q + (size_t)(m0 + r) * D + k0 + kc : q, oka);
        sd_cp16(sb + (unsigned)(r * SD_LD + kc) * 4u, okb ? p + (size_t)(n0 + r) * D + k0 + kc : p, okb);
      }
    } else {
#pragma unroll 1
      for (int e = tid; e < SD_BM * SD_BK; e += 128) {
        const int r = e / SD_BK;
        const int kc = e % SD_BK;
        const bool kok = k0 + kc < D;
        const bool oka = kok && m0 + r < M;
        const bool okb = kok && n0 + r < N;
        sd_cp4(sa + (unsigned)(r * SD_LD + kc) * 4u, oka ? q + (size_t)(m0 + r) * D + k0 + kc : q, oka);
        sd_cp4(sb + (unsigned)(r * SD_LD + kc) * 4u, okb ? p + (size_t)(n0 + r) * D + k0 + kc : p, okb);
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
  for (int s = 0; s < SD_STAGES - 1; ++s) {
    if (s < tiles) load_tile(s);
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  }

  const int g = lane >> 2;
  const int t4 = lane & 3;
  const int arow = warp_m * 64 + (lane & 7) + ((lane >> 3) & 1) * 8;
  const int acol = (lane >> 4) * 4;
  const unsigned a_off = (unsigned)(arow * SD_LD + acol) * 4u;
  const int brow = warp_n * 64 + (lane & 7) + (lane >> 4) * 8;
  const int bcol = ((lane >> 3) & 1) * 4;
  const unsigned b_off = (unsigned)((SD_BM + brow) * SD_LD + bcol) * 4u;
  float nq = 0.0f, np = 0.0f;

#pragma unroll 1
  for (int kt = 0; kt < tiles; ++kt) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(SD_STAGES - 2) : "memory");
    __syncthreads();
    if (kt + SD_STAGES - 1 < tiles) load_tile(kt + SD_STAGES - 1);
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    const int stage = (kt % SD_STAGES) * SD_STAGE_FLOATS;
    const unsigned sa = sbase + (unsigned)stage * 4u + a_off;
    const unsigned sb = sbase + (unsigned)stage * 4u + b_off;
    nq += sd_norm(smem + stage + tid * SD_LD);
    np += sd_norm(smem + stage + (SD_BM + tid) * SD_LD);
#pragma unroll
    for (int ks = 0; ks < SD_BK / 8; ++ks) {
      unsigned bh[8][2], bl[8][2];
#pragma unroll
      for (int h = 0; h < 4; ++h) {
        unsigned r[4];
        sd_ldmatrix(r, sb + (unsigned)(h * 16 * SD_LD + ks * 8) * 4u);
        sd_split(r[0], bh[2 * h][0], bl[2 * h][0]);
        sd_split(r[1], bh[2 * h][1], bl[2 * h][1]);
        sd_split(r[2], bh[2 * h + 1][0], bl[2 * h + 1][0]);
        sd_split(r[3], bh[2 * h + 1][1], bl[2 * h + 1][1]);
      }
#pragma unroll
      for (int mi = 0; mi < 4; ++mi) {
        unsigned r[4], ah[4], al[4];
        sd_ldmatrix(r, sa + (unsigned)(mi * 16 * SD_LD + ks * 8) * 4u);
#pragma unroll
        for (int e = 0; e < 4; ++e) sd_split(r[e], ah[e], al[e]);
        float t[8][4];
#pragma unroll
        for (int nj = 0; nj < 8; ++nj) sd_mma(t[nj], al, bh[nj], 0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int nj = 0; nj < 8; ++nj) sd_mma(t[nj], ah, bl[nj], t[nj][0], t[nj][1], t[nj][2], t[nj][3]);
#pragma unroll
        for (int nj = 0; nj < 8; ++nj) sd_mma(t[nj], ah, bh[nj], t[nj][0], t[nj][1], t[nj][2], t[nj][3]);
#pragma unroll
        for (int nj = 0; nj < 8; ++nj)
#pragma unroll
          for (int e = 0; e < 4; ++e) acc[mi][nj][e] += t[nj][e];
      }
    }
  }
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  norm_q[tid] = nq;
  norm_p[tid] = np;
  __syncthreads();

  const bool even = (N & 1) == 0;
  bool cancelled = false;
#pragma unroll
  for (int mi = 0; mi < 4; ++mi) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int lr = warp_m * 64 + mi * 16 + h * 8 + g;
      const int row = m0 + lr;
      if (row < M) {
        const float a = norm_q[lr];
        float* o = out + (size_t)row * N;
#pragma unroll
        for (int nj = 0; nj < 8; ++nj) {
          const int lc = warp_n * 64 + nj * 8 + t4 * 2;
          const int col = n0 + lc;
          const float both0 = a + norm_p[lc];
          const float both1 = a + norm_p[lc + 1];
          const float d0 = fmaf(-2.0f, acc[mi][nj][h * 2], both0);
          const float d1 = fmaf(-2.0f, acc[mi][nj][h * 2 + 1], both1);
          if (col < N) cancelled = cancelled || !(d0 > sd_limit(both0));
          if (col + 1 < N) cancelled = cancelled || !(d1 > sd_limit(both1));
          if (even) {
            if (col < N) *reinterpret_cast<float2*>(o + col) = make_float2(d0, d1);
          } else {
            if (col < N) o[col] = d0;
            if (col + 1 < N) o[col + 1] = d1;
          }
        }
      }
    }
  }

  // what has cancelled (or is not finite) is computed from the differences
  if (cancelled) {
#pragma unroll 1
    for (int e = 0; e < 128; ++e) {
      const int lr = warp_m * 64 + (e >> 4) * 8 + g;
      const int lc = warp_n * 64 + ((e >> 1) & 7) * 8 + t4 * 2 + (e & 1);
      const int row = m0 + lr;
      const int col = n0 + lc;
      if (row < M && col < N) {
        const float both = norm_q[lr] + norm_p[lc];
        const float d = out[(size_t)row * N + col];
        if (!(d > sd_limit(both))) {
          const float* a = q + (size_t)row * D;
          const float* b = p + (size_t)col * D;
          float sum = 0.0f;
#pragma unroll 4
          for (int k = 0; k < D; ++k) {
            const float difference = a[k] - b[k];
            sum = fmaf(difference, difference, sum);
          }
          out[(size_t)row * N + col] = sum;
        }
      }
    }
  }
}
