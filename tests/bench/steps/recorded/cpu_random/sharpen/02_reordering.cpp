// Unsharp masking of an H x W image: what the mean of its 3 x 3 neighbourhood lacks is added to every inner
// pixel, times `amount`; pixels on the border keep their value.

typedef float strip16 __attribute__((vector_size(64), aligned(4), may_alias));

void blur(const float* in, float* blurred, int H, int W) {
  if (W - 2 < 64) {
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
    return;
  }
  for (int y = 1; y < H - 1; ++y) {
    for (int s = 1; s < W - 1; s += 64) {
      // first pixel of the strip; the last strip ends at the last inner pixel
      const int x = s < W - 65 ? s : W - 65;
      strip16 sum0 = {};
      strip16 sum1 = {};
      strip16 sum2 = {};
      strip16 sum3 = {};
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
          // x, x + 1, ..., x + 63
          const float* p = in + (y + dy) * W + x + dx;
          sum0 += *(const strip16*)(p);
          sum1 += *(const strip16*)(p + 16);
          sum2 += *(const strip16*)(p + 32);
          sum3 += *(const strip16*)(p + 48);
        }
      }
      float* q = blurred + y * W + x;
      *(strip16*)(q) = sum0 / 9.0f;
      *(strip16*)(q + 16) = sum1 / 9.0f;
      *(strip16*)(q + 32) = sum2 / 9.0f;
      *(strip16*)(q + 48) = sum3 / 9.0f;
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
