// A residual is added, then each row is standardized: two launches, one block for each row in the second.

//@ scratch sum: f32[M, N]
//@ launch add<<<ceil_div(M * N, 256), 256>>>(x, r, sum, M * N)
//@ launch standardize<<<M, 256>>>(sum, out, M, N)
__global__ void add(const float* x, const float* r, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    sum[i] = x[i] + r[i];
  }
}

__global__ void __launch_bounds__(256) standardize(const float* __restrict__ sum, float* __restrict__ out, int M, int N) {
  __shared__ float mean_parts[8];
  __shared__ float variance_parts[8];
  int i = blockIdx.x;
  int t = threadIdx.x;
  int lane = t & 31;
  int warp = t >> 5;

  float mean = 0.0f;
#pragma unroll 8
  for (int j = t; j < N; j += 256) {
    mean += sum[i * N + j];
  }
#pragma unroll
  for (int reach = 16; reach > 0; reach /= 2) {
    mean += __shfl_xor_sync(0xffffffffu, mean, reach);
  }
  if (lane == 0) {
    mean_parts[warp] = mean;
  }
  __syncthreads();
  mean = 0.0f;
#pragma unroll
  for (int w = 0; w < 8; ++w) {
    mean += mean_parts[w];
  }
  mean /= N;

  float variance = 0.0f;
#pragma unroll 8
  for (int j = t; j < N; j += 256) {
    float d = sum[i * N + j] - mean;
    variance += d * d;
  }
#pragma unroll
  for (int reach = 16; reach > 0; reach /= 2) {
    variance += __shfl_xor_sync(0xffffffffu, variance, reach);
  }
  if (lane == 0) {
    variance_parts[warp] = variance;
  }
  __syncthreads();
  variance = 0.0f;
#pragma unroll
  for (int w = 0; w < 8; ++w) {
    variance += variance_parts[w];
  }
  float scale = rsqrtf(variance / N + 1e-5f);

#pragma unroll 8
  for (int j = t; j < N; j += 256) {
    out[i * N + j] = (sum[i * N + j] - mean) * scale;
  }
}
