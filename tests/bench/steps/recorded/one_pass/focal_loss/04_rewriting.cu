// A warp for each row, the row in registers; sums of blocks meet in the last block.

#include <cmath>

//@ scratch partial: f32[528]
//@ scratch finished: i32[1] zero
//@ launch focal_loss<<<min(528, ceil_div(M, 8)), 256>>>(x, label, partial, finished, loss, M, N)

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

__device__ __forceinline__ float loss_of(float value, float largest, float total) {
  float log_probability = value - largest - logf(total);
  float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__global__ void __launch_bounds__(256, 4) focal_loss(const float* __restrict__ x, const int* __restrict__ label,
                                                     float* partial, int* finished, float* loss, int M, int N) {
  __shared__ float red[8];
  __shared__ int is_last;
  const float LOG2E = 1.4426950408889634f;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int stride = gridDim.x * 8;
  float acc = 0.0f;

  int row = blockIdx.x * 8 + warp;
  if (N == 512) {
    float4 v[4];
    int lab = 0;
    if (row < M) {
      const float4* p = reinterpret_cast<const float4*>(x + (size_t)row * 512) + lane;
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        v[k] = __ldg(p + 32 * k);
      }
      lab = __ldg(label + row);
    }
    while (row < M) {
      const int next = row + stride;
      float4 w[4];
      int next_lab = 0;
      if (next < M) {
        const float4* p = reinterpret_cast<const float4*>(x + (size_t)next * 512) + lane;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          w[k] = __ldg(p + 32 * k);
        }
        next_lab = __ldg(label + next);
      }
      const float value = __ldg(x + (size_t)row * 512 + lab);

      float m0 = fmaxf(fmaxf(v[0].x, v[0].y), fmaxf(v[0].z, v[0].w));
      float m1 = fmaxf(fmaxf(v[1].x, v[1].y), fmaxf(v[1].z, v[1].w));
      float m2 = fmaxf(fmaxf(v[2].x, v[2].y), fmaxf(v[2].z, v[2].w));
      float m3 = fmaxf(fmaxf(v[3].x, v[3].y), fmaxf(v[3].z, v[3].w));
      const float largest = warp_max(fmaxf(fmaxf(m0, m1), fmaxf(m2, m3)));

      float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        s0 += exp2f((v[k].x - largest) * LOG2E);
        s1 += exp2f((v[k].y - largest) * LOG2E);
        s2 += exp2f((v[k].z - largest) * LOG2E);
        s3 += exp2f((v[k].w - largest) * LOG2E);
      }
      const float total = warp_sum((s0 + s1) + (s2 + s3));
      acc += loss_of(value, largest, total);

      if (next < M) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          v[k] = w[k];
        }
      }
      lab = next_lab;
      row = next;
    }
  } else {
    for (; row < M; row += stride) {
      const float* p = x + (size_t)row * N;
      float largest = -INFINITY;
      for (int j = lane; j < N; j += 32) {
        largest = fmaxf(largest, p[j]);
      }
      largest = warp_max(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) {
        total += expf(p[j] - largest);
      }
      total = warp_sum(total);
      acc += loss_of(p[label[row]], largest, total);
    }
  }

  if (lane == 0) {
    red[warp] = acc;
  }
  __syncthreads();
  if (tid == 0) {
    float s = 0.0f;
    #pragma unroll
    for (int k = 0; k < 8; ++k) {
      s += red[k];
    }
    __stcg(partial + blockIdx.x, s);
    __threadfence();
    is_last = atomicAdd(finished, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    __threadfence();
    float s = 0.0f;
    for (int k = tid; k < (int)gridDim.x; k += 256) {
      s += __ldcg(partial + k);
    }
    s = warp_sum(s);
    if (lane == 0) {
      red[warp] = s;
    }
    __syncthreads();
    if (tid == 0) {
      float t = 0.0f;
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        t += red[k];
      }
      loss[0] = t / M;
    }
  }
}
