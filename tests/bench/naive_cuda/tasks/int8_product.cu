// Activations in f32, weights in int8 with a scale and a zero point for each output channel.
// y[m][n] = sum_k x[m][k] * (q[n][k] - zero[n]) * scale[n]

//@ launch int8_linear<<<(ceil_div(N, 128), M), 128>>>(x, q, scale, zero, y, N, K)

static __device__ __forceinline__ float dequantize(signed char value, signed char zero, float scale) {
  return (float)((int)value - (int)zero) * scale;
}

__global__ void int8_linear(const float* x, const signed char* q, const float* scale, const signed char* zero,
                            float* y, int N, int K) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  const int m = blockIdx.y;
  if (n >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) {
    sum += x[m * K + k] * dequantize(q[n * K + k], zero[n], scale[n]);
  }
  y[m * N + n] = sum;
}
