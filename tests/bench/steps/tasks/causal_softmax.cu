// Softmax of the scores at and before the diagonal, zeros behind it; one thread for each row.

//@ launch causal_softmax<<<ceil_div(H * T, 64), 64>>>(x, out, H, T)
__global__ void causal_softmax(const float* x, float* out, int H, int T) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < H * T) {
    int i = row % T;
    float largest = x[row * T];
    for (int j = 1; j <= i; ++j) {
      largest = fmaxf(largest, x[row * T + j]);
    }
    float total = 0.0f;
    for (int j = 0; j <= i; ++j) {
      total += expf(x[row * T + j] - largest);
    }
    for (int j = 0; j < T; ++j) {
      out[row * T + j] = j <= i ? expf(x[row * T + j] - largest) / total : 0.0f;
    }
  }
}
