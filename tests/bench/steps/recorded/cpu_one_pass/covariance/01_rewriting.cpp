// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N.
#include <immintrin.h>
#include <algorithm>

static constexpr int DEPTH = 128;         // rows of X in a packed block
static constexpr long PANEL = DEPTH * 16;  // elements of a packed panel of 16 columns

static inline __attribute__((always_inline)) void put(float* o, __m512 sum, __mmask16 mask, bool first, bool last,
                                                      __m512 divisor) {
  if (!first) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, o), sum);
  if (last) sum = _mm512_div_ps(sum, divisor);
  if (mask == (__mmask16)0xffff) {
    _mm512_storeu_ps(o, sum);
  } else {
    _mm512_mask_storeu_ps(o, mask, sum);
  }
}

#define COV_INIT(i)                     \
  __m512 s##i##0 = _mm512_setzero_ps(); \
  __m512 s##i##1 = s##i##0;             \
  __m512 s##i##2 = s##i##0;

#define COV_STEP(i)                                           \
  {                                                           \
    const __m512 x = _mm512_set1_ps(a[k * 16 + i]);           \
    s##i##0 = _mm512_fmadd_ps(x, y0, s##i##0);                \
    if (NV > 1) s##i##1 = _mm512_fmadd_ps(x, y1, s##i##1);    \
    if (NV > 2) s##i##2 = _mm512_fmadd_ps(x, y2, s##i##2);    \
  }

#define COV_OUT(i)                                                                       \
  if (i < rows) {                                                                        \
    float* o = c + i * N;                                                                \
    put(o, s##i##0, NV == 1 ? mask : full, first, last, divisor);                        \
    if (NV > 1) put(o + 16, s##i##1, NV == 2 ? mask : full, first, last, divisor);       \
    if (NV > 2) put(o + 32, s##i##2, mask, first, last, divisor);                        \
  }

// 8 rows x NV panels of C from one packed block; the mask is for the last panel.
template <int NV>
static void tile(const float* __restrict a, const float* __restrict b, float* __restrict c, int depth, long N,
                 int rows, __mmask16 mask, bool first, bool last, float count) {
  const __mmask16 full = (__mmask16)0xffff;
  COV_INIT(0)
  COV_INIT(1)
  COV_INIT(2)
  COV_INIT(3)
  COV_INIT(4)
  COV_INIT(5)
  COV_INIT(6)
  COV_INIT(7)
#pragma GCC unroll 2
  for (long k = 0; k < depth; ++k) {
    const __m512 y0 = _mm512_loadu_ps(b + k * 16);
    __m512 y1 = y0, y2 = y0;
    if (NV > 1) y1 = _mm512_loadu_ps(b + PANEL + k * 16);
    if (NV > 2) y2 = _mm512_loadu_ps(b + 2 * PANEL + k * 16);
    COV_STEP(0)
    COV_STEP(1)
    COV_STEP(2)
    COV_STEP(3)
    COV_STEP(4)
    COV_STEP(5)
    COV_STEP(6)
    COV_STEP(7)
  }
  const __m512 divisor = _mm512_set1_ps(count);
  COV_OUT(0)
  COV_OUT(1)
  COV_OUT(2)
  COV_OUT(3)
  COV_OUT(4)
  COV_OUT(5)
  COV_OUT(6)
  COV_OUT(7)
}

// Copy up to 4 panels of `depth` rows of X, the last one filled up with zeros.
static void pack(const float* __restrict X, float* __restrict packed, int depth, long N, int panel, int end,
                 int panels, __mmask16 edge) {
  for (int k = 0; k < depth; ++k) {
    const float* row = X + k * N;
    const float* ahead = X + std::min(k + 8, depth - 1) * N;
    for (int p = panel; p < end; ++p) {
      const __mmask16 mask = p == panels - 1 ? edge : (__mmask16)0xffff;
      _mm_prefetch((const char*)(ahead + p * 16L), _MM_HINT_T0);
      _mm512_storeu_ps(packed + p * PANEL + k * 16L, _mm512_maskz_loadu_ps(mask, row + p * 16L));
    }
  }
}

// to[j][i] = from[i][j] for 16 rows i and `columns` columns j.
static void mirror(const float* from, float* to, long N, int columns, __mmask16 mask) {
  __m512 r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_maskz_loadu_ps(mask, from + i * N);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512d t0 = _mm512_castps_pd(t[4 * i]);
    const __m512d t1 = _mm512_castps_pd(t[4 * i + 1]);
    const __m512d t2 = _mm512_castps_pd(t[4 * i + 2]);
    const __m512d t3 = _mm512_castps_pd(t[4 * i + 3]);
    r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2));
    r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2));
    r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3));
    r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3));
  }
