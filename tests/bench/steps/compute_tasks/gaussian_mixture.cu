// Logarithm of the density of a mixture of K normal distributions with diagonal precisions, one thread for each point.

//@ launch gaussian_mixture<<<ceil_div(M, 128), 128>>>(x, mean, root, offset, out, M, K, D)
__global__ void gaussian_mixture(const float* x, const float* mean, const float* root, const float* offset, float* out,
                                 int M, int K, int D) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m < M) {
    float most = -3.0e38f;
    for (int k = 0; k < K; ++k) {
      float distance = 0.0f;
      for (int d = 0; d < D; ++d) {
        float z = (x[m * D + d] - mean[k * D + d]) * root[k * D + d];
        distance += z * z;
      }
      most = fmaxf(most, offset[k] - 0.5f * distance);
    }
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      float distance = 0.0f;
      for (int d = 0; d < D; ++d) {
        float z = (x[m * D + d] - mean[k * D + d]) * root[k * D + d];
        distance += z * z;
      }
      sum += expf(offset[k] - 0.5f * distance - most);
    }
    out[m] = most + logf(sum);
  }
}
