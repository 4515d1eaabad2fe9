// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N.

#include <immintrin.h>

// The 16 columns of C that begin at column n, as a mask of those that exist.
static inline __mmask16 column_mask(int n, int N) {
  const int left = N - n;
  if (left >= 16) return (__mmask16)0xffffu;
  if (left <= 0) return (__mmask16)0;
  return (__mmask16)((1u << left) - 1u);
}

// One tile of C, 8 rows by 32 columns, over one block of k.
static inline void covariance_tile(const float* __restrict__ a, const float* __restrict__ b0,
                                   const float* __restrict__ b1, int kc, float* __restrict__ c, long ldc, int rows,
                                   __mmask16 m0, __mmask16 m1, bool first, bool last, __m512 divisor) {
  if (!first) {
    for (int r = 0; r < rows; ++r) {
      _mm_prefetch((const char*)(c + r * ldc), _MM_HINT_T0);
      _mm_prefetch((const char*)(c + r * ldc + 16), _MM_HINT_T0);
    }
  }
  __m512 s00 = _mm512_setzero_ps(), s01 = _mm512_setzero_ps();
  __m512 s10 = _mm512_setzero_ps(), s11 = _mm512_setzero_ps();
  __m512 s20 = _mm512_setzero_ps(), s21 = _mm512_setzero_ps();
  __m512 s30 = _mm512_setzero_ps(), s31 = _mm512_setzero_ps();
  __m512 s40 = _mm512_setzero_ps(), s41 = _mm512_setzero_ps();
  __m512 s50 = _mm512_setzero_ps(), s51 = _mm512_setzero_ps();
  __m512 s60 = _mm512_setzero_ps(), s61 = _mm512_setzero_ps();
  __m512 s70 = _mm512_setzero_ps(), s71 = _mm512_setzero_ps();
  for (int k = 0; k < kc; ++k) {
    const __m512 x0 = _mm512_loadu_ps(b0);
    const __m512 x1 = _mm512_loadu_ps(b1);
    __m512 v;
    v = _mm512_set1_ps(a[0]);
    s00 = _mm512_fmadd_ps(v, x0, s00);
    s01 = _mm512_fmadd_ps(v, x1, s01);
    v = _mm512_set1_ps(a[1]);
    s10 = _mm512_fmadd_ps(v, x0, s10);
    s11 = _mm512_fmadd_ps(v, x1, s11);
    v = _mm512_set1_ps(a[2]);
    s20 = _mm512_fmadd_ps(v, x0, s20);
    s21 = _mm512_fmadd_ps(v, x1, s21);
    v = _mm512_set1_ps(a[3]);
    s30 = _mm512_fmadd_ps(v, x0, s30);
    s31 = _mm512_fmadd_ps(v, x1, s31);
    v = _mm512_set1_ps(a[4]);
    s40 = _mm512_fmadd_ps(v, x0, s40);
    s41 = _mm512_fmadd_ps(v, x1, s41);
    v = _mm512_set1_ps(a[5]);
    s50 = _mm512_fmadd_ps(v, x0, s50);
    s51 = _mm512_fmadd_ps(v, x1, s51);
    v = _mm512_set1_ps(a[6]);
    s60 = _mm512_fmadd_ps(v, x0, s60);
    s61 = _mm512_fmadd_ps(v, x1, s61);
    v = _mm512_set1_ps(a[7]);
    s70 = _mm512_fmadd_ps(v, x0, s70);
    s71 = _mm512_fmadd_ps(v, x1, s71);
    a += 16;
    b0 += 16;
    b1 += 16;
  }
#define COVARIANCE_PUT(r, u, w)                                  \
  if (r < rows) {                                                \
    float* p = c + r * ldc;                                      \
    if (!first) {                                                \
      u = _mm512_add_ps(_mm512_maskz_loadu_ps(m0, p), u);        \
      w = _mm512_add_ps(_mm512_maskz_loadu_ps(m1, p + 16), w);   \
    }                                                            \
    if (last) {                                                  \
      u = _mm512_div_ps(u, divisor);                             \
      w = _mm512_div_ps(w, divisor);                             \
    }                                                            \
    _mm512_mask_storeu_ps(p, m0, u);                             \
    _mm512_mask_storeu_ps(p + 16, m1, w);                        \
  }
  COVARIANCE_PUT(0, s00, s01)
  COVARIANCE_PUT(1, s10, s11)
  COVARIANCE_PUT(2, s20, s21)
  COVARIANCE_PUT(3, s30, s31)
  COVARIANCE_PUT(4, s40, s41)
  COVARIANCE_PUT(5, s50, s51)
  COVARIANCE_PUT(6, s60, s61)
  COVARIANCE_PUT(7, s70, s71)
#undef COVARIANCE_PUT
}

