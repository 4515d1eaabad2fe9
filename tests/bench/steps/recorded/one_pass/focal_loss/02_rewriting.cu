// A loss for each row by one warp, the last block to finish takes the mean: one launch.

//@ scratch partial: f32[ceil_div(M, 32)]
//@ scratch counter: u32[1] zero
//@ launch focal_loss<<<ceil_div(M, 32), 128>>>(x, label, partial, counter, loss, M, N)

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

__global__ void __launch_bounds__(128, 8) focal_loss(const float* __restrict__ x, const int* __restrict__ label,
                                                     float* partial, unsigned int* counter,
                                                     float* __restrict__ loss, int M, int N) {
  __shared__ float red[4];
  __shared__ unsigned int ticket;
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int row0 = (blockIdx.x * 4 + warp) * 8;
  const int rows = min(8, M - row0);

  float largest_k = 0.0f;
  float total_k = 1.0f;
  float target_k = 0.0f;

  if (N == 512) {
    float4 cur[4];
    const float4* p = reinterpret_cast<const float4*>(x) + (size_t)row0 * 128 + lane;
    if (rows > 0) {
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        cur[u] = __ldcs(p + u * 32);
      }
    }
    if (lane < rows) {
      target_k = x[(size_t)(row0 + lane) * 512 + label[row0 + lane]];
    }
#pragma unroll 2
    for (int k = 0; k < rows; ++k) {
      float4 nxt[4];
      p += 128;
      if (k + 1 < rows) {
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          nxt[u] = __ldcs(p + u * 32);
        }
      } else {
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          nxt[u] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
      }
      float m[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        m[u] = fmaxf(fmaxf(cur[u].x, cur[u].y), fmaxf(cur[u].z, cur[u].w));
      }
      const float largest = warp_max(fmaxf(fmaxf(m[0], m[1]), fmaxf(m[2], m[3])));
      float s[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        s[u] = (__expf(cur[u].x - largest) + __expf(cur[u].y - largest)) +
               (__expf(cur[u].z - largest) + __expf(cur[u].w - largest));
      }
      const float total = warp_sum((s[0] + s[1]) + (s[2] + s[3]));
      if (lane == k) {
        largest_k = largest;
        total_k = total;
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        cur[u] = nxt[u];
      }
    }
  } else {
    if (lane < rows) {
      target_k = x[(size_t)(row0 + lane) * (size_t)N + label[row0 + lane]];
    }
    for (int k = 0; k < rows; ++k) {
      const float* q = x + (size_t)(row0 + k) * (size_t)N;
      float largest = q[0];
      for (int j = lane; j < N; j += 32) {
        largest = fmaxf(largest, q[j]);
      }
      largest = warp_max(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) {
        total += expf(q[j] - largest);
      }
      total = warp_sum(total);
      if (lane == k) {
        largest_k = largest;
        total_k = total;
      }
    }
  }

  float value = 0.0f;
  if (lane < rows) {
    const float log_probability = target_k - largest_k - logf(total_k);
    const float rest = 1.0f - expf(log_probability);
    value = -rest * rest * log_probability;
  }
  // only the first eight lanes hold rows
  value += __shfl_xor_sync(0xffffffffu, value, 4);
  value += __shfl_xor_sync(0xffffffffu, value, 2);
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  if (lane == 0) {
    red[warp] = value;
  }
  __syncthreads();
  if (t == 0) {
    partial[blockIdx.x] = (red[0] + red[1]) + (red[2] + red[3]);
    __threadfence();
    ticket = atomicAdd(counter, 1u);
  }
  __syncthreads();
  if (ticket == gridDim.x - 1) {
    __threadfence();
    float sum = 0.0f;
    const int blocks = (int)gridDim.x;
#pragma unroll 8
    for (int i = t; i < blocks; i += 128) {
      sum += __ldcg(partial + i);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      red[warp] = sum;
    }
    __syncthreads();
    if (t == 0) {
      loss[0] = ((red[0] + red[1]) + (red[2] + red[3])) / M;
    }
  }
}
