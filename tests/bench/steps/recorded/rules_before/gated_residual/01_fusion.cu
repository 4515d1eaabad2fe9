// One launch for all four operations, one thread for each element.

//@ launch gated_residual<<<ceil_div(M * N, 256), 256>>>(x, b, mask, r, out, M * N, N)
__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                      const float* __restrict__ mask, const float* __restrict__ r,
                                                      float* __restrict__ out, int n, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float m = mask[i];
    float residual = r[i];
    float biased = x[i] + b[i % N];
    float gated = biased / (1.0f + expf(-biased));
    float masked = gated * m * 1.25f;
    out[i] = masked + residual;
  }
}
