// Mean and (biased) variance of every channel of an NCHW tensor, as batch norm needs them in training.
//@ launch channel_stats<<<ceil_div(C, 32), 32>>>(x, mean, var, N, C, H, W)

__global__ void channel_stats(const float* x, float* mean, float* var, int N, int C, int H, int W) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= C) return;

  float count = (float)N * H * W;

  float sum = 0.0f;
  for (int n = 0; n < N; n++) {
    for (int h = 0; h < H; h++) {
      for (int w = 0; w < W; w++) {
        sum += x[((n * C + c) * H + h) * W + w];
      }
    }
  }
  float mu = sum / count;

  float sq = 0.0f;
  for (int n = 0; n < N; n++) {
    for (int h = 0; h < H; h++) {
      for (int w = 0; w < W; w++) {
        float d = x[((n * C + c) * H + h) * W + w] - mu;
        sq += d * d;
      }
    }
  }

  mean[c] = mu;
  var[c] = sq / count;
}
