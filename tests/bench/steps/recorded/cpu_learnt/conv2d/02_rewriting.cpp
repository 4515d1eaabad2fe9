// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).
// The weights are packed into blocks of 6 filters (the last block holds the rest), filter innermost; a tile of
// 6 filters x 64 outputs of one row then stays in registers over all of C, R and S.
#include <immintrin.h>

#define CONV_INIT(f)                                  \
  __m512 a##f##0 = _mm512_setzero_ps();               \
  if (FB > f) a##f##0 = _mm512_set1_ps(bias[f]);      \
  __m512 a##f##1 = a##f##0;                           \
  __m512 a##f##2 = a##f##0;                           \
  __m512 a##f##3 = a##f##0;

#define CONV_LOAD(v)                                              \
  __m512 x##v = _mm512_setzero_ps();                              \
  if (NV > v) {                                                   \
    if (MASKED && NV == v + 1) {                                  \
      x##v = _mm512_maskz_loadu_ps(mask, p + 16 * v);             \
    } else {                                                      \
      x##v = _mm512_loadu_ps(p + 16 * v);                         \
    }                                                             \
  }

#define CONV_STEP(f)                                              \
  if (FB > f) {                                                   \
    const __m512 b = _mm512_set1_ps(wk[f]);                       \
    a##f##0 = _mm512_fmadd_ps(b, x0, a##f##0);                    \
    if (NV > 1) a##f##1 = _mm512_fmadd_ps(b, x1, a##f##1);        \
    if (NV > 2) a##f##2 = _mm512_fmadd_ps(b, x2, a##f##2);        \
    if (NV > 3) a##f##3 = _mm512_fmadd_ps(b, x3, a##f##3);        \
  }

