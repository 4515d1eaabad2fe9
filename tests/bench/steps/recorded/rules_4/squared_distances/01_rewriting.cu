// Squared distances: tiles of 128x128, split products on the tensor cores, norms from the staged tiles, and direct
// differences wherever the short form would cancel.

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 256, 110592>>>(q, p, out, M, N, D)

#define ROW 36
#define OPERAND (128 * ROW)
#define STAGE (2 * OPERAND)

__device__ __forceinline__ void copy16(unsigned to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void ldsm4(unsigned (&v)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(from)
               : "memory");
}

__device__ __forceinline__ void split(unsigned bits, unsigned& hi, unsigned& lo) {
  hi = (bits + 0x1000u) & 0xffffe000u;
  lo = __float_as_uint(__uint_as_float(bits) - __uint_as_float(hi)) + 0x1000u;
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void load_stage(unsigned base, const float* __restrict__ q, const float* __restrict__ p,
                                           int bm, int bn, int M, int N, int D, int k, int tid) {
  const int c = (tid & 7) * 4;
  const int first = tid >> 3;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = first + i * 32;
    copy16(base + (unsigned)(r * ROW + c) * 4u, q + (long long)min(bm + r, M - 1) * D + (k + c));
    copy16(base + (unsigned)(OPERAND + r * ROW + c) * 4u, p + (long long)min(bn + r, N - 1) * D + (k + c));
  }
}

__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p,
                                                            float* __restrict__ out, int M, int N, int D) {
  extern __shared__ __align__(128) float stages[];
  __shared__ float norms[256];
  const int tid = threadIdx.x;
  const int bm = blockIdx.y * 128;
  const int bn = blockIdx.x * 128;

  if ((D & 31) != 0) {
    for (int e = tid; e < 128 * 128; e += 256) {
      const int i = bm + (e >> 7);
      const int j = bn + (e & 127);
      if (i < M && j < N) {
        const float* a = q + (long long)i * D;
        const float* b = p + (long long)j * D;
        float sum = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float difference = a[d] - b[d];
          sum = fmaf(difference, difference, sum);
        }
        out[(long long)i * N + j] = sum;
      }
    }
    return;
  }

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wm = (warp >> 2) * 64;
  const int wn = (warp & 3) * 32;
  const unsigned shared = (unsigned)__cvta_generic_to_shared(stages);
  const unsigned a_at = shared + (unsigned)((wm + (lane & 15)) * ROW + (lane >> 4) * 4) * 4u;
  const unsigned b_at =
      shared + (unsigned)(OPERAND + (wn + (lane >> 4) * 8 + (lane & 7)) * ROW + ((lane >> 3) & 1) * 4) * 4u;

  float acc[4][4][4];
#pragma unroll
  for (int m = 0; m < 4; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int r = 0; r < 4; ++r) acc[m][n][r] = 0.0f;
  float n0 = 0.0f, n1 = 0.0f, n2 = 0.0f, n3 = 0.0f;

  const int T = D >> 5;
  load_stage(shared, q, p, bm, bn, M, N, D, 0, tid);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  if (T > 1) load_stage(shared + STAGE * 4u, q, p, bm, bn, M, N, D, 32, tid);
  asm volatile("cp.async.commit_group;\n" ::: "memory");

  int now = 0, ahead = 2;
