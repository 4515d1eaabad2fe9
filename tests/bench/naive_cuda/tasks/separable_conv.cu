// Depthwise 3x3 convolution (padding 1) and a 1x1 convolution over the channels.

//@ scratch mid: f32[B, C, H, W]
//@ launch depthwise<<<ceil_div(B * C * H * W, 256), 256>>>(x, dw, mid, B, C, H, W)
//@ launch pointwise<<<(ceil_div(H * W, 64), ceil_div(F, 4), B), (64, 4)>>>(mid, pw, y, C, F, H * W)

__device__ float pixel(const float* image, int i, int j, int H, int W) {
  return (i >= 0 && i < H && j >= 0 && j < W) ? image[i * W + j] : 0.0f;
}

__global__ void depthwise(const float* x, const float* dw, float* mid, int B, int C, int H, int W) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < B * C * H * W) {
    int j = index % W;
    int i = index / W % H;
    int c = index / (W * H) % C;
    int b = index / (W * H * C);
    const float* image = x + (b * C + c) * H * W;
    float sum = 0.0f;
    for (int u = -1; u <= 1; ++u)
      for (int v = -1; v <= 1; ++v) sum += pixel(image, i + u, j + v, H, W) * dw[c * 9 + (u + 1) * 3 + v + 1];
    mid[index] = sum;
  }
}

__global__ void pointwise(const float* mid, const float* pw, float* y, int C, int F, int area) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  int f = blockIdx.y * blockDim.y + threadIdx.y;
  int b = blockIdx.z;
  if (p < area && f < F) {
    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum += mid[(b * C + c) * area + p] * pw[f * C + c];
    y[(b * F + f) * area + p] = sum;
  }
}
