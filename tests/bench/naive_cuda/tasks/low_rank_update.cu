// out = residual + alpha * (A @ B)
// A is tall and skinny (M x K), B is K x N with small K and N.
//@ launch low_rank_update<<<ceil_div(M * N, 256), 256>>>(A, B, residual, out, alpha, M, N, K)

__global__ void low_rank_update(const float* __restrict__ A,
                                const float* __restrict__ B,
                                const float* __restrict__ residual,
                                float* __restrict__ out,
                                const float alpha,
                                const int M,
                                const int N,
                                const int K) {
  const int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= M * N) {
    return;
  }
  const int i = idx / N;
  const int j = idx % N;

  float value = 0.0f;
  for (int k = 0; k < K; ++k) {
    value += A[i * K + k] * B[k * N + j];
  }
  out[idx] = residual[idx] + alpha * value;
}
