// A loss for each row by a warp, summed for each block; the last block to finish makes the mean: one launch.

//@ scratch partial: f32[528]
//@ scratch arrived: i32[1] zero
//@ launch focal_loss<<<min(528, ceil_div(M, 8)), 256>>>(x, label, partial, arrived, loss, M, N)
constexpr int FL_WARPS = 8;
constexpr int FL_VECS = 4;
constexpr float FL_LOG2E = 1.4426950408889634f;

__device__ __forceinline__ float fl_warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  }
  return v;
}

__device__ __forceinline__ float fl_warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, d);
  }
  return v;
}

__device__ __forceinline__ float fl_loss(float chosen, float largest, float total) {
  float log_probability = chosen - largest - logf(total);
  float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__device__ __forceinline__ void fl_load(float4 (&v)[FL_VECS], const float* __restrict__ row, int lane, int nv) {
  const float4* __restrict__ p = reinterpret_cast<const float4*>(row);
#pragma unroll
  for (int k = 0; k < FL_VECS; ++k) {
    const int j = lane + 32 * k;
    v[k] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    if (j < nv) {
      v[k] = __ldg(p + j);
    }
  }
}

__global__ void __launch_bounds__(256, 4) focal_loss(const float* __restrict__ x, const int* __restrict__ label,
                                                     float* partial, int* arrived, float* loss, int M, int N) {
  __shared__ float warp_part[FL_WARPS];
  __shared__ int is_last;
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int stride = gridDim.x * FL_WARPS;
  float sum = 0.0f;
  int i = blockIdx.x * FL_WARPS + warp;

  if ((N & 3) == 0 && N <= 128 * FL_VECS) {
    const int nv = N >> 2;
    float4 next[FL_VECS];
    int next_label = 0;
    if (i < M) {
      next_label = __ldg(label + i);
      fl_load(next, x + (size_t)i * (size_t)N, lane, nv);
    }
    while (i < M) {
      float4 v[FL_VECS];
#pragma unroll
      for (int k = 0; k < FL_VECS; ++k) {
        v[k] = next[k];
      }
      const float chosen = __ldg(x + (size_t)i * (size_t)N + next_label);
      const int following = i + stride;
      if (following < M) {
        next_label = __ldg(label + following);
        fl_load(next, x + (size_t)following * (size_t)N, lane, nv);
      }
      float largest = -INFINITY;
#pragma unroll
      for (int k = 0; k < FL_VECS; ++k) {
        largest = fmaxf(largest, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
      }
      largest = fl_warp_max(largest);
      float total = 0.0f;
#pragma unroll
      for (int k = 0; k < FL_VECS; ++k) {
        float e0 = exp2f((v[k].x - largest) * FL_LOG2E);
        float e1 = exp2f((v[k].y - largest) * FL_LOG2E);
        float e2 = exp2f((v[k].z - largest) * FL_LOG2E);
        float e3 = exp2f((v[k].w - largest) * FL_LOG2E);
        total += (e0 + e1) + (e2 + e3);
      }
      total = fl_warp_sum(total);
      sum += fl_loss(chosen, largest, total);
      i = following;
    }
  } else {
    for (; i < M; i += stride) {
      const float* __restrict__ row = x + (size_t)i * (size_t)N;
      const float chosen = __ldg(row + __ldg(label + i));
      float largest = -INFINITY;
#pragma unroll 4
      for (int j = lane; j < N; j += 32) {
        largest = fmaxf(largest, __ldg(row + j));
      }
      largest = fl_warp_max(largest);
      float total = 0.0f;
#pragma unroll 4
      for (int j = lane; j < N; j += 32) {
        total += exp2f((__ldg(row + j) - largest) * FL_LOG2E);
      }
      total = fl_warp_sum(total);
      sum += fl_loss(chosen, largest, total);
    }
  }

  if (lane == 0) {
    warp_part[warp] = sum;
  }
  __syncthreads();
  if (t == 0) {
    float s = 0.0f;
#pragma unroll
    for (int w = 0; w < FL_WARPS; ++w) {
      s += warp_part[w];
    }
    __stcg(partial + blockIdx.x, s);
    __threadfence();
    is_last = atomicAdd(arrived, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    __threadfence();
    float s = 0.0f;
    for (int b = t; b < (int)gridDim.x; b += 256) {
      s += __ldcg(partial + b);
    }
    s = fl_warp_sum(s);
    if (lane == 0) {
      warp_part[warp] = s;
    }
    __syncthreads();
    if (t == 0) {
      float all = 0.0f;
#pragma unroll
      for (int w = 0; w < FL_WARPS; ++w) {
        all += warp_part[w];
      }
      loss[0] = all / M;
    }
  }
}
