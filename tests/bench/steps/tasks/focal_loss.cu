// A loss for each row, then their mean by one thread: two launches.

//@ scratch losses: f32[M]
//@ launch row_loss<<<ceil_div(M, 128), 128>>>(x, label, losses, M, N)
//@ launch average<<<1, 1>>>(losses, loss, M)
__global__ void row_loss(const float* x, const int* label, float* losses, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float largest = x[i * N];
    for (int j = 1; j < N; ++j) {
      largest = fmaxf(largest, x[i * N + j]);
    }
    float total = 0.0f;
    for (int j = 0; j < N; ++j) {
      total += expf(x[i * N + j] - largest);
    }
    float log_probability = x[i * N + label[i]] - largest - logf(total);
    float rest = 1.0f - expf(log_probability);
    losses[i] = -rest * rest * log_probability;
  }
}

__global__ void average(const float* losses, float* loss, int M) {
  float sum = 0.0f;
  for (int i = 0; i < M; ++i) {
    sum += losses[i];
  }
  loss[0] = sum / M;
}
