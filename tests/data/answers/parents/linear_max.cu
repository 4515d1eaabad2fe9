//@ scratch T: f32[M, N]
//@ launch linear<<<(ceil_div(N, 16), M), 16>>>(X, W, T, N, K)
//@ launch row_max<<<M, 1>>>(T, Y, N)
__global__ void linear(const float* X, const float* W, float* T, int N, int K) {
  int j = blockIdx.x * 16 + threadIdx.x;
  if (j >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum += X[blockIdx.y * K + k] * W[k * N + j];
  T[blockIdx.y * N + j] = sum;
}
__global__ void row_max(const float* T, float* Y, int N) {
  float largest = T[blockIdx.x * N];
  for (int j = 1; j < N; ++j) largest = fmaxf(largest, T[blockIdx.x * N + j]);
  Y[blockIdx.x] = largest;
}
