// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).

// 4 filters times 64 pixels of one row.
static inline __attribute__((always_inline)) void conv2d_tile64(const float* in, const float* w, const float* bias,
                                                                float* out, int C, long plane, long W, int R, int S,
                                                                long filter, long image) {
  typedef float v16 __attribute__((vector_size(64)));
  typedef float v16u __attribute__((vector_size(64), aligned(4), may_alias));

  const v16 zero = {};
  v16 a00 = zero + bias[0], a01 = a00, a02 = a00, a03 = a00;
  v16 a10 = zero + bias[1], a11 = a10, a12 = a10, a13 = a10;
  v16 a20 = zero + bias[2], a21 = a20, a22 = a20, a23 = a20;
  v16 a30 = zero + bias[3], a31 = a30, a32 = a30, a33 = a30;

  const float* w0 = w;
  const float* w1 = w + filter;
  const float* w2 = w + 2 * filter;
  const float* w3 = w + 3 * filter;

  for (int c = 0; c < C; ++c) {
    const float* p = in + c * plane;
    for (int r = 0; r < R; ++r) {
      for (int s = 0; s < S; ++s) {
        const v16 x0 = *(const v16u*)(p + s);
        const v16 x1 = *(const v16u*)(p + s + 16);
        const v16 x2 = *(const v16u*)(p + s + 32);
        const v16 x3 = *(const v16u*)(p + s + 48);
        const float k0 = w0[s];
        const float k1 = w1[s];
        const float k2 = w2[s];
        const float k3 = w3[s];
        a00 += k0 * x0;
        a01 += k0 * x1;
        a02 += k0 * x2;
        a03 += k0 * x3;
        a10 += k1 * x0;
        a11 += k1 * x1;
        a12 += k1 * x2;
        a13 += k1 * x3;
        a20 += k2 * x0;
        a21 += k2 * x1;
        a22 += k2 * x2;
        a23 += k2 * x3;
        a30 += k3 * x0;
        a31 += k3 * x1;
        a32 += k3 * x2;
        a33 += k3 * x3;
      }
      p += W;
      w0 += S;
      w1 += S;
      w2 += S;
      w3 += S;
    }
  }

  float* o0 = out;
  float* o1 = out + image;
  float* o2 = out + 2 * image;
  float* o3 = out + 3 * image;
  *(v16u*)(o0) = a00;
  *(v16u*)(o0 + 16) = a01;
  *(v16u*)(o0 + 32) = a02;
  *(v16u*)(o0 + 48) = a03;
  *(v16u*)(o1) = a10;
  *(v16u*)(o1 + 16) = a11;
  *(v16u*)(o1 + 32) = a12;
  *(v16u*)(o1 + 48) = a13;
  *(v16u*)(o2) = a20;
  *(v16u*)(o2 + 16) = a21;
  *(v16u*)(o2 + 32) = a22;
  *(v16u*)(o2 + 48) = a23;
  *(v16u*)(o3) = a30;
  *(v16u*)(o3 + 16) = a31;
  *(v16u*)(o3 + 32) = a32;
  *(v16u*)(o3 + 48) = a33;
}

// 4 filters times 16 pixels of one row.
static inline void conv2d_tile16(const float* in, const float* w, const float* bias, float* out, int C, long plane,
                                 long W, int R, int S, long filter, long image) {
  typedef float v16 __attribute__((vector_size(64)));
  typedef float v16u __attribute__((vector_size(64), aligned(4), may_alias));

  const v16 zero = {};
  v16 a0 = zero + bias[0];
  v16 a1 = zero + bias[1];
  v16 a2 = zero + bias[2];
  v16 a3 = zero + bias[3];

  const float* w0 = w;
  const float* w1 = w + filter;
  const float* w2 = w + 2 * filter;
  const float* w3 = w + 3 * filter;

  for (int c = 0; c < C; ++c) {
    const float* p = in + c * plane;
    for (int r = 0; r < R; ++r) {
      for (int s = 0; s < S; ++s) {
        const v16 x = *(const v16u*)(p + s);
        a0 += w0[s] * x;
        a1 += w1[s] * x;
        a2 += w2[s] * x;
        a3 += w3[s] * x;
      }
      p += W;
      w0 += S;
      w1 += S;
      w2 += S;
      w3 += S;
    }
  }

  *(v16u*)(out) = a0;
  *(v16u*)(out + image) = a1;
  *(v16u*)(out + 2 * image) = a2;
  *(v16u*)(out + 3 * image) = a3;
}

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  const long plane = (long)H * W;
  const long filter = (long)C * R * S;
  const long image = (long)OH * OW;

  for (int y = 0; y < OH; ++y) {
    const float* rows = input + (long)y * W;
    for (int f0 = 0; f0 < F; f0 += 4) {
      const int nf = F - f0 < 4 ? F - f0 : 4;
      const float* w = weight + f0 * filter;
      float* out = output + f0 * image + (long)y * OW;
      int x = 0;
      if (nf == 4) {
        if (R == 3 && S == 3) {
          for (; x + 64 <= OW; x += 64) {
            conv2d_tile64(rows + x, w, bias + f0, out + x, C, plane, W, 3, 3, filter, image);
          }
        } else {
          for (; x + 64 <= OW; x += 64) {
            conv2d_tile64(rows + x, w, bias + f0, out + x, C, plane, W, R, S, filter, image);
          }
        }
        for (; x + 16 <= OW; x += 16) {
          conv2d_tile16(rows + x, w, bias + f0, out + x, C, plane, W, R, S, filter, image);
        }
      }
      // What the tiles leave.
      for (int f = 0; f < nf; ++f) {
        for (int xr = x; xr < OW; ++xr) {
          float sum = bias[f0 + f];
          const float* k = w + f * filter;
          for (int c = 0; c < C; ++c) {
            for (int r = 0; r < R; ++r) {
              const float* p = rows + c * plane + (long)r * W + xr;
              for (int s = 0; s < S; ++s) {
                sum += p[s] * k[s];
              }
              k += S;
            }
          }
          out[f * image + xr] = sum;
        }
      }
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
