// Two products of one input, and one result gated by the other: three launches, one thread for each element.

//@ scratch gate: f32[M, N]
//@ scratch value: f32[M, N]
//@ launch project<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(x, W, gate, M, N, K)
//@ launch project<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(x, V, value, M, N, K)
//@ launch combine<<<ceil_div(M * N, 256), 256>>>(gate, value, out, M * N)
__global__ void project(const float* x, const float* W, float* y, int M, int N, int K) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < M && j < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      sum += x[i * K + k] * W[k * N + j];
    }
    y[i * N + j] = sum;
  }
}

__global__ void combine(const float* gate, const float* value, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = gate[i] / (1.0f + expf(-gate[i])) * value[i];
  }
}
