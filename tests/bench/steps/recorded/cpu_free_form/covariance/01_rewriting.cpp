// Covariance of the columns of X, which is M x N and row-major and has columns of mean zero: C = X^T * X / M,
// N x N.

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

// Packs rows k0 .. k0+depth-1 of X into panels of 32 columns; panel p starts at panels + p * 256 * 32 and holds
// its rows one after the other, with zeros for the columns beyond N.
static void pack(const float* X, float* panels, int k0, int depth, int N) {
  for (int k = 0; k < depth; ++k) {
    const float* row = X + static_cast<std::size_t>(k0 + k) * N;
    float* dst = panels + static_cast<std::size_t>(k) * 32;
    for (int j = 0; j < N; j += 32) {
      __m512 low;
      __m512 high;
      if (j + 32 <= N) {
        low = _mm512_loadu_ps(row + j);
        high = _mm512_loadu_ps(row + j + 16);
      } else {
        const int left = N - j;
        const std::uint32_t lanes = (1u << left) - 1u;
        low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes & 0xffffu), row + j);
        high = _mm512_setzero_ps();
        if (left > 16) {
          high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes >> 16), row + j + 16);
        }
      }
      _mm512_store_ps(dst, low);
      _mm512_store_ps(dst + 16, high);
      dst += 256 * 32;
    }
  }
}

// C[i..i+7][j..j+31] for one block of rows; `rows` rows and `cols` columns of the tile exist.
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

void covariance(const float* X, float* C, float* packed, int M, int N) {
  // The panels start at a multiple of 64 bytes.
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(packed);
  float* panels = packed + (((address + 63) & ~static_cast<std::uintptr_t>(63)) - address) / sizeof(float);
  const __m512 divisor = _mm512_set1_ps(static_cast<float>(M));
  for (int k0 = 0; k0 < M; k0 += 256) {
    const int depth = M - k0 < 256 ? M - k0 : 256;
    const bool first = k0 == 0;
    const bool last = k0 + depth == M;
    pack(X, panels, k0, depth, N);
    for (int j = 0; j < N; j += 32) {
      const float* b = panels + static_cast<std::size_t>(j / 32) * (256 * 32);
      const int cols = N - j < 32 ? N - j : 32;
      for (int i = 0; i < N; i += 8) {
        const float* a = panels + static_cast<std::size_t>(i / 32) * (256 * 32) + i % 32;
        const int rows = N - i < 8 ? N - i : 8;
        tile(a, b, depth, C + static_cast<std::size_t>(i) * N + j, N, rows, cols, first, last, divisor);
      }
    }
  }
}

//@ scratch packed: f32[256 * round_up(N, 32) + 16]
//@ launch covariance(X, C, packed, M, N)
