// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.

// 16 neighbouring floats, at any address of a float.
typedef float floats16 __attribute__((vector_size(64), aligned(4), may_alias));

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
    int x = 0;
    for (; x + 63 < W; x += 64) {
      const floats16 value0 = *(const floats16*)(in + y * W + x);
      const floats16 value1 = *(const floats16*)(in + y * W + x + 16);
      const floats16 value2 = *(const floats16*)(in + y * W + x + 32);
      const floats16 value3 = *(const floats16*)(in + y * W + x + 48);
      *(floats16*)(out + y * W + x) = value0;
      *(floats16*)(out + y * W + x + 16) = value1;
      *(floats16*)(out + y * W + x + 32) = value2;
      *(floats16*)(out + y * W + x + 48) = value3;
    }
    for (; x < W; ++x) {
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
