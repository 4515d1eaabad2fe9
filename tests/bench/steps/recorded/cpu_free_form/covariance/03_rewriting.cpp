// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N.

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

// Packs columns j .. j+31 of `depth` rows, the first of which starts at X, into `panel`, 32 floats a row, with zeros
// for the columns that do not exist.
static void pack(const float* X, float* panel, int j, int depth, int N) {
  const float* src = X + j;
  if (j + 32 <= N) {
    for (int k = 0; k < depth; ++k) {
      _mm512_store_ps(panel, _mm512_loadu_ps(src));
      _mm512_store_ps(panel + 16, _mm512_loadu_ps(src + 16));
      src += N;
      panel += 32;
    }
  } else {
    const int cols = N - j;
    const std::uint32_t lanes = (1u << cols) - 1u;
    const __mmask16 m0 = static_cast<__mmask16>(lanes & 0xffffu);
    const __mmask16 m1 = static_cast<__mmask16>(lanes >> 16);
    for (int k = 0; k < depth; ++k) {
      _mm512_store_ps(panel, _mm512_maskz_loadu_ps(m0, src));
      _mm512_store_ps(panel + 16, _mm512_maskz_loadu_ps(m1, src + 16));
      src += N;
      panel += 32;
    }
  }
}

// 8 rows by 32 columns of C for one block of rows of X; `rows` rows and `cols` columns of the tile exist.
static inline void tile(const float* a, const float* b, int depth, float* c, int N, int rows, int cols, bool first,
                        bool last, __m512 divisor) {
  __m512 acc[8][2];
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r) {
    acc[r][0] = _mm512_setzero_ps();
    acc[r][1] = _mm512_setzero_ps();
  }
  for (int k = 0; k < depth; ++k) {
    const __m512 b0 = _mm512_load_ps(b);
    const __m512 b1 = _mm512_load_ps(b + 16);
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      const __m512 ar = _mm512_set1_ps(a[r]);
      acc[r][0] = _mm512_fmadd_ps(ar, b0, acc[r][0]);
      acc[r][1] = _mm512_fmadd_ps(ar, b1, acc[r][1]);
    }
    a += 32;
    b += 32;
  }
  const std::uint32_t lanes = cols >= 32 ? 0xffffffffu : (1u << cols) - 1u;
  const __mmask16 m0 = static_cast<__mmask16>(lanes & 0xffffu);
  const __mmask16 m1 = static_cast<__mmask16>(lanes >> 16);
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r) {
    if (r < rows) {
      float* dst = c + static_cast<std::size_t>(r) * N;
      __m512 v0 = acc[r][0];
      __m512 v1 = acc[r][1];
      if (!first) {
        v0 = _mm512_add_ps(_mm512_maskz_loadu_ps(m0, dst), v0);
        v1 = _mm512_add_ps(_mm512_maskz_loadu_ps(m1, dst + 16), v1);
      }
      if (last) {
        v0 = _mm512_div_ps(v0, divisor);
        v1 = _mm512_div_ps(v1, divisor);
      }
      _mm512_mask_storeu_ps(dst, m0, v0);
      _mm512_mask_storeu_ps(dst + 16, m1, v1);
    }
  }
}

