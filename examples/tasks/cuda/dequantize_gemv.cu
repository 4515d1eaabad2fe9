// y = (Q * scale of each row) x: weights as 8-bit integers, one thread for each row.

//@ launch dequantize_gemv<<<ceil_div(M, 128), 128>>>(Q, scales, x, y, M, K)
__global__ void dequantize_gemv(const signed char* Q, const float* scales, const float* x, float* y, int M, int K) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      sum += (float)Q[i * K + k] * x[k];
    }
    y[i] = sum * scales[i];
  }
}
