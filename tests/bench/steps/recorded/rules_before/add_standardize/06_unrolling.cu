// A residual is added, then each row is standardized: two launches, one block for each row in the second.

//@ scratch sum: f32[M, N]
//@ launch add<<<ceil_div(M * N, 1024), 256>>>(x, r, sum, M * N)
//@ launch standardize<<<M, 256>>>(sum, out, M, N)
__global__ void add(const float* __restrict__ x, const float* __restrict__ r, float* __restrict__ sum, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) {
    float4 a = *reinterpret_cast<const float4*>(x + i);
    float4 b = *reinterpret_cast<const float4*>(r + i);
    float4 s;
    s.x = a.x + b.x;
    s.y = a.y + b.y;
    s.z = a.z + b.z;
    s.w = a.w + b.w;
    *reinterpret_cast<float4*>(sum + i) = s;
  } else {
    for (; i < n; ++i) {
      sum[i] = x[i] + r[i];
    }
  }
}

__global__ void __launch_bounds__(256) standardize(const float* __restrict__ sum, float* __restrict__ out, int M, int N) {
  __shared__ float mean_parts[8];
  __shared__ float variance_parts[8];
  int i = blockIdx.x;
  int t = threadIdx.x;
  int lane = t & 31;
  int warp = t >> 5;

  float mean0 = 0.0f, mean1 = 0.0f, mean2 = 0.0f, mean3 = 0.0f;
  float mean4 = 0.0f, mean5 = 0.0f, mean6 = 0.0f, mean7 = 0.0f;
  int k = t;
#pragma unroll 1
  for (; k + 1792 < N; k += 2048) {
    const float* p = sum + (i * N + k);
    float v0 = p[0];
    float v1 = p[256];
    float v2 = p[512];
    float v3 = p[768];
    float v4 = p[1024];
    float v5 = p[1280];
    float v6 = p[1536];
    float v7 = p[1792];
    mean0 += v0;
    mean1 += v1;
    mean2 += v2;
    mean3 += v3;
    mean4 += v4;
    mean5 += v5;
    mean6 += v6;
    mean7 += v7;
  }
#pragma unroll 1
  for (; k < N; k += 256) {
    mean0 += sum[i * N + k];
  }
  float mean = ((mean0 + mean1) + (mean2 + mean3)) + ((mean4 + mean5) + (mean6 + mean7));
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
