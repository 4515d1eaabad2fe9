// A residual is added, then each row is standardized: one launch, one block for each row, the row kept in registers.

//@ launch add_standardize<<<M, 256>>>(x, r, out, M, N)
#define THREADS 256
#define WARPS (THREADS / 32)
#define FULL 0xffffffffu

__device__ __forceinline__ float block_sum(float v, float* part) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v += __shfl_xor_sync(FULL, v, o);
  }
  if ((threadIdx.x & 31) == 0) {
    part[threadIdx.x >> 5] = v;
  }
  __syncthreads();
  float s = 0.0f;
  #pragma unroll
  for (int w = 0; w < WARPS; ++w) {
    s += part[w];
  }
  return s;
}

__global__ void __launch_bounds__(THREADS) add_standardize(const float* __restrict__ x, const float* __restrict__ r,
                                                           float* __restrict__ out, int M, int N) {
  __shared__ float part_a[WARPS];
  __shared__ float part_b[WARPS];
  const int t = threadIdx.x;
  const size_t base = (size_t)blockIdx.x * (size_t)N;

  if (N == THREADS * 8) {
    const float4* x4 = reinterpret_cast<const float4*>(x + base) + t;
    const float4* r4 = reinterpret_cast<const float4*>(r + base) + t;
    float4 a = __ldcs(x4);
    float4 b = __ldcs(x4 + THREADS);
    const float4 c = __ldcs(r4);
    const float4 d = __ldcs(r4 + THREADS);
    a.x += c.x;
    a.y += c.y;
    a.z += c.z;
    a.w += c.w;
    b.x += d.x;
    b.y += d.y;
    b.z += d.z;
    b.w += d.w;

    // mean and squared deviations of the eight values of this thread
    float mean = (((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w))) * 0.125f;
    float m2 = 0.0f;
    {
      float e;
      e = a.x - mean; m2 += e * e;
      e = a.y - mean; m2 += e * e;
      e = a.z - mean; m2 += e * e;
      e = a.w - mean; m2 += e * e;
      e = b.x - mean; m2 += e * e;
      e = b.y - mean; m2 += e * e;
      e = b.z - mean; m2 += e * e;
      e = b.w - mean; m2 += e * e;
    }

    // groups of equal size are merged: the squared deviations grow by delta^2 * count / 2
    float half_count = 4.0f;
    #pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const float other_mean = __shfl_xor_sync(FULL, mean, o);
      const float other_m2 = __shfl_xor_sync(FULL, m2, o);
      const float delta = other_mean - mean;
      mean = 0.5f * (mean + other_mean);
      m2 = (m2 + other_m2) + delta * delta * half_count;
      half_count *= 2.0f;
    }
    if ((t & 31) == 0) {
      part_a[t >> 5] = mean;
      part_b[t >> 5] = m2;
    }
    __syncthreads();
    float total = 0.0f;
    float deviations = 0.0f;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      total += part_a[w];
      deviations += part_b[w];
    }
    mean = total * (1.0f / WARPS);
    float between = 0.0f;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      const float delta = part_a[w] - mean;
      between += delta * delta;
    }
    deviations += between * 256.0f;
    const float scale = rsqrtf(deviations * (1.0f / (THREADS * 8)) + 1e-5f);

    a.x = (a.x - mean) * scale;
    a.y = (a.y - mean) * scale;
    a.z = (a.z - mean) * scale;
    a.w = (a.w - mean) * scale;
    b.x = (b.x - mean) * scale;
    b.y = (b.y - mean) * scale;
    b.z = (b.z - mean) * scale;
    b.w = (b.w - mean) * scale;
    float4* o4 = reinterpret_cast<float4*>(out + base) + t;
    __stcs(o4, a);
    __stcs(o4 + THREADS, b);
  } else {
    const float* xr = x + base;
    const float* rr = r + base;
    float* orow = out + base;
    float s = 0.0f;
    for (int j = t; j < N; j += THREADS) {
      s += xr[j] + rr[j];
    }
    const float mean = block_sum(s, part_a) / N;
    float v = 0.0f;
    for (int j = t; j < N; j += THREADS) {
      const float e = (xr[j] + rr[j]) - mean;
      v += e * e;
    }
    const float variance = block_sum(v, part_b);
    const float scale = rsqrtf(variance / N + 1e-5f);
    for (int j = t; j < N; j += THREADS) {
      orow[j] = ((xr[j] + rr[j]) - mean) * scale;
    }
  }
}
