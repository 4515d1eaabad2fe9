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
    const float* row = x + i * N;
    int j0 = min((4 - ((i * N) & 3)) & 3, N);  // the first element of the row at a multiple of 16 bytes
    int quads = (N - j0) / 4;
    for (int j = 1; j < j0; ++j) {
      largest = fmaxf(largest, row[j]);
    }
    const float4* row4 = reinterpret_cast<const float4*>(row + j0);
    float largest1 = largest, largest2 = largest, largest3 = largest;
    int q = 0;
#pragma unroll 1
    for (; q + 8 <= quads; q += 8) {
      float4 v[8];
#pragma unroll
      for (int p = 0; p < 8; ++p) {
        v[p] = row4[q + p];
      }
#pragma unroll
      for (int p = 0; p < 8; ++p) {
        largest = fmaxf(largest, v[p].x);
        largest1 = fmaxf(largest1, v[p].y);
        largest2 = fmaxf(largest2, v[p].z);
        largest3 = fmaxf(largest3, v[p].w);
      }
    }
#pragma unroll 1
    for (; q < quads; ++q) {
      float4 v = row4[q];
      largest = fmaxf(largest, v.x);
      largest1 = fmaxf(largest1, v.y);
      largest2 = fmaxf(largest2, v.z);
      largest3 = fmaxf(largest3, v.w);
    }
    largest = fmaxf(fmaxf(largest, largest1), fmaxf(largest2, largest3));
    for (int j = j0 + 4 * quads; j < N; ++j) {
      largest = fmaxf(largest, row[j]);
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
