// Four launches, one for each operation, one thread for each element.

//@ scratch biased: f32[M, N]
//@ scratch gated: f32[M, N]
//@ scratch masked: f32[M, N]
//@ launch add_bias<<<ceil_div(M * N, 256), 256>>>(x, b, biased, M * N, N)
//@ launch gate<<<ceil_div(M * N, 256), 256>>>(biased, gated, M * N)
//@ launch apply_mask<<<ceil_div(M * N, 256), 256>>>(gated, mask, masked, M * N)
//@ launch add_residual<<<ceil_div(M * N, 256), 256>>>(masked, r, out, M * N)
__global__ void add_bias(const float* x, const float* b, float* biased, int n, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    biased[i] = x[i] + b[i % N];
  }
}

__global__ void gate(const float* biased, float* gated, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    gated[i] = biased[i] / (1.0f + expf(-biased[i]));
  }
}

__global__ void apply_mask(const float* gated, const float* mask, float* masked, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    masked[i] = gated[i] * mask[i] * 1.25f;
  }
}

__global__ void add_residual(const float* masked, const float* r, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = masked[i] + r[i];
  }
}