// dst[0..7][0..7] = transpose of src[0..7][0..7], both with rows of N floats.
static inline void transpose8(const float* src, float* dst, std::size_t N) {
  const __m256 r0 = _mm256_loadu_ps(src);
  const __m256 r1 = _mm256_loadu_ps(src + N);
  const __m256 r2 = _mm256_loadu_ps(src + 2 * N);
  const __m256 r3 = _mm256_loadu_ps(src + 3 * N);
  const __m256 r4 = _mm256_loadu_ps(src + 4 * N);
  const __m256 r5 = _mm256_loadu_ps(src + 5 * N);
  const __m256 r6 = _mm256_loadu_ps(src + 6 * N);
  const __m256 r7 = _mm256_loadu_ps(src + 7 * N);
  const __m256 t0 = _mm256_unpacklo_ps(r0, r1);
  const __m256 t1 = _mm256_unpackhi_ps(r0, r1);
  const __m256 t2 = _mm256_unpacklo_ps(r2, r3);
  const __m256 t3 = _mm256_unpackhi_ps(r2, r3);
  const __m256 t4 = _mm256_unpacklo_ps(r4, r5);
  const __m256 t5 = _mm256_unpackhi_ps(r4, r5);
  const __m256 t6 = _mm256_unpacklo_ps(r6, r7);
  const __m256 t7 = _mm256_unpackhi_ps(r6, r7);
  const __m256 s0 = _mm256_shuffle_ps(t0, t2, _MM_SHUFFLE(1, 0, 1, 0));
  const __m256 s1 = _mm256_shuffle_ps(t0, t2, _MM_SHUFFLE(3, 2, 3, 2));
  const __m256 s2 = _mm256_shuffle_ps(t1, t3, _MM_SHUFFLE(1, 0, 1, 0));
  const __m256 s3 = _mm256_shuffle_ps(t1, t3, _MM_SHUFFLE(3, 2, 3, 2));
  const __m256 s4 = _mm256_shuffle_ps(t4, t6, _MM_SHUFFLE(1, 0, 1, 0));
  const __m256 s5 = _mm256_shuffle_ps(t4, t6, _MM_SHUFFLE(3, 2, 3, 2));
  const __m256 s6 = _mm256_shuffle_ps(t5, t7, _MM_SHUFFLE(1, 0, 1, 0));
  const __m256 s7 = _mm256_shuffle_ps(t5, t7, _MM_SHUFFLE(3, 2, 3, 2));
  _mm256_storeu_ps(dst, _mm256_permute2f128_ps(s0, s4, 0x20));
  _mm256_storeu_ps(dst + N, _mm256_permute2f128_ps(s1, s5, 0x20));
  _mm256_storeu_ps(dst + 2 * N, _mm256_permute2f128_ps(s2, s6, 0x20));
  _mm256_storeu_ps(dst + 3 * N, _mm256_permute2f128_ps(s3, s7, 0x20));
  _mm256_storeu_ps(dst + 4 * N, _mm256_permute2f128_ps(s0, s4, 0x31));
  _mm256_storeu_ps(dst + 5 * N, _mm256_permute2f128_ps(s1, s5, 0x31));
  _mm256_storeu_ps(dst + 6 * N, _mm256_permute2f128_ps(s2, s6, 0x31));
  _mm256_storeu_ps(dst + 7 * N, _mm256_permute2f128_ps(s3, s7, 0x31));
}

// Fills what lies left of the 32 x 32 blocks on the diagonal from what lies above them.
static void mirror(float* C, int N) {
  const std::size_t n = static_cast<std::size_t>(N);
  for (int r = 32; r < N; r += 8) {
    const int end = r / 32 * 32;
    if (r + 8 <= N) {
      for (int c = 0; c < end; c += 8) {
        transpose8(C + c * n + r, C + r * n + c, n);
      }
    } else {
      for (int row = r; row < N; ++row) {
        for (int c = 0; c < end; ++c) {
          C[row * n + c] = C[c * n + row];
        }
      }
    }
  }
}

void covariance(const float* X, float* C, int M, int N) {
  alignas(64) float left[256 * 32];
  alignas(64) float right[256 * 32];
  const __m512 divisor = _mm512_set1_ps(static_cast<float>(M));
  for (int k0 = 0; k0 < M; k0 += 256) {
    const int depth = M - k0 < 256 ? M - k0 : 256;
    const bool first = k0 == 0;
    const bool last = k0 + depth == M;
    const float* block = X + static_cast<std::size_t>(k0) * N;
    for (int j = 0; j < N; j += 32) {
      const int cols = N - j < 32 ? N - j : 32;
      pack(block, right, j, depth, N);
      for (int i0 = 0; i0 <= j; i0 += 32) {
        const float* a = right;
        if (i0 != j) {
          pack(block, left, i0, depth, N);
          a = left;
        }
        const int end = N - i0 < 32 ? N : i0 + 32;
        for (int i = i0; i < end; i += 8) {
          const int rows = end - i < 8 ? end - i : 8;
          tile(a + (i - i0), right, depth, C + static_cast<std::size_t>(i) * N + j, N, rows, cols, first, last,
               divisor);
        }
      }
    }
  }
  mirror(C, N);
}

//@ launch covariance(X, C, M, N)
