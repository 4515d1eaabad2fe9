// 2-D convolution without padding, stride 1, one image: input is C x H x W, weight is F x C x R x S,
// output is F x (H - R + 1) x (W - S + 1).

void conv2d(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
            int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  for (int f = 0; f < F; ++f) {
    for (int y = 0; y < OH; ++y) {
      for (int x = 0; x < OW; ++x) {
        float sum = bias[f];
        for (int c = 0; c < C; ++c) {
          for (int r = 0; r < R; ++r) {
            for (int s = 0; s < S; ++s) {
              sum += input[(c * H + y + r) * W + x + s] * weight[((f * C + c) * R + r) * S + s];
            }
          }
        }
        output[(f * OH + y) * OW + x] = sum;
      }
    }
  }
}

//@ launch conv2d(input, weight, bias, output, C, H, W, F, R, S)
