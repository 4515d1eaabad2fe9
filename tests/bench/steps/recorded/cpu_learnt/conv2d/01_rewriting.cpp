// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).
#include <immintrin.h>

#define CONV_INIT(f)                                  \
  __m512 a##f##0 = _mm512_setzero_ps();               \
  if (FB > f) a##f##0 = _mm512_set1_ps(bias[f]);      \
  __m512 a##f##1 = a##f##0;                           \
  __m512 a##f##2 = a##f##0;                           \
  __m512 a##f##3 = a##f##0;

#define CONV_STEP(f)                                  \
  if (FB > f) {                                       \
    const __m512 b = _mm512_set1_ps(wk[f * K + s]);   \
    a##f##0 = _mm512_fmadd_ps(b, x0, a##f##0);        \
    if (WIDE) {                                       \
      a##f##1 = _mm512_fmadd_ps(b, x1, a##f##1);      \
      a##f##2 = _mm512_fmadd_ps(b, x2, a##f##2);      \
      a##f##3 = _mm512_fmadd_ps(b, x3, a##f##3);      \
    }                                                 \
  }

#define CONV_STORE(f)                                 \
  if (FB > f) {                                       \
    float* o = out + f * OHW;                         \
    if (WIDE) {                                       \
      _mm512_storeu_ps(o, a##f##0);                   \
      _mm512_storeu_ps(o + 16, a##f##1);              \
      _mm512_storeu_ps(o + 32, a##f##2);              \
      _mm512_storeu_ps(o + 48, a##f##3);              \
    } else {                                          \
      _mm512_mask_storeu_ps(o, mask, a##f##0);        \
    }                                                 \
  }

// FB filters x 64 outputs of one row (WIDE), or FB filters x up to 16 outputs under a mask.
// SS is the width of the filter where it is known, else 0.
template <int FB, bool WIDE, int SS>
static void conv_tile(const float* __restrict in, const float* __restrict w, const float* __restrict bias,
                      float* __restrict out, int C, long HW, long W, int R, int S, long K, long OHW,
                      __mmask16 mask) {
  const int width = SS ? SS : S;
  CONV_INIT(0)
  CONV_INIT(1)
  CONV_INIT(2)
  CONV_INIT(3)
  CONV_INIT(4)
  CONV_INIT(5)
  const float* wk = w;
  for (int c = 0; c < C; ++c) {
    const float* row = in + c * HW;
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 3
      for (int s = 0; s < width; ++s) {
        __m512 x0, x1, x2, x3;
        if (WIDE) {
          x0 = _mm512_loadu_ps(row + s);
          x1 = _mm512_loadu_ps(row + s + 16);
          x2 = _mm512_loadu_ps(row + s + 32);
          x3 = _mm512_loadu_ps(row + s + 48);
        } else {
          x0 = _mm512_maskz_loadu_ps(mask, row + s);
          x1 = x0;
          x2 = x0;
          x3 = x0;
        }
        CONV_STEP(0)
        CONV_STEP(1)
        CONV_STEP(2)
        CONV_STEP(3)
        CONV_STEP(4)
        CONV_STEP(5)
      }
      row += W;
      wk += width;
    }
  }
  CONV_STORE(0)
  CONV_STORE(1)
  CONV_STORE(2)
  CONV_STORE(3)
  CONV_STORE(4)
  CONV_STORE(5)
}

// All filters for one piece of an output row.
template <bool WIDE, int SS>
static void conv_filters(const float* in, const float* weight, const float* bias, float* out, int C, long HW,
                         long W, int F, int R, int S, long K, long OHW, __mmask16 mask) {
  int f = 0;
  for (; f + 6 <= F; f += 6) {
    conv_tile<6, WIDE, SS>(in, weight + f * K, bias + f, out + f * OHW, C, HW, W, R, S, K, OHW, mask);
  }
  const float* w = weight + f * K;
  const float* b = bias + f;
  float* o = out + f * OHW;
  switch (F - f) {
    case 5:
      conv_tile<5, WIDE, SS>(in, w, b, o, C, HW, W, R, S, K, OHW, mask);
      break;
    case 4:
      conv_tile<4, WIDE, SS>(in, w, b, o, C, HW, W, R, S, K, OHW, mask);
      break;
    case 3:
      conv_tile<3, WIDE, SS>(in, w, b, o, C, HW, W, R, S, K, OHW, mask);
      break;
    case 2:
      conv_tile<2, WIDE, SS>(in, w, b, o, C, HW, W, R, S, K, OHW, mask);
      break;
    case 1:
      conv_tile<1, WIDE, SS>(in, w, b, o, C, HW, W, R, S, K, OHW, mask);
      break;
    default:
      break;
  }
}

// One output row of all filters.
template <int SS>
static void conv_row(const float* in, const float* weight, const float* bias, float* out, int C, long HW, long W,
                     int F, int R, int S, long K, long OHW, int OW) {
  int x = 0;
  for (; x + 64 <= OW; x += 64) {
    conv_filters<true, SS>(in + x, weight, bias, out + x, C, HW, W, F, R, S, K, OHW, (__mmask16)0xffff);
  }
  for (; x < OW; x += 16) {
    const int left = OW - x;
    const __mmask16 mask = left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1u);
    conv_filters<false, SS>(in + x, weight, bias, out + x, C, HW, W, F, R, S, K, OHW, mask);
  }
}

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  const long HW = (long)H * W;
  const long OHW = (long)OH * OW;
  const long K = (long)C * R * S;
#pragma omp parallel for schedule(static) if (OH > 1)
  for (int y = 0; y < OH; ++y) {
    const float* in = input + (long)y * W;
    float* out = output + (long)y * OW;
    if (S == 3) {
      conv_row<3>(in, weight, bias, out, C, HW, W, F, R, S, K, OHW, OW);
    } else {
      conv_row<0>(in, weight, bias, out, C, HW, W, F, R, S, K, OHW, OW);
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
