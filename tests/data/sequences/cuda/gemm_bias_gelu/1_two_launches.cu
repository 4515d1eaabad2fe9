// y = gelu(x W + b), row-major, in two launches: the bias and the activation are one pass over the product.

//@ scratch product: f32[M, N]
//@ launch linear<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(x, W, product, M, N, K)
//@ launch add_bias_gelu<<<ceil_div(M * N, 256), 256>>>(product, b, y, M, N)

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

__global__ void add_bias_gelu(const float* in, const float* b, float* out, int M, int N) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) {
    float v = in[at] + b[at % N];
    out[at] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  }
}
