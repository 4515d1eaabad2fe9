// KL(target || softmax(logits)), "batchmean": log_softmax, the sum of each row, and the mean over the batch.

//@ scratch logq: f32[M, N]
//@ scratch row_kl: f32[M]
//@ launch log_softmax_rows<<<ceil_div(M, 128), 128>>>(logits, logq, M, N)
//@ launch kl_rows<<<ceil_div(M, 128), 128>>>(logq, target, row_kl, M, N)
//@ launch batch_mean<<<1, 1>>>(row_kl, loss, M)

__global__ void log_softmax_rows(const float* x, float* logq, unsigned M, unsigned N) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float top = x[i * N];
    for (unsigned j = 1; j < N; j++) top = x[i * N + j] > top ? x[i * N + j] : top;
    float sum = 0.0f;
    for (unsigned j = 0; j < N; j++) sum += expf(x[i * N + j] - top);
    float log_sum = logf(sum);
    for (unsigned j = 0; j < N; j++) logq[i * N + j] = x[i * N + j] - top - log_sum;
  }
}

__global__ void kl_rows(const float* logq, const float* target, float* row_kl, unsigned M, unsigned N) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float kl = 0.0f;
    for (unsigned j = 0; j < N; j++) {
      float p = target[i * N + j];
      if (p > 0.0f) kl += p * (logf(p) - logq[i * N + j]);
    }
    row_kl[i] = kl;
  }
}

__global__ void batch_mean(const float* row_kl, float* loss, unsigned M) {
  float sum = 0.0f;
  for (unsigned i = 0; i < M; i++) sum += row_kl[i];
  *loss = sum / M;
}
