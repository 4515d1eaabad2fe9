//@ launch avg_pool1d<<<ceil_div(R * ((L - K) / S + 1), 256), 256>>>(x, y, R, L, K, S)
__global__ void avg_pool1d(const float* x, float* y, int R, int L, int K, int S) {
  int L_out = (L - K) / S + 1;
  int gid = blockIdx.x * blockDim.x + threadIdx.x;
  if (gid < R * L_out) {
    int o = gid % L_out;
    int r = gid / L_out;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) {
      sum += x[r * L + o * S + k];
    }
    y[gid] = sum / K;
  }
}
