// Softmax along the rows, one block of 256 threads for each row. Neighbouring threads read neighbouring
// elements; the threads of a warp combine their results by shuffles, the warps theirs through shared memory.

__device__ float largest_of(float value, float* of_warps) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  if (threadIdx.x % 32 == 0) {
    of_warps[threadIdx.x / 32] = value;
  }
  __syncthreads();
  for (int warp = 0; warp < 8; ++warp) {
    value = fmaxf(value, of_warps[warp]);
  }
  return value;
}

__device__ float sum_of(float value, float* of_warps) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  if (threadIdx.x % 32 == 0) {
    of_warps[threadIdx.x / 32] = value;
  }
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < 8; ++warp) {
    total += of_warps[warp];
  }
  return total;
}

//@ launch softmax<<<M, 256>>>(x, y, M, N)
__global__ void softmax(const float* x, float* y, int M, int N) {
  __shared__ float maxima[8];
  __shared__ float sums[8];
  long long row = static_cast<long long>(blockIdx.x) * N;
  // The least float, not infinity: a difference of infinities would be no number.
  float largest = -3.402823466e+38f;
  for (int j = threadIdx.x; j < N; j += 256) {
    largest = fmaxf(largest, x[row + j]);
  }
  largest = largest_of(largest, maxima);
  float total = 0.0f;
  for (int j = threadIdx.x; j < N; j += 256) {
    total += expf(x[row + j] - largest);
  }
  total = sum_of(total, sums);
  for (int j = threadIdx.x; j < N; j += 256) {
    y[row + j] = expf(x[row + j] - largest) / total;
  }
}
