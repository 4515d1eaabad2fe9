// InstanceNorm2d without affine parameters. Each thread takes care of one (n, c) plane.
//@ launch instance_norm<<<ceil_div(N * C, 64), 64>>>(x, y, N, C, H, W, eps)

__global__ void instance_norm(const float* x, float* y, const int N, const int C, const int H, const int W,
                              const float eps) {
  int plane = blockIdx.x * blockDim.x + threadIdx.x;
  if (plane >= N * C) return;

  const int base = plane * H * W;
  float mean = 0.f;
  for (int h = 0; h < H; ++h)
    for (int w = 0; w < W; ++w)
      mean += x[base + h * W + w];
  mean /= (float)(H * W);

  float var = 0.f;
  for (int h = 0; h < H; ++h)
    for (int w = 0; w < W; ++w) {
      float diff = x[base + h * W + w] - mean;
      var += diff * diff;
    }
  var /= (float)(H * W);

  float inv_std = 1.0f / sqrtf(var + eps);
  for (int h = 0; h < H; ++h)
    for (int w = 0; w < W; ++w)
      y[base + h * W + w] = (x[base + h * W + w] - mean) * inv_std;
}
