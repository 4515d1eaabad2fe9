// A warp for each row held in registers, four rows a warp; the last block to arrive makes the mean.

//@ scratch partial: f32[ceil_div(M, 32)]
//@ scratch arrived: i32[1] zero
//@ launch focal_loss<<<ceil_div(M, 32), 256>>>(x, label, partial, arrived, loss, M, N)

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  }
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, o);
  }
  return v;
}

__global__ void __launch_bounds__(256, 6) focal_loss(const float* __restrict__ x, const int* __restrict__ label, float* partial, int* arrived, float* loss, int M, int N) {
  __shared__ float s_part[8];
  __shared__ int s_last;
  int lane = threadIdx.x & 31;
  int warp = threadIdx.x >> 5;
  int first = blockIdx.x * 32 + warp * 4;
  int rows = M - first;
  if (rows > 4) {
    rows = 4;
  }
  int labels = 0;
  if (lane < rows) {
    labels = label[first + lane];
  }
  float acc = 0.0f;
  if (N == 512) {
    for (int k = 0; k < rows; ++k) {
      const float* row = x + (size_t)(first + k) * 512;
      const float4* p = reinterpret_cast<const float4*>(row) + lane;
      float4 a = __ldg(p);
      float4 b = __ldg(p + 32);
      float4 c = __ldg(p + 64);
      float4 d = __ldg(p + 96);
      float chosen = __ldg(row + __shfl_sync(0xffffffffu, labels, k));
      float m0 = fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w));
      float m1 = fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w));
      float m2 = fmaxf(fmaxf(c.x, c.y), fmaxf(c.z, c.w));
      float m3 = fmaxf(fmaxf(d.x, d.y), fmaxf(d.z, d.w));
      float largest = warp_max(fmaxf(fmaxf(m0, m1), fmaxf(m2, m3)));
      float s0 = __expf(a.x - largest);
      float s1 = __expf(a.y - largest);
      float s2 = __expf(a.z - largest);
      float s3 = __expf(a.w - largest);
      s0 += __expf(b.x - largest);
      s1 += __expf(b.y - largest);
      s2 += __expf(b.z - largest);
      s3 += __expf(b.w - largest);
      s0 += __expf(c.x - largest);
      s1 += __expf(c.y - largest);
      s2 += __expf(c.z - largest);
      s3 += __expf(c.w - largest);
      s0 += __expf(d.x - largest);
      s1 += __expf(d.y - largest);
      s2 += __expf(d.z - largest);
      s3 += __expf(d.w - largest);
      float total = warp_sum((s0 + s1) + (s2 + s3));
      float log_probability = chosen - largest - logf(total);
      float rest = 1.0f - expf(log_probability);
      acc += -rest * rest * log_probability;
    }
  } else {
    for (int k = 0; k < rows; ++k) {
      const float* row = x + (size_t)(first + k) * (size_t)N;
      float chosen = row[__shfl_sync(0xffffffffu, labels, k)];
      float largest = row[0];
      for (int j = lane; j < N; j += 32) {
        largest = fmaxf(largest, row[j]);
      }
      largest = warp_max(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) {
        total += expf(row[j] - largest);
      }
      total = warp_sum(total);
      float log_probability = chosen - largest - logf(total);
      float rest = 1.0f - expf(log_probability);
      acc += -rest * rest * log_probability;
    }
  }
  if (lane == 0) {
    s_part[warp] = acc;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float s = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      s += s_part[w];
    }
    __stcg(partial + blockIdx.x, s);
    __threadfence();
    int before = atomicAdd(arrived, 1);
    s_last = (before == (int)gridDim.x - 1) ? 1 : 0;
  }
  __syncthreads();
  if (s_last) {
    __threadfence();
    int blocks = (int)gridDim.x;
    float s = 0.0f;
#pragma unroll 8
    for (int i = threadIdx.x; i < blocks; i += 256) {
      s += __ldcg(partial + i);
    }
    s = warp_sum(s);
    if (lane == 0) {
      s_part[warp] = s;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      float t = 0.0f;
#pragma unroll
      for (int w = 0; w < 8; ++w) {
        t += s_part[w];
      }
      loss[0] = t / M;
    }
  }
}
