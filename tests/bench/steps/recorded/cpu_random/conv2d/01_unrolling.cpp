// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  for (int f = 0; f < F; ++f) {
    for (int y = 0; y < OH; ++y) {
      for (int x = 0; x < OW; ++x) {
        float sum0 = bias[f];
        float sum1 = 0.0f;
        float sum2 = 0.0f;
        for (int c = 0; c < C; ++c) {
          for (int r = 0; r < R; ++r) {
            const float* in = input + ((c * H + y + r) * W + x);
            const float* wt = weight + ((f * C + c) * R + r) * S;
            int s = 0;
            for (; s + 2 < S; s += 3) {
              sum0 += in[s] * wt[s];
              sum1 += in[s + 1] * wt[s + 1];
              sum2 += in[s + 2] * wt[s + 2];
            }
            for (; s < S; ++s) {
              sum0 += in[s] * wt[s];
            }
          }
        }
        output[(f * OH + y) * OW + x] = sum0 + (sum1 + sum2);
      }
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
