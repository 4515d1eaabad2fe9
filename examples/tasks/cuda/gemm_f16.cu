// C = A B, row-major: inputs in half precision, sums and results in single precision.

#include <cuda_fp16.h>

//@ launch gemm_f16<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, C, M, N, K)
__global__ void gemm_f16(const __half* A, const __half* B, float* C, int M, int N, int K) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      sum += __half2float(A[i * K + k]) * __half2float(B[k * N + j]);
    }
    C[i * N + j] = sum;
  }
}
