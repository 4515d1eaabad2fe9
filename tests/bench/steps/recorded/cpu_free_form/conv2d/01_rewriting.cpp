// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).

#include <cstddef>
#include <immintrin.h>

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