#pragma unroll 1
  for (int t = 0; t < T; ++t) {
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    __syncthreads();
    if (t + 2 < T) load_stage(shared + (unsigned)ahead * (STAGE * 4u), q, p, bm, bn, M, N, D, (t + 2) * 32, tid);
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    const unsigned offset = (unsigned)now * (STAGE * 4u);
    const float4* own = reinterpret_cast<const float4*>(stages + now * STAGE + tid * ROW);

#pragma unroll
    for (int k = 0; k < 4; ++k) {
      unsigned bh[4][2], bl[4][2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        unsigned v[4];
        ldsm4(v, b_at + offset + (unsigned)(h * 16 * ROW + k * 8) * 4u);
        split(v[0], bh[h * 2][0], bl[h * 2][0]);
        split(v[1], bh[h * 2][1], bl[h * 2][1]);
        split(v[2], bh[h * 2 + 1][0], bl[h * 2 + 1][0]);
        split(v[3], bh[h * 2 + 1][1], bl[h * 2 + 1][1]);
      }
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        unsigned v[4], ah[4], al[4];
        ldsm4(v, a_at + offset + (unsigned)(m * 16 * ROW + k * 8) * 4u);
#pragma unroll
        for (int r = 0; r < 4; ++r) split(v[r], ah[r], al[r]);
#pragma unroll
        for (int n = 0; n < 4; ++n) mma(acc[m][n], al, bh[n][0], bh[n][1]);
#pragma unroll
        for (int n = 0; n < 4; ++n) mma(acc[m][n], ah, bl[n][0], bl[n][1]);
#pragma unroll
        for (int n = 0; n < 4; ++n) mma(acc[m][n], ah, bh[n][0], bh[n][1]);
      }
      const float4 e = own[k * 2];
      const float4 f = own[k * 2 + 1];
      n0 = fmaf(e.x, e.x, n0);
      n1 = fmaf(e.y, e.y, n1);
      n2 = fmaf(e.z, e.z, n2);
      n3 = fmaf(e.w, e.w, n3);
      n0 = fmaf(f.x, f.x, n0);
      n1 = fmaf(f.y, f.y, n1);
      n2 = fmaf(f.z, f.z, n2);
      n3 = fmaf(f.w, f.w, n3);
    }
    now = now == 2 ? 0 : now + 1;
    ahead = ahead == 2 ? 0 : ahead + 1;
  }

  norms[tid] = (n0 + n1) + (n2 + n3);
  __syncthreads();

  const int g = lane >> 2;
  const int c2 = (lane & 3) * 2;
  const bool pairs = (N & 1) == 0;
  unsigned again[2] = {0u, 0u};
#pragma unroll
  for (int m = 0; m < 4; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int li = wm + m * 16 + h * 8 + g;
      const int i = bm + li;
      const float qq = norms[li];
      if (i < M) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const int lj = wn + n * 8 + c2;
          const int j = bn + lj;
          const float s0 = qq + norms[128 + lj];
          const float s1 = qq + norms[128 + lj + 1];
          const float d0 = fmaf(-2.0f, acc[m][n][h * 2], s0);
          const float d1 = fmaf(-2.0f, acc[m][n][h * 2 + 1], s1);
          const bool good0 = d0 >= 0.1f * s0 && s0 < 1e37f && s0 > 1e-25f;
          const bool good1 = d1 >= 0.1f * s1 && s1 < 1e37f && s1 > 1e-25f;
          const int bit = (m & 1) * 16 + n * 4 + h * 2;
          if (!good0 && j < N) again[m >> 1] |= 1u << bit;
          if (!good1 && j + 1 < N) again[m >> 1] |= 2u << bit;
          float* o = out + (long long)i * N + j;
          if (pairs) {
            if (j < N) *reinterpret_cast<float2*>(o) = make_float2(d0, d1);
          } else {
            if (j < N) o[0] = d0;
            if (j + 1 < N) o[1] = d1;
          }
        }
      }
    }
  }

  // Elements whose short form would cancel: their differences are taken directly.
#pragma unroll 1
  for (int w = 0; w < 2; ++w) {
    unsigned left = w == 0 ? again[0] : again[1];
    while (left != 0u) {
      const int bit = __ffs((int)left) - 1;
      left &= left - 1u;
      const int i = bm + wm + (w * 2 + (bit >> 4)) * 16 + ((bit >> 1) & 1) * 8 + g;
      const int j = bn + wn + ((bit >> 2) & 3) * 8 + c2 + (bit & 1);
      const float4* a = reinterpret_cast<const float4*>(q + (long long)i * D);
      const float4* b = reinterpret_cast<const float4*>(p + (long long)j * D);
      float e0 = 0.0f, e1 = 0.0f, e2 = 0.0f, e3 = 0.0f;
#pragma unroll 4
      for (int d = 0; d < (D >> 2); ++d) {
        const float4 u = __ldg(a + d);
        const float4 v = __ldg(b + d);
        const float x0 = u.x - v.x, x1 = u.y - v.y, x2 = u.z - v.z, x3 = u.w - v.w;
        e0 = fmaf(x0, x0, e0);
        e1 = fmaf(x1, x1, e1);
        e2 = fmaf(x2, x2, e2);
        e3 = fmaf(x3, x3, e3);
      }
      out[(long long)i * N + j] = (e0 + e1) + (e2 + e3);
    }
  }
}
