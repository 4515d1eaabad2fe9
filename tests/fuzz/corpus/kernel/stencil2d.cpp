// One step of a 2-D stencil of radius R on an H x W grid: every inner point becomes the weighted sum of its
// (2 R + 1) x (2 R + 1) neighbourhood; points nearer than R to the border keep their value.

void stencil2d(const float* in, const float* weight, float* out, int H, int W, int R) {
  for (int y = 0; y < H; ++y) {
    for (int x = 0; x < W; ++x) {
      out[y * W + x] = in[y * W + x];
    }
  }
  const int side = 2 * R + 1;
  for (int y = R; y < H - R; ++y) {
    for (int x = R; x < W - R; ++x) {
      float sum = 0.0f;
      for (int dy = -R; dy <= R; ++dy) {
        for (int dx = -R; dx <= R; ++dx) {
          sum += in[(y + dy) * W + x + dx] * weight[(dy + R) * side + dx + R];
        }
      }
      out[y * W + x] = sum;
    }
  }
}

//@ launch stencil2d(in, weight, out, H, W, R)
