// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).
#include <immintrin.h>

static inline __mmask16 first_lanes(int n) {
  return n >= 16 ? (__mmask16)0xFFFF : n <= 0 ? (__mmask16)0 : (__mmask16)((1u << n) - 1u);
}

template <bool WHOLE>
static inline __m512 load(__mmask16 lanes, const float* p) {
  return WHOLE ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(lanes, p);
}

template <bool WHOLE>
static inline void store(__mmask16 lanes, float* p, __m512 value) {
  if (WHOLE) {
    _mm512_storeu_ps(p, value);
  } else {
    _mm512_mask_storeu_ps(p, lanes, value);
  }
}

// FB filters (1 to 6) times up to 64 pixels of one row. input, weight, bias and output point at the first pixel
// and the first filter of the tile; plane is the distance of two filters in output.
template <int FB, bool WHOLE>
static void tile(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
                 int R, int S, long plane, int width) {
  const long K = (long)C * R * S;
  const __mmask16 m0 = first_lanes(width);
  const __mmask16 m1 = first_lanes(width - 16);
  const __mmask16 m2 = first_lanes(width - 32);
  const __mmask16 m3 = first_lanes(width - 48);

#define CONV_START(f)                                      \
  __m512 a##f##0 = _mm512_set1_ps(bias[f < FB ? f : 0]);   \
  __m512 a##f##1 = a##f##0;                                \
  __m512 a##f##2 = a##f##0;                                \
  __m512 a##f##3 = a##f##0;
  CONV_START(0)
  CONV_START(1)
  CONV_START(2)
  CONV_START(3)
  CONV_START(4)
  CONV_START(5)
#undef CONV_START

  const float* w = weight;
  for (int c = 0; c < C; ++c) {
    for (int r = 0; r < R; ++r) {
      const float* p = input + ((long)c * H + r) * W;
      for (int s = 0; s < S; ++s) {
        const __m512 v0 = load<WHOLE>(m0, p + s);
        const __m512 v1 = load<WHOLE>(m1, p + s + 16);
        const __m512 v2 = load<WHOLE>(m2, p + s + 32);
        const __m512 v3 = load<WHOLE>(m3, p + s + 48);
#define CONV_STEP(f)                                   \
  if (f < FB) {                                        \
    const __m512 factor = _mm512_set1_ps(w[f * K]);    \
    a##f##0 = _mm512_fmadd_ps(factor, v0, a##f##0);    \
    a##f##1 = _mm512_fmadd_ps(factor, v1, a##f##1);    \
    a##f##2 = _mm512_fmadd_ps(factor, v2, a##f##2);    \
    a##f##3 = _mm512_fmadd_ps(factor, v3, a##f##3);    \
  }
        CONV_STEP(0)
        CONV_STEP(1)
        CONV_STEP(2)
        CONV_STEP(3)
        CONV_STEP(4)
        CONV_STEP(5)
#undef CONV_STEP
        ++w;
      }
    }
  }

#define CONV_FINISH(f)                          \
  if (f < FB) {                                 \
    float* o = output + f * plane;              \
    store<WHOLE>(m0, o, a##f##0);               \
    store<WHOLE>(m1, o + 16, a##f##1);          \
    store<WHOLE>(m2, o + 32, a##f##2);          \
    store<WHOLE>(m3, o + 48, a##f##3);          \
  }
  CONV_FINISH(0)
  CONV_FINISH(1)
  CONV_FINISH(2)
  CONV_FINISH(3)
  CONV_FINISH(4)
  CONV_FINISH(5)
#undef CONV_FINISH
}

template <int FB>
static inline void row(const float* input, const float* weight, const float* bias, float* output, int C, int H,
                       int W, int R, int S, long plane, int OW) {
  int x = 0;
  for (; x + 64 <= OW; x += 64) {
    tile<FB, true>(input + x, weight, bias, output + x, C, H, W, R, S, plane, 64);
  }
  if (x < OW) {
    tile<FB, false>(input + x, weight, bias, output + x, C, H, W, R, S, plane, OW - x);
  }
}

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  const int blocks = (F + 5) / 6;
  const long K = (long)C * R * S;
  const long plane = (long)OH * OW;
#pragma omp parallel for collapse(2) schedule(static)
  for (int y = 0; y < OH; ++y) {
    for (int b = 0; b < blocks; ++b) {
      const int f = b * 6;
      const float* i = input + (long)y * W;
      const float* w = weight + f * K;
      const float* start = bias + f;
      float* o = output + f * plane + (long)y * OW;
      switch (F - f) {
        case 1:
          row<1>(i, w, start, o, C, H, W, R, S, plane, OW);
          break;
        case 2:
          row<2>(i, w, start, o, C, H, W, R, S, plane, OW);
          break;
        case 3:
          row<3>(i, w, start, o, C, H, W, R, S, plane, OW);
          break;
        case 4:
          row<4>(i, w, start, o, C, H, W, R, S, plane, OW);
          break;
        case 5:
          row<5>(i, w, start, o, C, H, W, R, S, plane, OW);
          break;
        default:
          row<6>(i, w, start, o, C, H, W, R, S, plane, OW);
          break;
      }
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
