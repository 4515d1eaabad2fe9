// Attention of each position to itself and to the W - 1 positions before it, one thread for each query of a head.

//@ launch sliding_attention<<<ceil_div(H * T, 128), 128>>>(q, k, v, out, H, T, D, W)
__global__ void sliding_attention(const float* q, const float* k, const float* v, float* out, int H, int T, int D,
                                  int W) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < H * T) {
    int head = i / T;
    int t = i % T;
    int first = t - W + 1 < 0 ? 0 : t - W + 1;
    float scale = rsqrtf((float)D);
    float most = -3.0e38f;
    for (int s = first; s <= t; ++s) {
      float dot = 0.0f;
      for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[(head * T + s) * D + d];
      most = fmaxf(most, dot * scale);
    }
    float sum = 0.0f;
    for (int d = 0; d < D; ++d) out[i * D + d] = 0.0f;
    for (int s = first; s <= t; ++s) {
      float dot = 0.0f;
      for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[(head * T + s) * D + d];
      float weight = expf(dot * scale - most);
      sum += weight;
      for (int d = 0; d < D; ++d) out[i * D + d] += weight * v[(head * T + s) * D + d];
    }
    for (int d = 0; d < D; ++d) out[i * D + d] /= sum;
  }
}
