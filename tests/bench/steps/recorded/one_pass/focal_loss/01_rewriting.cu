// A warp for each row, kept in registers; the last block to finish adds the sums of all blocks.

#define THREADS 256
#define WARPS 8
#define FULL 0xffffffffu

//@ scratch partial: f32[528]
//@ scratch counter: i32[1] zero
//@ launch focal_loss<<<528, 256>>>(x, label, partial, counter, loss, M, N)

__device__ __forceinline__ float warp_max(float v) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v = fmaxf(v, __shfl_xor_sync(FULL, v, o));
  }
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v += __shfl_xor_sync(FULL, v, o);
  }
  return v;
}

__device__ __forceinline__ float max4(float4 v) {
  return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

__device__ __forceinline__ float exp_sum4(float4 v, float largest) {
  const float l = 1.4426950408889634f;
  return (exp2f((v.x - largest) * l) + exp2f((v.y - largest) * l)) +
         (exp2f((v.z - largest) * l) + exp2f((v.w - largest) * l));
}

__device__ __forceinline__ float focal(float picked, float largest, float total) {
  const float log_probability = picked - largest - logf(total);
  const float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__global__ void __launch_bounds__(THREADS, 4) focal_loss(const float* __restrict__ x, const int* __restrict__ label,
                                                         float* partial, int* counter, float* __restrict__ loss,
                                                         int M, int N) {
  __shared__ float part[WARPS];
  __shared__ int is_last;
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int total_warps = gridDim.x * WARPS;
  // neighbouring rows go to different blocks, so that the last, incomplete round is spread over the device
  int row = warp * gridDim.x + blockIdx.x;
  float sum = 0.0f;

  if (N == 512) {
    const float4* x4 = reinterpret_cast<const float4*>(x) + lane;
    float4 a0, a1, a2, a3;
    int chosen = 0;
    a0 = a1 = a2 = a3 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < M) {
      const float4* p = x4 + (size_t)row * 128;
      a0 = __ldcs(p);
      a1 = __ldcs(p + 32);
      a2 = __ldcs(p + 64);
      a3 = __ldcs(p + 96);
      chosen = label[row];
    }
    #pragma unroll 2
    while (row < M) {
      const int next = row + total_warps;
      float4 b0 = a0, b1 = a1, b2 = a2, b3 = a3;
      int next_chosen = 0;
      if (next < M) {
        const float4* p = x4 + (size_t)next * 128;
        b0 = __ldcs(p);
        b1 = __ldcs(p + 32);
        b2 = __ldcs(p + 64);
        b3 = __ldcs(p + 96);
        next_chosen = label[next];
      }

      const float largest = warp_max(fmaxf(fmaxf(max4(a0), max4(a1)), fmaxf(max4(a2), max4(a3))));
      const float total = warp_sum((exp_sum4(a0, largest) + exp_sum4(a1, largest)) +
                                   (exp_sum4(a2, largest) + exp_sum4(a3, largest)));

      // the element of the label: which of the four vectors, which component, which lane
      const bool high = (chosen & 256) != 0;
      const bool odd = (chosen & 128) != 0;
      const bool c_high = (chosen & 2) != 0;
      const bool c_odd = (chosen & 1) != 0;
      const float vx = high ? (odd ? a3.x : a2.x) : (odd ? a1.x : a0.x);
      const float vy = high ? (odd ? a3.y : a2.y) : (odd ? a1.y : a0.y);
      const float vz = high ? (odd ? a3.z : a2.z) : (odd ? a1.z : a0.z);
      const float vw = high ? (odd ? a3.w : a2.w) : (odd ? a1.w : a0.w);
      const float v = c_high ? (c_odd ? vw : vz) : (c_odd ? vy : vx);
      const float picked = __shfl_sync(FULL, v, (chosen >> 2) & 31);

      sum += focal(picked, largest, total);

      a0 = b0;
      a1 = b1;
      a2 = b2;
      a3 = b3;
      chosen = next_chosen;
      row = next;
    }
  } else {
    for (; row < M; row += total_warps) {
      const float* p = x + (size_t)row * (size_t)N;
      float largest = p[0];
      for (int j = lane; j < N; j += 32) {
        largest = fmaxf(largest, p[j]);
      }
      largest = warp_max(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) {
        total += expf(p[j] - largest);
      }
      total = warp_sum(total);
      sum += focal(p[label[row]], largest, total);
    }
  }

  // all lanes of a warp hold the same sum
  if (lane == 0) {
    part[warp] = sum;
  }
  __syncthreads();
  if (t == 0) {
    float s = 0.0f;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      s += part[w];
    }
    __stcg(partial + blockIdx.x, s);
    __threadfence();
    is_last = atomicAdd(counter, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    __threadfence();
    float s = 0.0f;
    #pragma unroll 3
    for (int k = t; k < (int)gridDim.x; k += THREADS) {
      s += __ldcg(partial + k);
    }
    s = warp_sum(s);
    if (lane == 0) {
      part[warp] = s;
    }
    __syncthreads();
    if (t == 0) {
      float all = 0.0f;
      #pragma unroll
      for (int w = 0; w < WARPS; ++w) {
        all += part[w];
      }
      loss[0] = all / M;
    }
  }
}
