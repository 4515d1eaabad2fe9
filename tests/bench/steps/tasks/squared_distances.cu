// Squared distances between two sets of points, one thread for each pair.

//@ launch squared_distances<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(q, p, out, M, N, D)
__global__ void squared_distances(const float* q, const float* p, float* out, int M, int N, int D) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < M && j < N) {
    float sum = 0.0f;
    for (int d = 0; d < D; ++d) {
      float difference = q[i * D + d] - p[j * D + d];
      sum += difference * difference;
    }
    out[i * N + j] = sum;
  }
}