#define CONV_STORE_ONE(f, v)                                      \
  if (NV > v) {                                                   \
    if (MASKED && NV == v + 1) {                                  \
      _mm512_mask_storeu_ps(o + 16 * v, mask, a##f##v);           \
    } else {                                                      \
      _mm512_storeu_ps(o + 16 * v, a##f##v);                      \
    }                                                             \
  }

#define CONV_STORE(f)                                 \
  if (FB > f) {                                       \
    float* o = out + f * OHW;                         \
    CONV_STORE_ONE(f, 0)                              \
    CONV_STORE_ONE(f, 1)                              \
    CONV_STORE_ONE(f, 2)                              \
    CONV_STORE_ONE(f, 3)                              \
  }

// FB filters x NV vectors of one output row; the last vector is under a mask if MASKED.
// RR and SS are the height and width of the filter where they are known, else 0.
template <int FB, int NV, bool MASKED, int RR, int SS>
static void conv_tile(const float* __restrict in, const float* __restrict w, const float* __restrict bias,
                      float* __restrict out, int C, long HW, long W, int R, int S, long OHW, __mmask16 mask) {
  const int height = RR ? RR : R;
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
#pragma GCC unroll 3
    for (int r = 0; r < height; ++r) {
#pragma GCC unroll 3
      for (int s = 0; s < width; ++s) {
        const float* p = row + s;
        CONV_LOAD(0)
        CONV_LOAD(1)
        CONV_LOAD(2)
        CONV_LOAD(3)
        CONV_STEP(0)
        CONV_STEP(1)
        CONV_STEP(2)
        CONV_STEP(3)
        CONV_STEP(4)
        CONV_STEP(5)
        wk += FB;
      }
      row += W;
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
template <int NV, bool MASKED, int RR, int SS>
static void conv_filters(const float* in, const float* packed, const float* bias, float* out, int C, long HW,
                         long W, int F, int R, int S, long K, long OHW, __mmask16 mask) {
  int f = 0;
  for (; f + 6 <= F; f += 6) {
    conv_tile<6, NV, MASKED, RR, SS>(in, packed + f * K, bias + f, out + f * OHW, C, HW, W, R, S, OHW, mask);
  }
  const float* w = packed + f * K;
  const float* b = bias + f;
  float* o = out + f * OHW;
  switch (F - f) {
    case 5:
      conv_tile<5, NV, MASKED, RR, SS>(in, w, b, o, C, HW, W, R, S, OHW, mask);
      break;
    case 4:
      conv_tile<4, NV, MASKED, RR, SS>(in, w, b, o, C, HW, W, R, S, OHW, mask);
      break;
    case 3:
      conv_tile<3, NV, MASKED, RR, SS>(in, w, b, o, C, HW, W, R, S, OHW, mask);
      break;
    case 2:
      conv_tile<2, NV, MASKED, RR, SS>(in, w, b, o, C, HW, W, R, S, OHW, mask);
      break;
    case 1:
      conv_tile<1, NV, MASKED, RR, SS>(in, w, b, o, C, HW, W, R, S, OHW, mask);
      break;
    default:
      break;
  }
}

// One output row of all filters.
static void conv_row(const float* in, const float* packed, const float* bias, float* out, int C, long HW, long W,
                     int F, int R, int S, long K, long OHW, int OW) {
  const __mmask16 all = (__mmask16)0xffff;
  const bool three = R == 3 && S == 3;
  int x = 0;
  for (; x + 64 <= OW; x += 64) {
    if (three) {
      conv_filters<4, false, 3, 3>(in + x, packed, bias, out + x, C, HW, W, F, R, S, K, OHW, all);
    } else {
      conv_filters<4, false, 0, 0>(in + x, packed, bias, out + x, C, HW, W, F, R, S, K, OHW, all);
    }
  }
  const int left = OW - x;
  if (left > 0) {
    const int vectors = (left + 15) / 16;
    const int last = left - (vectors - 1) * 16;
    const __mmask16 mask = (__mmask16)((1u << last) - 1u);
    switch (vectors) {
      case 1:
        conv_filters<1, true, 0, 0>(in + x, packed, bias, out + x, C, HW, W, F, R, S, K, OHW, mask);
        break;
      case 2:
        conv_filters<2, true, 0, 0>(in + x, packed, bias, out + x, C, HW, W, F, R, S, K, OHW, mask);
        break;
      case 3:
        conv_filters<3, true, 0, 0>(in + x, packed, bias, out + x, C, HW, W, F, R, S, K, OHW, mask);
        break;
      default:
        conv_filters<4, true, 0, 0>(in + x, packed, bias, out + x, C, HW, W, F, R, S, K, OHW, mask);
        break;
    }
  }
}

void conv2d(const float* input, const float* weight, const float* bias, float* packed, float* output, int C, int H,
            int W, int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  const long HW = (long)H * W;
  const long OHW = (long)OH * OW;
  const long K = (long)C * R * S;
  const int blocks = (F + 5) / 6;
#pragma omp parallel if (OH > 1)
  {
#pragma omp for schedule(static)
    for (int b = 0; b < blocks; ++b) {
      const int f = b * 6;
      const float* from = weight + f * K;
      float* to = packed + f * K;
      if (F - f >= 6) {
        for (long k = 0; k < K; ++k) {
          const float w0 = from[k];
          const float w1 = from[k + K];
          const float w2 = from[k + 2 * K];
          const float w3 = from[k + 3 * K];
          const float w4 = from[k + 4 * K];
          const float w5 = from[k + 5 * K];
          float* t = to + k * 6;
          t[0] = w0;
          t[1] = w1;
          t[2] = w2;
          t[3] = w3;
          t[4] = w4;
          t[5] = w5;
        }
      } else {
        const int n = F - f;
        for (long k = 0; k < K; ++k) {
          for (int j = 0; j < n; ++j) to[k * n + j] = from[j * K + k];
        }
      }
    }
#pragma omp for schedule(dynamic, 1)
    for (int y = 0; y < OH; ++y) {
      conv_row(input + (long)y * W, packed, bias, output + (long)y * OW, C, HW, W, F, R, S, K, OHW, OW);
    }
  }
}

//@ scratch packed: f32[F, C, R, S]
//@ launch conv2d(input, weight, bias, packed, output, C, H, W, F, R, S)
