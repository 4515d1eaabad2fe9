// out = in transposed, one element for each thread.

//@ launch transpose<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(in, out, M, N)
__global__ void transpose(const float* in, float* out, int M, int N) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) {
    out[j * M + i] = in[i * N + j];
  }
}
