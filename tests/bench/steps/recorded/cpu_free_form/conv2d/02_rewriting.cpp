// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).

#include <cstddef>
#include <immintrin.h>

// One tap of the 3 x 3 tile: 64 inputs from `row` + s against weight number k of the four filters.
#define CONV_TAP(row, s, k)                              \
  {                                                      \
    const __m512 x0 = _mm512_loadu_ps((row) + (s));      \
    const __m512 x1 = _mm512_loadu_ps((row) + (s) + 16); \
    const __m512 x2 = _mm512_loadu_ps((row) + (s) + 32); \
    const __m512 x3 = _mm512_loadu_ps((row) + (s) + 48); \
    const __m512 q0 = _mm512_set1_ps(w0[k]);             \
    a00 = _mm512_fmadd_ps(x0, q0, a00);                  \
    a01 = _mm512_fmadd_ps(x1, q0, a01);                  \
    a02 = _mm512_fmadd_ps(x2, q0, a02);                  \
    a03 = _mm512_fmadd_ps(x3, q0, a03);                  \
    const __m512 q1 = _mm512_set1_ps(w1[k]);             \
    a10 = _mm512_fmadd_ps(x0, q1, a10);                  \
    a11 = _mm512_fmadd_ps(x1, q1, a11);                  \
    a12 = _mm512_fmadd_ps(x2, q1, a12);                  \
    a13 = _mm512_fmadd_ps(x3, q1, a13);                  \
    const __m512 q2 = _mm512_set1_ps(w2[k]);             \
    a20 = _mm512_fmadd_ps(x0, q2, a20);                  \
    a21 = _mm512_fmadd_ps(x1, q2, a21);                  \
    a22 = _mm512_fmadd_ps(x2, q2, a22);                  \
    a23 = _mm512_fmadd_ps(x3, q2, a23);                  \
    const __m512 q3 = _mm512_set1_ps(w3[k]);             \
    a30 = _mm512_fmadd_ps(x0, q3, a30);                  \
    a31 = _mm512_fmadd_ps(x1, q3, a31);                  \
    a32 = _mm512_fmadd_ps(x2, q3, a32);                  \
    a33 = _mm512_fmadd_ps(x3, q3, a33);                  \
  }

// 4 filters by 64 outputs for R = S = 3, all lanes in use; pointers as for conv_tile.
static void conv_tile_3x3(const float* in, const float* w, const float* b, float* out, int C,
                          std::ptrdiff_t in_plane, std::ptrdiff_t in_row, std::ptrdiff_t out_plane) {
  const std::ptrdiff_t w_filter = static_cast<std::ptrdiff_t>(C) * 9;
  const float* w0 = w;
  const float* w1 = w0 + w_filter;
  const float* w2 = w1 + w_filter;
  const float* w3 = w2 + w_filter;
  __m512 a00 = _mm512_set1_ps(b[0]);
  __m512 a01 = a00;
  __m512 a02 = a00;
  __m512 a03 = a00;
  __m512 a10 = _mm512_set1_ps(b[1]);
  __m512 a11 = a10;
  __m512 a12 = a10;
  __m512 a13 = a10;
  __m512 a20 = _mm512_set1_ps(b[2]);
  __m512 a21 = a20;
  __m512 a22 = a20;
  __m512 a23 = a20;
  __m512 a30 = _mm512_set1_ps(b[3]);
  __m512 a31 = a30;
  __m512 a32 = a30;
  __m512 a33 = a30;
  const float* row0 = in;
  const float* row1 = in + in_row;
  const float* row2 = in + 2 * in_row;
  for (int c = 0; c < C; ++c) {
    CONV_TAP(row0, 0, 0)
    CONV_TAP(row0, 1, 1)
    CONV_TAP(row0, 2, 2)
    CONV_TAP(row1, 0, 3)
    CONV_TAP(row1, 1, 4)
    CONV_TAP(row1, 2, 5)
    CONV_TAP(row2, 0, 6)
    CONV_TAP(row2, 1, 7)
    CONV_TAP(row2, 2, 8)
    row0 += in_plane;
    row1 += in_plane;
    row2 += in_plane;
    w0 += 9;
    w1 += 9;
    w2 += 9;
    w3 += 9;
  }
  float* o = out;
  _mm512_storeu_ps(o, a00);
  _mm512_storeu_ps(o + 16, a01);
  _mm512_storeu_ps(o + 32, a02);
  _mm512_storeu_ps(o + 48, a03);
  o += out_plane;
  _mm512_storeu_ps(o, a10);
  _mm512_storeu_ps(o + 16, a11);
  _mm512_storeu_ps(o + 32, a12);
  _mm512_storeu_ps(o + 48, a13);
  o += out_plane;
  _mm512_storeu_ps(o, a20);
  _mm512_storeu_ps(o + 16, a21);
  _mm512_storeu_ps(o + 32, a22);
  _mm512_storeu_ps(o + 48, a23);
  o += out_plane;
  _mm512_storeu_ps(o, a30);
  _mm512_storeu_ps(o + 16, a31);
  _mm512_storeu_ps(o + 32, a32);
  _mm512_storeu_ps(o + 48, a33);
}

