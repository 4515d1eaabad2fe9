// A loss for each row by a warp, then their mean by one thread: two launches.

//@ scratch losses: f32[M]
//@ launch row_loss<<<ceil_div(M, 8), 256>>>(x, label, losses, M, N)
//@ launch average<<<1, 1>>>(losses, loss, M)
__global__ void __launch_bounds__(256) row_loss(const float* __restrict__ x, const int* __restrict__ label, float* __restrict__ losses, int M, int N) {
  int lane = threadIdx.x & 31;
  int i = blockIdx.x * 8 + (threadIdx.x >> 5);
  if (i < M) {
    const float* row = x + i * N;
    float chosen = row[label[i]];
    float largest = row[0];
#pragma unroll 16
    for (int j = lane; j < N; j += 32) {
      largest = fmaxf(largest, row[j]);
    }
#pragma unroll
    for (int reach = 16; reach > 0; reach /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, reach));
    }
    float total = 0.0f;
#pragma unroll 16
    for (int j = lane; j < N; j += 32) {
      total += expf(row[j] - largest);
    }
#pragma unroll
    for (int reach = 16; reach > 0; reach /= 2) {
      total += __shfl_xor_sync(0xffffffffu, total, reach);
    }
    if (lane == 0) {
      float log_probability = chosen - largest - logf(total);
      float rest = 1.0f - expf(log_probability);
      losses[i] = -rest * rest * log_probability;
    }
  }
}

__global__ void average(const float* losses, float* loss, int M) {
  float sum = 0.0f;
  for (int i = 0; i < M; ++i) {
    sum += losses[i];
  }
  loss[0] = sum / M;
}
