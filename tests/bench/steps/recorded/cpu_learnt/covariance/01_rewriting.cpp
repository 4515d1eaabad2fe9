#include <algorithm>
#include <cstdint>
#include <cstring>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N. C is symmetric: only tiles with row panel <= column panel are computed, the others are their transposes.

//@ scratch packs: f32[ceil_div(N, 32) * 6656 + 16]
//@ scratch sums: f32[ceil_div(N, 32) * ceil_div(N, 32) * 512 + ceil_div(N, 32) * 512 + 16]
//@ launch covariance(X, packs, sums, C, M, N)

#ifdef __AVX512F__
typedef __m512 vec16;
static inline vec16 v_load(const float* p) { return _mm512_loadu_ps(p); }
static inline void v_store(float* p, vec16 v) { _mm512_storeu_ps(p, v); }
static inline vec16 v_splat(float s) { return _mm512_set1_ps(s); }
static inline vec16 v_fma(vec16 a, vec16 b, vec16 c) { return _mm512_fmadd_ps(a, b, c); }
static inline vec16 v_add(vec16 a, vec16 b) { return _mm512_add_ps(a, b); }
static inline vec16 v_mul(vec16 a, vec16 b) { return _mm512_mul_ps(a, b); }
#else
typedef float vec16 __attribute__((vector_size(64)));
static inline vec16 v_load(const float* p) {
  vec16 v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
static inline void v_store(float* p, vec16 v) { std::memcpy(p, &v, sizeof(v)); }
static inline vec16 v_splat(float s) {
  vec16 v = {s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s};
  return v;
}
static inline vec16 v_fma(vec16 a, vec16 b, vec16 c) { return c + a * b; }
static inline vec16 v_add(vec16 a, vec16 b) { return a + b; }
static inline vec16 v_mul(vec16 a, vec16 b) { return a * b; }
#endif

// 8 rows x 32 columns: to = (from + sum over k of a[k][0..7] * b[k][0..31]) * scale; all rows have stride 32.
static void tile_8x32(const float* a, const float* b, int kc, const float* from, float* to, float scale) {
  vec16 c00 = v_splat(0.0f), c01 = c00, c10 = c00, c11 = c00, c20 = c00, c21 = c00, c30 = c00, c31 = c00;
  vec16 c40 = c00, c41 = c00, c50 = c00, c51 = c00, c60 = c00, c61 = c00, c70 = c00, c71 = c00;
  if (from) {
    for (int i = 0; i < 16; ++i) __builtin_prefetch(from + i * 16);
  }
#define COV_STEP(i)                 \
  {                                 \
    const vec16 x = v_splat(a[i]);  \
    c##i##0 = v_fma(x, b0, c##i##0); \
    c##i##1 = v_fma(x, b1, c##i##1); \
  }
#pragma GCC unroll 2
  for (int k = 0; k < kc; ++k) {
    const vec16 b0 = v_load(b);
    const vec16 b1 = v_load(b + 16);
    COV_STEP(0)
    COV_STEP(1)
    COV_STEP(2)
    COV_STEP(3)
    COV_STEP(4)
    COV_STEP(5)
    COV_STEP(6)
    COV_STEP(7)
    a += 32;
    b += 32;
  }
#undef COV_STEP
  if (from) {
#define COV_ADD(i)                                    \
  c##i##0 = v_add(c##i##0, v_load(from + i * 32));     \
  c##i##1 = v_add(c##i##1, v_load(from + i * 32 + 16));
    COV_ADD(0)
    COV_ADD(1)
    COV_ADD(2)
    COV_ADD(3)
    COV_ADD(4)
    COV_ADD(5)
    COV_ADD(6)
    COV_ADD(7)
#undef COV_ADD
  }
  const vec16 s = v_splat(scale);
#define COV_OUT(i)                              \
  v_store(to + i * 32, v_mul(c##i##0, s));      \
  v_store(to + i * 32 + 16, v_mul(c##i##1, s));
  COV_OUT(0)
  COV_OUT(1)
  COV_OUT(2)
  COV_OUT(3)
  COV_OUT(4)
  COV_OUT(5)
  COV_OUT(6)
  COV_OUT(7)
#undef COV_OUT
}

// 16 x 16 on the diagonal: rows and columns are the same 16 columns of X.
static void tile_16x16(const float* a, int kc, const float* from, float* to, float scale) {
  vec16 c0 = v_splat(0.0f), c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0, c6 = c0, c7 = c0;
  vec16 c8 = c0, c9 = c0, c10 = c0, c11 = c0, c12 = c0, c13 = c0, c14 = c0, c15 = c0;
  if (from) {
    for (int i = 0; i < 16; ++i) __builtin_prefetch(from + i * 32);
  }
#define COV_ALL(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
#define COV_STEP(i) c##i = v_fma(v_splat(a[i]), b0, c##i);
  for (int k = 0; k < kc; ++k) {
    const vec16 b0 = v_load(a);
    COV_ALL(COV_STEP)
    a += 32;
  }
#undef COV_STEP
  if (from) {
#define COV_ADD(i) c##i = v_add(c##i, v_load(from + i * 32));
    COV_ALL(COV_ADD)
#undef COV_ADD
  }
  const vec16 s = v_splat(scale);
#define COV_OUT(i) v_store(to + i * 32, v_mul(c##i, s));
  COV_ALL(COV_OUT)
#undef COV_OUT
#undef COV_ALL
}

// Writes a 16 x 16 part of a tile (stride 32) to C at (r0, c0) and, with mirror, its transpose at (c0, r0).
static void emit_16x16(const float* t, float* C, int N, int r0, int c0, bool mirror) {
#ifdef __AVX512F__
  if (r0 + 16 <= N && c0 + 16 <= N) {
    float* direct = C + (long)r0 * N + c0;
    if (!mirror) {
      for (int i = 0; i < 16; ++i) _mm512_storeu_ps(direct + (long)i * N, _mm512_loadu_ps(t + i * 32));
      return;
    }
    float* other = C + (long)c0 * N + r0;
    __m512 u[16];
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      const __m512 x0 = _mm512_loadu_ps(t + (4 * g + 0) * 32);
      const __m512 x1 = _mm512_loadu_ps(t + (4 * g + 1) * 32);
      const __m512 x2 = _mm512_loadu_ps(t + (4 * g + 2) * 32);
      const __m512 x3 = _mm512_loadu_ps(t + (4 * g + 3) * 32);
      _mm512_storeu_ps(direct + (long)(4 * g + 0) * N, x0);
      _mm512_storeu_ps(direct + (long)(4 * g + 1) * N, x1);
      _mm512_storeu_ps(direct + (long)(4 * g + 2) * N, x2);
      _mm512_storeu_ps(direct + (long)(4 * g + 3) * N, x3);
      const __m512d lo0 = _mm512_castps_pd(_mm512_unpacklo_ps(x0, x1));
      const __m512d hi0 = _mm512_castps_pd(_mm512_unpackhi_ps(x0, x1));
      const __m512d lo1 = _mm512_castps_pd(_mm512_unpacklo_ps(x2, x3));
      const __m512d hi1 = _mm512_castps_pd(_mm512_unpackhi_ps(x2, x3));
      u[4 * g + 0] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo0, lo1));
      u[4 * g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo0, lo1));
      u[4 * g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(hi0, hi1));
      u[4 * g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(hi0, hi1));
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const __m512 p = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x44);
      const __m512 q = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xEE);
      const __m512 r = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x44);
      const __m512 s = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xEE);
      _mm512_storeu_ps(other + (long)(c + 0) * N, _mm512_shuffle_f32x4(p, r, 0x88));
      _mm512_storeu_ps(other + (long)(c + 4) * N, _mm512_shuffle_f32x4(p, r, 0xDD));
      _mm512_storeu_ps(other + (long)(c + 8) * N, _mm512_shuffle_f32x4(q, s, 0x88));
      _mm512_storeu_ps(other + (long)(c + 12) * N, _mm512_shuffle_f32x4(q, s, 0xDD));
    }
    return;
  }
