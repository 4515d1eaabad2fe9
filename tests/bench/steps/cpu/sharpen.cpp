// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.

void blur(const float* in, float* blurred, int H, int W) {
  for (int y = 1; y < H - 1; ++y) {
    for (int x = 1; x < W - 1; ++x) {
      float sum = 0.0f;
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
          sum += in[(y + dy) * W + x + dx];
        }
      }
      blurred[y * W + x] = sum / 9.0f;
    }
  }
}

void sharpen(const float* in, const float* blurred, float amount, float* out, int H, int W) {
  for (int y = 0; y < H; ++y) {
    for (int x = 0; x < W; ++x) {
      out[y * W + x] = in[y * W + x];
    }
  }
  for (int y = 1; y < H - 1; ++y) {
    for (int x = 1; x < W - 1; ++x) {
      out[y * W + x] = in[y * W + x] + amount * (in[y * W + x] - blurred[y * W + x]);
    }
  }
}

//@ scratch blurred: f32[H, W]
//@ launch blur(in, blurred, H, W)
//@ launch sharpen(in, blurred, amount, out, H, W)
