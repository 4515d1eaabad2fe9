// A linear layer and its activation as a framework without fusion runs them: y = gelu(x W + b).

//@ scratch product: f32[M, N]
//@ scratch shifted: f32[M, N]
//@ launch linear<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(x, W, product, M, N, K)
//@ launch add_bias<<<ceil_div(M * N, 256), 256>>>(product, b, shifted, M, N)
//@ launch gelu<<<ceil_div(M * N, 256), 256>>>(shifted, y, M * N)

__global__ void linear(const float* x, const float* W, float* out, int M, int N, int K) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      sum += x[i * K + k] * W[k * N + j];
    }
    out[i * N + j] = sum;
  }
}

__global__ void add_bias(const float* in, const float* b, float* out, int M, int N) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) {
    out[at] = in[at] + b[at % N];
  }
}

__global__ void gelu(const float* in, float* out, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) {
    float v = in[at];
    out[at] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  }
}
