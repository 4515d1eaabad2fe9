// A residual is added, then each row is standardized: two launches, one thread for each row in the second.

//@ scratch sum: f32[M, N]
//@ launch add<<<ceil_div(M * N, 256), 256>>>(x, r, sum, M * N)
//@ launch standardize<<<ceil_div(M, 64), 64>>>(sum, out, M, N)
__global__ void add(const float* x, const float* r, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    sum[i] = x[i] + r[i];
  }
}

__global__ void standardize(const float* sum, float* out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float mean = 0.0f;
    for (int j = 0; j < N; ++j) {
      mean += sum[i * N + j];
    }
    mean /= N;
    float variance = 0.0f;
    for (int j = 0; j < N; ++j) {
      variance += (sum[i * N + j] - mean) * (sum[i * N + j] - mean);
    }
    float scale = rsqrtf(variance / N + 1e-5f);
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = (sum[i * N + j] - mean) * scale;
    }
  }
}
