// A loss for each row by one warp, rows prefetched, partial sums added by the block that finishes last.

#include <cmath>

//@ scratch partial: f32[528]
//@ scratch arrived: i32[1] zero
//@ launch focal_loss<<<min(ceil_div(M, 8), 528), 256>>>(x, label, partial, arrived, loss, M, N)
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ __forceinline__ float focal(float value, float largest, float total) {
  const float log_probability = value - largest - logf(total);
  const float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__global__ void __launch_bounds__(256, 4) focal_loss(const float* __restrict__ x, const int* __restrict__ label,
                                                     float* partial, int* arrived, float* __restrict__ loss, int M,
                                                     int N) {
  __shared__ float sums[8];
  __shared__ int last;
  const int t = threadIdx.x;
  const int warp = t >> 5;
  const int lane = t & 31;
  const int stride = gridDim.x * 8;
  float acc = 0.0f;

  if (N == 512) {
    int row = blockIdx.x * 8 + warp;
    if (row < M) {
      float4 v[4];
      int lab = __ldg(label + row);
      {
        const float4* p = reinterpret_cast<const float4*>(x + (size_t)row * 512) + lane;
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = __ldg(p + k * 32);
      }
      while (true) {
        const float value = __ldg(x + (size_t)row * 512 + lab);
        const int next = row + stride;
        const bool more = next < M;
        float4 w[4];
        int next_lab = 0;
        if (more) {
          const float4* p = reinterpret_cast<const float4*>(x + (size_t)next * 512) + lane;
          next_lab = __ldg(label + next);
#pragma unroll
          for (int k = 0; k < 4; ++k) w[k] = __ldg(p + k * 32);
        } else {
#pragma unroll
          for (int k = 0; k < 4; ++k) w[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }

        float m[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) m[k] = fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w));
        const float largest = warp_max(fmaxf(fmaxf(m[0], m[1]), fmaxf(m[2], m[3])));
        float s[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          s[k] = (expf(v[k].x - largest) + expf(v[k].y - largest)) + (expf(v[k].z - largest) + expf(v[k].w - largest));
        }
        const float total = warp_sum((s[0] + s[1]) + (s[2] + s[3]));
        acc += focal(value, largest, total);

        if (!more) break;
        row = next;
        lab = next_lab;
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = w[k];
      }
    }
  } else {
    for (int row = blockIdx.x * 8 + warp; row < M; row += stride) {
      const float* p = x + (size_t)row * (size_t)N;
      float largest = -INFINITY;
      for (int j = lane; j < N; j += 32) largest = fmaxf(largest, p[j]);
      largest = warp_max(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) total += expf(p[j] - largest);
      total = warp_sum(total);
      acc += focal(p[label[row]], largest, total);
    }
  }

  if (lane == 0) sums[warp] = acc;
  __syncthreads();
  if (t == 0) {
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) s += sums[k];
    __stcg(partial + blockIdx.x, s);
    __threadfence();
    last = atomicAdd(arrived, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    __threadfence();
    float s = 0.0f;
    for (int i = t; i < (int)gridDim.x; i += 256) s += __ldcg(partial + i);
    s = warp_sum(s);
    if (lane == 0) sums[warp] = s;
    __syncthreads();
    if (t == 0) {
      float total = 0.0f;
#pragma unroll
      for (int k = 0; k < 8; ++k) total += sums[k];
      loss[0] = total / (float)M;
    }
  }
}
