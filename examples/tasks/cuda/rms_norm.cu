// Root-mean-square normalisation along the rows, one thread for each row.

//@ launch rms_norm<<<ceil_div(M, 128), 128>>>(x, scale, y, M, N, epsilon)
__global__ void rms_norm(const float* x, const float* scale, float* y, int M, int N, float epsilon) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float squares = 0.0f;
    for (int j = 0; j < N; ++j) {
      squares += x[i * N + j] * x[i * N + j];
    }
    float factor = 1.0f / sqrtf(squares / N + epsilon);
    for (int j = 0; j < N; ++j) {
      y[i * N + j] = x[i * N + j] * factor * scale[j];
    }
  }
}
