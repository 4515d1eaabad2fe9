// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  for (int f = 0; f < F; ++f) {
    for (int y = 0; y < OH; ++y) {
      float* out = output + (f * OH + y) * OW;
      const float start = bias[f];
      for (int x = 0; x < OW; ++x) {
        out[x] = start;
      }
      for (int c = 0; c < C; ++c) {
        for (int r = 0; r < R; ++r) {
          const float* row = input + (c * H + y + r) * W;
          const float* wt = weight + ((f * C + c) * R + r) * S;
          int s = 0;
          for (; s + 2 < S; s += 3) {
            const float* in = row + s;
            const float w0 = wt[s];
            const float w1 = wt[s + 1];
            const float w2 = wt[s + 2];
            for (int x = 0; x < OW; ++x) {
              float sum = out[x];
              sum += in[x] * w0;
              sum += in[x + 1] * w1;
              sum += in[x + 2] * w2;
              out[x] = sum;
            }
          }
          for (; s < S; ++s) {
            const float* in = row + s;
            const float w0 = wt[s];
            int x = 0;
            for (; x + 3 < OW; x += 4) {
              const float sum0 = out[x] + in[x] * w0;
              const float sum1 = out[x + 1] + in[x + 1] * w0;
              const float sum2 = out[x + 2] + in[x + 2] * w0;
              const float sum3 = out[x + 3] + in[x + 3] * w0;
              out[x] = sum0;
              out[x + 1] = sum1;
              out[x + 2] = sum2;
              out[x + 3] = sum3;
            }
            for (; x < OW; ++x) {
              out[x] += in[x] * w0;
            }
          }
        }
      }
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