#pragma GCC unroll 4
  for (int m = 0; m < 4; ++m) {
    const __m512 u0 = _mm512_shuffle_f32x4(r[m], r[4 + m], 0x88);
    const __m512 u1 = _mm512_shuffle_f32x4(r[m], r[4 + m], 0xdd);
    const __m512 u2 = _mm512_shuffle_f32x4(r[8 + m], r[12 + m], 0x88);
    const __m512 u3 = _mm512_shuffle_f32x4(r[8 + m], r[12 + m], 0xdd);
    t[m] = _mm512_shuffle_f32x4(u0, u2, 0x88);
    t[4 + m] = _mm512_shuffle_f32x4(u1, u3, 0x88);
    t[8 + m] = _mm512_shuffle_f32x4(u0, u2, 0xdd);
    t[12 + m] = _mm512_shuffle_f32x4(u1, u3, 0xdd);
  }
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) {
    if (j < columns) _mm512_storeu_ps(to + j * N, t[j]);
  }
}

//@ scratch packed: f32[ceil_div(N, 16), 128, 16]
//@ launch covariance(X, C, packed, M, N)
void covariance(const float* X, float* C, float* packed, int M, int N) {
  const long n = N;
  const int panels = (N + 15) / 16;
  const int groups = (panels + 2) / 3;
  const int quads = (panels + 3) / 4;
  const int rest = N - (panels - 1) * 16;
  const __mmask16 edge = (__mmask16)((1u << rest) - 1u);
#pragma omp parallel
  {
    for (int k0 = 0; k0 < M; k0 += DEPTH) {
      const int depth = std::min(DEPTH, M - k0);
      const bool first = k0 == 0;
      const bool last = k0 + depth == M;
#pragma omp for schedule(static)
      for (int q = 0; q < quads; ++q) {
        pack(X + k0 * n, packed, depth, n, q * 4, std::min(q * 4 + 4, panels), panels, edge);
      }
#pragma omp for schedule(dynamic, 1)
      for (int g = 0; g < groups; ++g) {
        const int begin = (groups - 1 - g) * 3;
        const int end = std::min(begin + 3, panels);
        const __mmask16 mask = end == panels ? edge : (__mmask16)0xffff;
        for (int p = 0; p < end; ++p) {
          const int from = std::max(p, begin);
          const float* b = packed + from * PANEL;
          for (int i = p * 16; i < std::min(p * 16 + 16, N); i += 8) {
            const float* a = packed + p * PANEL + (i - p * 16);
            float* c = C + i * n + from * 16L;
            const int rows = std::min(8, N - i);
            if (end - from == 3) {
              tile<3>(a, b, c, depth, n, rows, mask, first, last, (float)M);
            } else if (end - from == 2) {
              tile<2>(a, b, c, depth, n, rows, mask, first, last, (float)M);
            } else {
              tile<1>(a, b, c, depth, n, rows, mask, first, last, (float)M);
            }
          }
        }
      }
    }
#pragma omp for schedule(dynamic, 1)
    for (int q = 0; q < panels; ++q) {
      const int j = panels - 1 - q;
      const int columns = std::min(16, N - j * 16);
      const __mmask16 mask = j == panels - 1 ? edge : (__mmask16)0xffff;
      for (int p = 0; p < j; ++p) {
        mirror(C + p * 16L * n + j * 16L, C + j * 16L * n + p * 16L, n, columns, mask);
      }
    }
  }
}
