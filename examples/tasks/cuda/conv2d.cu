// A convolution without padding: F filters of C channels and R x R weights over an image.

//@ launch conv2d<<<(ceil_div(W - R + 1, 16), ceil_div(H - R + 1, 16), F), (16, 16)>>>(image, filters, out, C, H, W, F, R)
__global__ void conv2d(const float* image, const float* filters, float* out, int C, int H, int W, int F, int R) {
  int f = blockIdx.z;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int height = H - R + 1;
  int width = W - R + 1;
  if (y < height && x < width) {
    float sum = 0.0f;
    for (int c = 0; c < C; ++c) {
      for (int r = 0; r < R; ++r) {
        for (int s = 0; s < R; ++s) {
          sum += image[(c * H + y + r) * W + x + s] * filters[((f * C + c) * R + r) * R + s];
        }
      }
    }
    out[(f * height + y) * width + x] = sum;
  }
}
