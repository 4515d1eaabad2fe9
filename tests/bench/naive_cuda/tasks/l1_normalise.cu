//@ launch l1_normalise<<<ceil_div(M, 1024), 1024>>>(x, y, M, N)
__global__ void l1_normalise(const float* x, float* y, size_t M, size_t N) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < M) {
    float total = 0.0f;
    for (size_t j = 0; j < N; ++j) {
      total += fabsf(x[i * N + j]);
    }
    const float divisor = fmaxf(total, 1e-12f);
    for (size_t j = 0; j < N; ++j) {
      y[i * N + j] = x[i * N + j] / divisor;
    }
  }
}
