// A loss for each row and their mean in one kernel; the launch before it clears the counter of finished blocks.

//@ scratch partials: f32[ceil_div(M, 128)]
//@ scratch finished: i32[1]
//@ launch clear_finished<<<1, 1>>>(finished)
//@ launch mean_loss<<<ceil_div(M, 128), 128>>>(x, label, partials, finished, loss, M, N)
__global__ void clear_finished(int* finished) {
  finished[0] = 0;
}

// The sum over a block of 128 threads in a fixed order; the result is valid in thread 0.
__device__ __forceinline__ float block_sum(float sum, float* parts) {
#pragma unroll
  for (int reach = 16; reach > 0; reach /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, reach);
  }
  if ((threadIdx.x & 31) == 0) {
    parts[threadIdx.x >> 5] = sum;
  }
  __syncthreads();
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

__global__ void __launch_bounds__(128) mean_loss(const float* __restrict__ x, const int* __restrict__ label, float* partials,
                                                 int* finished, float* loss, int M, int N) {
  __shared__ float parts[4];
  __shared__ float last_parts[4];
  __shared__ int is_last;
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
  sum = block_sum(sum, parts);
  if (threadIdx.x == 0) {
    __stcg(partials + blockIdx.x, sum);
    __threadfence();
    int before = atomicAdd(finished, 1);
    __threadfence();
    is_last = before == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    float all = 0.0f;
    for (int k = threadIdx.x; k < (int)gridDim.x; k += 128) {
      all += __ldcg(partials + k);
    }
    all = block_sum(all, last_parts);
    if (threadIdx.x == 0) {
      loss[0] = all / M;
    }
  }
}
