// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.

void blur(const float* in, float* blurred, int H, int W) {
  for (int y = 1; y < H - 1; ++y) {
    const float* above = in + (y - 1) * W;
    const float* here = in + y * W;
    const float* below = in + (y + 1) * W;
    float* row = blurred + y * W;
#pragma omp simd
    for (int x = 1; x < W - 1; ++x) {
      float sum = above[x - 1];
      sum += above[x];
      sum += above[x + 1];
      sum += here[x - 1];
      sum += here[x];
      sum += here[x + 1];
      sum += below[x - 1];
      sum += below[x];
      sum += below[x + 1];
      row[x] = sum / 9.0f;
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
