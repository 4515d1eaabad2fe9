// A warp takes a row in registers, sums its losses, and the last block makes the mean: one launch.

#include <math_constants.h>

//@ scratch partial: f32[528]
//@ scratch counter: i32[1] zero
//@ launch row_loss<<<528, 256>>>(x, label, partial, counter, loss, M, N)

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

__device__ __forceinline__ float max4(float4 a) {
  return fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w));
}

__device__ __forceinline__ float exps4(float4 a, float largest) {
  const float c = 1.4426950408889634f;
  return (exp2f((a.x - largest) * c) + exp2f((a.y - largest) * c)) +
         (exp2f((a.z - largest) * c) + exp2f((a.w - largest) * c));
}

__device__ __forceinline__ float focal(float value, float largest, float total) {
  const float log_probability = value - largest - logf(total);
  const float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__global__ void __launch_bounds__(256, 4) row_loss(const float* __restrict__ x, const int* __restrict__ label,
                                                   float* partial, int* counter, float* loss, int M, int N) {
  __shared__ float warps[8];
  __shared__ int last;
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int step = gridDim.x * 8;
  int i = blockIdx.x * 8 + warp;
  float sum = 0.0f;

  if (N == 512) {
    float4 n0 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 n1 = n0, n2 = n0, n3 = n0;
    int nl = 0;
    if (i < M) {
      const float4* p = reinterpret_cast<const float4*>(x + (size_t)i * 512) + lane;
      n0 = __ldcs(p);
      n1 = __ldcs(p + 32);
      n2 = __ldcs(p + 64);
      n3 = __ldcs(p + 96);
      nl = __ldg(label + i);
    }
    while (i < M) {
      const float4 a0 = n0, a1 = n1, a2 = n2, a3 = n3;
      const int l = nl;
      i += step;
      if (i < M) {
        const float4* p = reinterpret_cast<const float4*>(x + (size_t)i * 512) + lane;
        n0 = __ldcs(p);
        n1 = __ldcs(p + 32);
        n2 = __ldcs(p + 64);
        n3 = __ldcs(p + 96);
        nl = __ldg(label + i);
      }
      const float largest = warp_max(fmaxf(fmaxf(max4(a0), max4(a1)), fmaxf(max4(a2), max4(a3))));
      const float total =
          warp_sum((exps4(a0, largest) + exps4(a1, largest)) + (exps4(a2, largest) + exps4(a3, largest)));
      // the element of the label is in a register of one lane
      const bool c1 = (l & 128) != 0;
      const bool c2 = (l & 256) != 0;
      const bool e1 = (l & 1) != 0;
      const bool e2 = (l & 2) != 0;
      const float fx = c2 ? (c1 ? a3.x : a2.x) : (c1 ? a1.x : a0.x);
      const float fy = c2 ? (c1 ? a3.y : a2.y) : (c1 ? a1.y : a0.y);
      const float fz = c2 ? (c1 ? a3.z : a2.z) : (c1 ? a1.z : a0.z);
      const float fw = c2 ? (c1 ? a3.w : a2.w) : (c1 ? a1.w : a0.w);
      const float mine = e2 ? (e1 ? fw : fz) : (e1 ? fy : fx);
      const float value = __shfl_sync(0xffffffffu, mine, (l >> 2) & 31);
      sum += focal(value, largest, total);
    }
  } else {
    for (; i < M; i += step) {
      const float* row = x + (size_t)i * (size_t)N;
      float largest = -CUDART_INF_F;
      for (int j = lane; j < N; j += 32) {
        largest = fmaxf(largest, row[j]);
      }
      largest = warp_max(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) {
        total += exp2f((row[j] - largest) * 1.4426950408889634f);
      }
      total = warp_sum(total);
      sum += focal(row[label[i]], largest, total);
    }
  }

  if (lane == 0) {
    warps[warp] = sum;
  }
  __syncthreads();
  if (t == 0) {
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      s += warps[k];
    }
    __stcg(partial + blockIdx.x, s);
    __threadfence();
    last = atomicAdd(counter, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    __threadfence();
    float s = 0.0f;
    for (int k = t; k < (int)gridDim.x; k += 256) {
      s += __ldcg(partial + k);
    }
    s = warp_sum(s);
    if (lane == 0) {
      warps[warp] = s;
    }
    __syncthreads();
    if (t == 0) {
      float all = 0.0f;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        all += warps[k];
      }
      loss[0] = all / M;
    }
  }
}