#undef CONV_TAP

// NF filters by NV vectors of 16 outputs; `mask` holds the lanes of the last vector that are in use.
// `in` points at input[0][y][x], `w` at weight[f][0][0][0], `b` at bias[f], `out` at output[f][y][x].
template <int NF, int NV>
static inline void conv_tile(const float* in, const float* w, const float* b, float* out, __mmask16 mask, int C,
                             int R, int S, std::ptrdiff_t in_plane, std::ptrdiff_t in_row,
                             std::ptrdiff_t out_plane) {
  const std::ptrdiff_t w_filter = static_cast<std::ptrdiff_t>(C) * R * S;
  __m512 acc[NF][NV];
#pragma GCC unroll 8
  for (int q = 0; q < NF; ++q) {
    const __m512 start = _mm512_set1_ps(b[q]);
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      acc[q][v] = start;
    }
  }
  const float* wp = w;
  for (int c = 0; c < C; ++c) {
    for (int r = 0; r < R; ++r) {
      const float* row = in + c * in_plane + r * in_row;
      for (int s = 0; s < S; ++s) {
        __m512 x[NV];
#pragma GCC unroll 8
        for (int v = 0; v < NV - 1; ++v) {
          x[v] = _mm512_loadu_ps(row + s + 16 * v);
        }
        x[NV - 1] = _mm512_maskz_loadu_ps(mask, row + s + 16 * (NV - 1));
#pragma GCC unroll 8
        for (int q = 0; q < NF; ++q) {
          const __m512 wq = _mm512_set1_ps(wp[q * w_filter]);
#pragma GCC unroll 8
          for (int v = 0; v < NV; ++v) {
            acc[q][v] = _mm512_fmadd_ps(x[v], wq, acc[q][v]);
          }
        }
        ++wp;
      }
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < NF; ++q) {
    float* o = out + q * out_plane;
#pragma GCC unroll 8
    for (int v = 0; v < NV - 1; ++v) {
      _mm512_storeu_ps(o + 16 * v, acc[q][v]);
    }
    _mm512_mask_storeu_ps(o + 16 * (NV - 1), mask, acc[q][NV - 1]);
  }
}

// All filters for NV vectors of outputs at one place.
template <int NV>
static inline void conv_filters(const float* in, const float* weight, const float* bias, float* out, __mmask16 mask,
                                int C, int F, int R, int S, std::ptrdiff_t in_plane, std::ptrdiff_t in_row,
                                std::ptrdiff_t out_plane) {
  const std::ptrdiff_t w_filter = static_cast<std::ptrdiff_t>(C) * R * S;
  int f = 0;
  if (NV == 4 && R == 3 && S == 3 && mask == 0xffffu) {
    for (; f + 4 <= F; f += 4) {
      conv_tile_3x3(in, weight + f * w_filter, bias + f, out + f * out_plane, C, in_plane, in_row, out_plane);
    }
  }
  for (; f + 4 <= F; f += 4) {
    conv_tile<4, NV>(in, weight + f * w_filter, bias + f, out + f * out_plane, mask, C, R, S, in_plane, in_row,
                     out_plane);
  }
  const float* w = weight + f * w_filter;
  const float* b = bias + f;
  float* o = out + f * out_plane;
  switch (F - f) {
    case 3:
      conv_tile<3, NV>(in, w, b, o, mask, C, R, S, in_plane, in_row, out_plane);
      break;
    case 2:
      conv_tile<2, NV>(in, w, b, o, mask, C, R, S, in_plane, in_row, out_plane);
      break;
    case 1:
      conv_tile<1, NV>(in, w, b, o, mask, C, R, S, in_plane, in_row, out_plane);
      break;
    default:
      break;
  }
}

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  const std::ptrdiff_t in_row = W;
  const std::ptrdiff_t in_plane = static_cast<std::ptrdiff_t>(H) * W;
  const std::ptrdiff_t out_plane = static_cast<std::ptrdiff_t>(OH) * OW;
  for (int y = 0; y < OH; ++y) {
    for (int x = 0; x < OW; x += 64) {
      const float* in = input + y * in_row + x;
      float* out = output + static_cast<std::ptrdiff_t>(y) * OW + x;
      const int width = OW - x < 64 ? OW - x : 64;
      const int vectors = (width + 15) / 16;
      const int last = width - 16 * (vectors - 1);
      const __mmask16 mask = static_cast<__mmask16>((1u << last) - 1u);
      switch (vectors) {
        case 4:
          conv_filters<4>(in, weight, bias, out, mask, C, F, R, S, in_plane, in_row, out_plane);
          break;
        case 3:
          conv_filters<3>(in, weight, bias, out, mask, C, F, R, S, in_plane, in_row, out_plane);
          break;
        case 2:
          conv_filters<2>(in, weight, bias, out, mask, C, F, R, S, in_plane, in_row, out_plane);
          break;
        default:
          conv_filters<1>(in, weight, bias, out, mask, C, F, R, S, in_plane, in_row, out_plane);
          break;
      }
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
