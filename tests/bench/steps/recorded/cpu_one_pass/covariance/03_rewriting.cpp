// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N.
//
// `packed` holds X in panels of 32 columns (M x 32 each, missing columns are zero), from its first address that is a
// multiple of 64 on.

void covariance(const float* X, float* packed, float* C, int M, int N) {
  typedef float v16 __attribute__((vector_size(64)));
  typedef float v16u __attribute__((vector_size(64), aligned(4), may_alias));

  float* P = packed + ((64 - ((unsigned long)packed & 63)) & 63) / 4;
  const int panels = (N + 31) / 32;

  // Pack, 32 rows at a time.
  for (int k0 = 0; k0 < M; k0 += 32) {
    const int kn = M - k0 < 32 ? M - k0 : 32;
    for (int p = 0; p < panels; ++p) {
      const int j0 = p * 32;
      const int nj = N - j0 < 32 ? N - j0 : 32;
      const float* src = X + (long)k0 * N + j0;
      float* dst = P + ((long)p * M + k0) * 32;
      if (nj == 32) {
        for (int k = 0; k < kn; ++k) {
          const v16 x0 = *(const v16u*)(src);
          const v16 x1 = *(const v16u*)(src + 16);
          *(v16u*)(dst) = x0;
          *(v16u*)(dst + 16) = x1;
          src += N;
          dst += 32;
        }
      } else {
        for (int k = 0; k < kn; ++k) {
          for (int j = 0; j < nj; ++j) {
            dst[j] = src[j];
          }
          for (int j = nj; j < 32; ++j) {
            dst[j] = 0.0f;
          }
          src += N;
          dst += 32;
        }
      }
    }
  }

  const float count = (float)M;
  alignas(64) float block[32 * 32];

  for (int jp = 0; jp < panels; ++jp) {
    const int j0 = jp * 32;
    const int nj = N - j0 < 32 ? N - j0 : 32;
    for (int ip = 0; ip <= jp; ++ip) {
      const int i0 = ip * 32;
      const int ni = N - i0 < 32 ? N - i0 : 32;

      for (int e = 0; e < 32 * 32; ++e) {
        block[e] = 0.0f;
      }

      for (int k0 = 0; k0 < M; k0 += 128) {
        const int kn = M - k0 < 128 ? M - k0 : 128;
        const float* A = P + ((long)ip * M + k0) * 32;
        const float* B = P + ((long)jp * M + k0) * 32;
        for (int ii = 0; ii < 32; ii += 8) {
          float* t = block + ii * 32;
          const float* a = A + ii;
          const float* b = B;
          // What comes next of the left panel, a quarter in each of the four passes.
          const float* ahead = A + (long)kn * 32 + (long)ii * kn;

          v16 c00 = *(const v16u*)(t + 0 * 32), c01 = *(const v16u*)(t + 0 * 32 + 16);
          v16 c10 = *(const v16u*)(t + 1 * 32), c11 = *(const v16u*)(t + 1 * 32 + 16);
          v16 c20 = *(const v16u*)(t + 2 * 32), c21 = *(const v16u*)(t + 2 * 32 + 16);
          v16 c30 = *(const v16u*)(t + 3 * 32), c31 = *(const v16u*)(t + 3 * 32 + 16);
          v16 c40 = *(const v16u*)(t + 4 * 32), c41 = *(const v16u*)(t + 4 * 32 + 16);
          v16 c50 = *(const v16u*)(t + 5 * 32), c51 = *(const v16u*)(t + 5 * 32 + 16);
          v16 c60 = *(const v16u*)(t + 6 * 32), c61 = *(const v16u*)(t + 6 * 32 + 16);
          v16 c70 = *(const v16u*)(t + 7 * 32), c71 = *(const v16u*)(t + 7 * 32 + 16);

          for (int k = 0; k < kn; ++k) {
            __builtin_prefetch(ahead, 0, 2);
            const v16 b0 = *(const v16u*)(b);
            const v16 b1 = *(const v16u*)(b + 16);
            c00 += a[0] * b0;
            c01 += a[0] * b1;
            c10 += a[1] * b0;
            c11 += a[1] * b1;
            c20 += a[2] * b0;
            c21 += a[2] * b1;
            c30 += a[3] * b0;
            c31 += a[3] * b1;
            c40 += a[4] * b0;
            c41 += a[4] * b1;
            c50 += a[5] * b0;
            c51 += a[5] * b1;
            c60 += a[6] * b0;
            c61 += a[6] * b1;
            c70 += a[7] * b0;
            c71 += a[7] * b1;
            a += 32;
            b += 32;
            ahead += 8;
          }

          *(v16u*)(t + 0 * 32) = c00;
          *(v16u*)(t + 0 * 32 + 16) = c01;
          *(v16u*)(t + 1 * 32) = c10;
          *(v16u*)(t + 1 * 32 + 16) = c11;
          *(v16u*)(t + 2 * 32) = c20;
          *(v16u*)(t + 2 * 32 + 16) = c21;
          *(v16u*)(t + 3 * 32) = c30;
          *(v16u*)(t + 3 * 32 + 16) = c31;
          *(v16u*)(t + 4 * 32) = c40;
          *(v16u*)(t + 4 * 32 + 16) = c41;
          *(v16u*)(t + 5 * 32) = c50;
          *(v16u*)(t + 5 * 32 + 16) = c51;
          *(v16u*)(t + 6 * 32) = c60;
          *(v16u*)(t + 6 * 32 + 16) = c61;
          *(v16u*)(t + 7 * 32) = c70;
          *(v16u*)(t + 7 * 32 + 16) = c71;
        }
      }

      for (int e = 0; e < 32 * 32; ++e) {
        block[e] = block[e] / count;
      }
      for (int i = 0; i < ni; ++i) {
        float* row = C + (long)(i0 + i) * N + j0;
        for (int j = 0; j < nj; ++j) {
          row[j] = block[i * 32 + j];
        }
      }
      if (ip != jp) {
        for (int j = 0; j < nj; ++j) {
          float* row = C + (long)(j0 + j) * N + i0;
          for (int i = 0; i < ni; ++i) {
            row[i] = block[i * 32 + j];
          }
        }
      }
    }
  }
}

//@ scratch packed: f32[ceil_div(N, 32) * 32 * M + 16]
//@ launch covariance(X, packed, C, M, N)
