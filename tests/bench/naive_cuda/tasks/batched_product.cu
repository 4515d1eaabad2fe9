//@ launch bmm<<<(ceil_div(N, 32), ceil_div(M, 8), batch), (32, 8)>>>(A, B, C, M, N, K)
__global__ void bmm(const float* A, const float* B, float* C, int M, int N, int K)
{
  const int n = blockIdx.x * 32 + threadIdx.x;
  const int m = blockIdx.y * 8 + threadIdx.y;
  if (m >= M || n >= N) return;

  // matrices of this batch entry
  const float* a = A + (size_t)blockIdx.z * M * K;
  const float* b = B + (size_t)blockIdx.z * K * N;
  float* c = C + (size_t)blockIdx.z * M * N;

  float s = 0.f;
  for (int k = 0; k < K; ++k) s += a[m * K + k] * b[k * N + n];
  c[m * N + n] = s;
}