void covariance(const float* X, float* C, float* packed, int M, int N) {
  const int KC = 192;
  const long ld = N;
  const int panels = (N + 31) / 32 * 2;
  const int blocks = (M + KC - 1) / KC;
  const int step = (M + blocks - 1) / blocks;
  const __m512 divisor = _mm512_set1_ps((float)M);
  float* pk = (float*)(((unsigned long long)packed + 63ull) & ~63ull);

  for (int k0 = 0; k0 < M; k0 += step) {
    const int kc = M - k0 < step ? M - k0 : step;
    const bool first = k0 == 0;
    const bool last = k0 + kc >= M;
    const long panel = (long)kc * 16;

    // Pack rows k0 .. k0 + kc - 1 of X into panels of 16 columns, with zeros behind the last column.
    const int full = N / 16;
    for (int k = 0; k < kc; ++k) {
      const float* row = X + (long)(k0 + k) * ld;
      float* to = pk + (long)k * 16;
      for (int p = 0; p < full; ++p) {
        _mm512_storeu_ps(to + p * panel, _mm512_loadu_ps(row + p * 16));
      }
      for (int p = full; p < panels; ++p) {
        const __mmask16 m = column_mask(p * 16, N);
        const __m512 v = m ? _mm512_maskz_loadu_ps(m, row + p * 16) : _mm512_setzero_ps();
        _mm512_storeu_ps(to + p * panel, v);
      }
    }

    // The tiles that hold elements on or above the diagonal.
    for (int j = 0; j < N; j += 32) {
      const float* b0 = pk + (long)(j / 16) * panel;
      const float* b1 = b0 + panel;
      const __mmask16 m0 = column_mask(j, N);
      const __mmask16 m1 = column_mask(j + 16, N);
      const int iend = j + 32 < N ? j + 32 : N;
      for (int i = 0; i < iend; i += 8) {
        const float* a = pk + (long)(i / 16) * panel + (i & 8);
        const int rows = N - i < 8 ? N - i : 8;
        covariance_tile(a, b0, b1, kc, C + (long)i * ld + j, ld, rows, m0, m1, first, last, divisor);
      }
    }
  }

  // Mirror the blocks above the diagonal blocks of 32 x 32 to those below.
  for (int j0 = 0; j0 < N; j0 += 16) {
    const int jend = j0 + 16 < N ? j0 + 16 : N;
    const int limit = j0 / 32 * 32;
    for (int i0 = 0; i0 < limit; i0 += 16) {
      int j = j0;
      for (; j + 3 < jend; j += 4) {
        for (int i = i0; i < i0 + 16; i += 4) {
          const float* from = C + (long)i * ld + j;
          float* to = C + (long)j * ld + i;
          __m128 r0 = _mm_loadu_ps(from);
          __m128 r1 = _mm_loadu_ps(from + ld);
          __m128 r2 = _mm_loadu_ps(from + 2 * ld);
          __m128 r3 = _mm_loadu_ps(from + 3 * ld);
          _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
          _mm_storeu_ps(to, r0);
          _mm_storeu_ps(to + ld, r1);
          _mm_storeu_ps(to + 2 * ld, r2);
          _mm_storeu_ps(to + 3 * ld, r3);
        }
      }
      for (; j < jend; ++j) {
        for (int i = i0; i < i0 + 16; ++i) {
          C[(long)j * ld + i] = C[(long)i * ld + j];
        }
      }
    }
  }
}

//@ scratch packed: f32[192 * round_up(N, 32) + 16]
//@ launch covariance(X, C, packed, M, N)