#endif
  const int rows = std::min(16, N - r0);
  const int cols = std::min(16, N - c0);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) {
      const float value = t[r * 32 + c];
      C[(long)(r0 + r) * N + c0 + c] = value;
      if (mirror) C[(long)(c0 + c) * N + r0 + r] = value;
    }
  }
}

void covariance(const float* X, float* packs, float* sums, float* C, int M, int N) {
  const int KC = 208;               // rows of X in one block: a panel of 26 KiB stays in L1, the block in L2
  const long PANEL = (long)KC * 32;  // 6656 floats
  float* const pack = (float*)(((std::uintptr_t)packs + 63) & ~(std::uintptr_t)63);
  float* const acc = (float*)(((std::uintptr_t)sums + 63) & ~(std::uintptr_t)63);
  const int panels = (N + 31) / 32;
  const int full = N / 32;
  const int tiles = panels * (panels + 1) / 2;
  const int blocks = (M + KC - 1) / KC;
  const float inverse = 1.0f / (float)M;
#pragma omp parallel
  {
    alignas(64) float tile[32 * 32];
    for (int block = 0; block < blocks; ++block) {
      const int k0 = block * KC;
      const int kc = std::min(KC, M - k0);
      const bool last = block + 1 == blocks;
      const float scale = last ? inverse : 1.0f;

#pragma omp for schedule(static)
      for (int k = 0; k < kc; ++k) {
        const float* row = X + (long)(k0 + k) * N;
        float* out = pack + (long)k * 32;
        for (int p = 0; p < full; ++p) {
          const vec16 x0 = v_load(row + p * 32);
          const vec16 x1 = v_load(row + p * 32 + 16);
          v_store(out + p * PANEL, x0);
          v_store(out + p * PANEL + 16, x1);
        }
        if (full < panels) {
          const int rest = N - full * 32;
          float* tail = out + full * PANEL;
          for (int c = 0; c < rest; ++c) tail[c] = row[full * 32 + c];
          for (int c = rest; c < 32; ++c) tail[c] = 0.0f;
        }
      }

#pragma omp for schedule(static)
      for (int t = 0; t < tiles; ++t) {
        int J = 0;
        while ((J + 1) * (J + 2) / 2 <= t) ++J;
        const int I = t - J * (J + 1) / 2;
        const float* a = pack + I * PANEL;
        const float* b = pack + J * PANEL;
        float* sum = acc + (long)t * 1024;
        const float* from = block > 0 ? sum : nullptr;
        float* to = last ? tile : sum;
        tile_8x32(a, b, kc, from, to, scale);
        tile_8x32(a + 8, b, kc, from ? from + 8 * 32 : nullptr, to + 8 * 32, scale);
        if (I == J) {
          tile_16x16(a + 16, kc, from ? from + 16 * 32 + 16 : nullptr, to + 16 * 32 + 16, scale);
        } else {
          tile_8x32(a + 16, b, kc, from ? from + 16 * 32 : nullptr, to + 16 * 32, scale);
          tile_8x32(a + 24, b, kc, from ? from + 24 * 32 : nullptr, to + 24 * 32, scale);
        }
        if (last) {
          const int i0 = I * 32;
          const int j0 = J * 32;
          if (I == J) {
            emit_16x16(tile, C, N, i0, j0, false);
            emit_16x16(tile + 16, C, N, i0, j0 + 16, true);
            emit_16x16(tile + 16 * 32 + 16, C, N, i0 + 16, j0 + 16, false);
          } else {
            emit_16x16(tile, C, N, i0, j0, true);
            emit_16x16(tile + 16 * 32, C, N, i0 + 16, j0, true);
            emit_16x16(tile + 16, C, N, i0, j0 + 16, true);
            emit_16x16(tile + 16 * 32 + 16, C, N, i0 + 16, j0 + 16, true);
          }
        }
      }
    }
  }
}
