// A loss for each row and their mean in one kernel; the launch before it clears the result.

//@ launch clear_loss<<<1, 1>>>(loss)
//@ launch mean_loss<<<ceil_div(M, 128), 128>>>(x, label, loss, M, N)
__global__ void clear_loss(float* loss) {
  loss[0] = 0.0f;
}

__global__ void __launch_bounds__(128) mean_loss(const float* __restrict__ x, const int* __restrict__ label, float* loss, int M, int N) {
  __shared__ float parts[4];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  if (i < M) {
    float largest = x[i * N];
    for (int j = 1; j < N; ++j) {
      largest = fmaxf(largest, x[i * N + j]);
    }
    float total = 0.0f;
    for (int j = 0; j < N; ++j) {
      total += expf(x[i * N + j] - largest);
    }
    float log_probability = x[i * N + label[i]] - largest - logf(total);
    float rest = 1.0f - expf(log_probability);
    sum = -rest * rest * log_probability;
  }
#pragma unroll
  for (int reach = 16; reach > 0; reach /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, reach);
  }
  if ((threadIdx.x & 31) == 0) {
    parts[threadIdx.x >> 5] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    atomicAdd(loss, sum / M);
  }
}
