// Mean of each pixel's neighbourhood, weighted by distance and by likeness; one thread for each pixel.

//@ launch bilateral_filter<<<(ceil_div(W, 32), ceil_div(H, 8)), (32, 8)>>>(in, out, near, alike, H, W, R)
__global__ void bilateral_filter(const float* in, float* out, float near, float alike, int H, int W, int R) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < W && y < H) {
    float centre = in[y * W + x];
    float sum = 0.0f, weights = 0.0f;
    for (int dy = -R; dy <= R; ++dy) {
      for (int dx = -R; dx <= R; ++dx) {
        if (y + dy >= 0 && y + dy < H && x + dx >= 0 && x + dx < W) {
          float value = in[(y + dy) * W + x + dx];
          float difference = value - centre;
          float weight = expf(-near * (float)(dy * dy + dx * dx) - alike * difference * difference);
          sum += weight * value;
          weights += weight;
        }
      }
    }
    out[y * W + x] = sum / weights;
  }
}
