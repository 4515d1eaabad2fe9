// Pooling by effective value, one thread for each window.

//@ launch power_pooling<<<ceil_div(P * H * W, 256), 256>>>(x, out, P, H, W)
__global__ void power_pooling(const float* x, float* out, int P, int H, int W) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < P * H * W) {
    int plane = at / (H * W);
    int i = at / W % H;
    int j = at % W;
    float squares = 0.0f;
    for (int b = 0; b < 3; ++b) {
      for (int a = 0; a < 3; ++a) {
        float value = x[(plane * (2 * H + 1) + 2 * i + a) * (2 * W + 1) + 2 * j + b];
        squares += value * value;
      }
    }
    out[at] = sqrtf(squares);
  }
}
