// Layer normalisation along the rows with learnt scale and shift, one thread for each row.

//@ launch layer_norm<<<ceil_div(M, 128), 128>>>(x, scale, shift, y, M, N, epsilon)
__global__ void layer_norm(const float* x, const float* scale, const float* shift, float* y, int M, int N,
                           float epsilon) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float mean = 0.0f;
    for (int j = 0; j < N; ++j) {
      mean += x[i * N + j];
    }
    mean /= N;
    float variance = 0.0f;
    for (int j = 0; j < N; ++j) {
      float d = x[i * N + j] - mean;
      variance += d * d;
    }
    variance /= N;
    float factor = 1.0f / sqrtf(variance + epsilon);
    for (int j = 0; j < N; ++j) {
      y[i * N + j] = (x[i * N + j] - mean) * factor * scale[j] + shift[j];
    }
  }
}
