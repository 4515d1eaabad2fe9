// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).

// 16 neighbouring floats, at any address of a float.
typedef float floats16 __attribute__((vector_size(64), aligned(4), may_alias));

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;

  if (F < 4 || OW < 64) {
    for (int f = 0; f < F; ++f) {
      for (int y = 0; y < OH; ++y) {
        float* __restrict row = output + (f * OH + y) * OW;
        for (int x = 0; x < OW; ++x) {
          row[x] = bias[f];
        }
        for (int c = 0; c < C; ++c) {
          for (int r = 0; r < R; ++r) {
            for (int s = 0; s < S; ++s) {
              const float w = weight[((f * C + c) * R + r) * S + s];
              const float* in = input + (c * H + y + r) * W + s;
              for (int x = 0; x < OW; ++x) {
                row[x] += in[x] * w;
              }
            }
          }
        }
      }
    }
    return;
  }

  const int K = C * R * S;
  for (int y = 0; y < OH; ++y) {
    for (int xs = 0; xs < OW; xs += 64) {
      const int x = xs + 64 <= OW ? xs : OW - 64;
      for (int fs = 0; fs < F; fs += 4) {
        const int f = fs + 4 <= F ? fs : F - 4;
        const floats16 zero = {};
        floats16 a0 = zero + bias[f], a1 = a0, a2 = a0, a3 = a0;
        floats16 b0 = zero + bias[f + 1], b1 = b0, b2 = b0, b3 = b0;
        floats16 c0 = zero + bias[f + 2], c1 = c0, c2 = c0, c3 = c0;
        floats16 d0 = zero + bias[f + 3], d1 = d0, d2 = d0, d3 = d0;
        const float* wa = weight + f * K;
        const float* wb = wa + K;
        const float* wc = wb + K;
        const float* wd = wc + K;
        int k = 0;
        for (int c = 0; c < C; ++c) {
          for (int r = 0; r < R; ++r) {
            const float* in = input + (c * H + y + r) * W + x;
            for (int s = 0; s < S; ++s, ++k) {
              const floats16 i0 = *(const floats16*)(in + s);
              const floats16 i1 = *(const floats16*)(in + s + 16);
              const floats16 i2 = *(const floats16*)(in + s + 32);
              const floats16 i3 = *(const floats16*)(in + s + 48);
              const float va = wa[k];
              a0 += i0 * va;
              a1 += i1 * va;
              a2 += i2 * va;
              a3 += i3 * va;
              const float vb = wb[k];
              b0 += i0 * vb;
              b1 += i1 * vb;
              b2 += i2 * vb;
              b3 += i3 * vb;
              const float vc = wc[k];
              c0 += i0 * vc;
              c1 += i1 * vc;
              c2 += i2 * vc;
              c3 += i3 * vc;
              const float vd = wd[k];
              d0 += i0 * vd;
              d1 += i1 * vd;
              d2 += i2 * vd;
              d3 += i3 * vd;
            }
          }
        }
        float* oa = output + (f * OH + y) * OW + x;
        float* ob = oa + OH * OW;
        float* oc = ob + OH * OW;
        float* od = oc + OH * OW;
        *(floats16*)(oa) = a0;
        *(floats16*)(oa + 16) = a1;
        *(floats16*)(oa + 32) = a2;
        *(floats16*)(oa + 48) = a3;
        *(floats16*)(ob) = b0;
        *(floats16*)(ob + 16) = b1;
        *(floats16*)(ob + 32) = b2;
        *(floats16*)(ob + 48) = b3;
        *(floats16*)(oc) = c0;
        *(floats16*)(oc + 16) = c1;
        *(floats16*)(oc + 32) = c2;
        *(floats16*)(oc + 48) = c3;
        *(floats16*)(od) = d0;
        *(floats16*)(od + 16) = d1;
        *(floats16*)(od + 32) = d2;
        *(floats16*)(od + 48) = d3;
      }
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
