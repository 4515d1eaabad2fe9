// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).

#include <immintrin.h>

#define CONV_START(n)                                                     \
  const float* w##n = weight;                                             \
  __m512 a##n##0 = _mm512_setzero_ps();                                   \
  __m512 a##n##1 = a##n##0, a##n##2 = a##n##0, a##n##3 = a##n##0;         \
  if (NF > n) {                                                           \
    w##n = weight + n * taps;                                             \
    a##n##0 = _mm512_set1_ps(bias[n < NF ? n : 0]);                       \
    a##n##1 = a##n##2 = a##n##3 = a##n##0;                                \
  }

#define CONV_STEP(n)                                                      \
  if (NF > n) {                                                           \
    const __m512 w = _mm512_set1_ps(w##n[k]);                             \
    a##n##0 = _mm512_fmadd_ps(v0, w, a##n##0);                            \
    if (kWide) {                                                          \
      a##n##1 = _mm512_fmadd_ps(v1, w, a##n##1);                          \
      a##n##2 = _mm512_fmadd_ps(v2, w, a##n##2);                          \
      a##n##3 = _mm512_fmadd_ps(v3, w, a##n##3);                          \
    }                                                                     \
  }

#define CONV_STORE(n)                                                     \
  if (NF > n) {                                                           \
    float* to = output + n * plane;                                       \
    if (kWide) {                                                          \
      _mm512_storeu_ps(to, a##n##0);                                      \
      _mm512_storeu_ps(to + 16, a##n##1);                                 \
      _mm512_storeu_ps(to + 32, a##n##2);                                 \
      _mm512_storeu_ps(to + 48, a##n##3);                                 \
    } else {                                                              \
      _mm512_mask_storeu_ps(to, mask, a##n##0);                           \
    }                                                                     \
  }

// NF filters for 64 neighbouring outputs of one row (kWide), or for the up to 16 outputs of the mask. All pointers
// already point to the first filter and the first output of the tile; channel is H * W, plane is OH * OW.
template <int NF, bool kWide>
static inline void conv_tile(const float* input, const float* weight, const float* bias, float* output, int C,
                             long channel, long W, int R, int S, long plane, __mmask16 mask) {
  const long taps = static_cast<long>(C) * R * S;
  CONV_START(0)
  CONV_START(1)
  CONV_START(2)
  CONV_START(3)
  CONV_START(4)
  CONV_START(5)
  long k = 0;
  for (int c = 0; c < C; ++c) {
    const float* row = input + c * channel;
    for (int r = 0; r < R; ++r, row += W) {
      const float* at = row;
      for (int s = 0; s < S; ++s, ++at, ++k) {
        __m512 v0, v1, v2, v3;
        if (kWide) {
          v0 = _mm512_loadu_ps(at);
          v1 = _mm512_loadu_ps(at + 16);
          v2 = _mm512_loadu_ps(at + 32);
          v3 = _mm512_loadu_ps(at + 48);
        } else {
          v0 = _mm512_maskz_loadu_ps(mask, at);
          v1 = v2 = v3 = v0;
        }
        CONV_STEP(0)
        CONV_STEP(1)
        CONV_STEP(2)
        CONV_STEP(3)
        CONV_STEP(4)
        CONV_STEP(5)
      }
    }
  }
  CONV_STORE(0)
  CONV_STORE(1)
  CONV_STORE(2)
  CONV_STORE(3)
  CONV_STORE(4)
  CONV_STORE(5)
}

#undef CONV_START
#undef CONV_STEP
#undef CONV_STORE

// NF filters for a whole row of the output.
template <int NF>
static void conv_row(const float* input, const float* weight, const float* bias, float* output, int C,
                     long channel, long W, int R, int S, long plane, int OW) {
  int x = 0;
  for (; x + 64 <= OW; x += 64) {
    conv_tile<NF, true>(input + x, weight, bias, output + x, C, channel, W, R, S, plane,
                        static_cast<__mmask16>(0xffff));
  }
  for (; x < OW; x += 16) {
    const int left = OW - x < 16 ? OW - x : 16;
    conv_tile<NF, false>(input + x, weight, bias, output + x, C, channel, W, R, S, plane,
                         static_cast<__mmask16>((1u << left) - 1u));
  }
}

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  const long channel = static_cast<long>(H) * W;
  const long plane = static_cast<long>(OH) * OW;
  const long taps = static_cast<long>(C) * R * S;
  for (int y = 0; y < OH; ++y) {
    const float* in_row = input + static_cast<long>(y) * W;
    float* out_row = output + static_cast<long>(y) * OW;
    int f = 0;
    for (; f + 6 <= F; f += 6) {
      conv_row<6>(in_row, weight + f * taps, bias + f, out_row + f * plane, C, channel, W, R, S, plane, OW);
    }
    for (; f + 4 <= F; f += 4) {
      conv_row<4>(in_row, weight + f * taps, bias + f, out_row + f * plane, C, channel, W, R, S, plane, OW);
    }
    for (; f < F; ++f) {
      conv_row<1>(in_row, weight + f * taps, bias + f, out_row + f * plane, C, channel, W, R, S, plane, OW);
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
