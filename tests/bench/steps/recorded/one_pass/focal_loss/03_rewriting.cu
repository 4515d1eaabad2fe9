// Loss of each row by a warp that holds the row in registers, block sums, and the mean by the last block: one launch.

//@ scratch partial: f32[ceil_div(M, 64)]
//@ scratch done: i32[1] zero
//@ launch focal_loss<<<ceil_div(M, 64), 256>>>(x, label, partial, done, loss, M, N)
__device__ __forceinline__ float max4(float4 v) {
  return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

__device__ __forceinline__ float exp4(float4 v, float m) {
  return (__expf(v.x - m) + __expf(v.y - m)) + (__expf(v.z - m) + __expf(v.w - m));
}

__global__ void __launch_bounds__(256, 4)
focal_loss(const float* __restrict__ x, const int* __restrict__ label, float* partial, int* done,
           float* __restrict__ loss, int M, int N) {
  __shared__ float s_part[8];
  __shared__ int s_last;
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int row0 = (blockIdx.x * 8 + warp) * 8;
  const int mine = row0 + (lane & 7);
  const int lab = label[min(mine, M - 1)];

  float my_largest = 0.0f;
  float my_total = 1.0f;

  if (row0 < M) {
    if (N == 512) {
#pragma unroll 1
      for (int k = 0; k < 8; k += 2) {
        const int ra = min(row0 + k, M - 1);
        const int rb = min(row0 + k + 1, M - 1);
        const float4* pa = reinterpret_cast<const float4*>(x + (size_t)ra * 512) + lane;
        const float4* pb = reinterpret_cast<const float4*>(x + (size_t)rb * 512) + lane;
        const float4 a0 = __ldg(pa);
        const float4 a1 = __ldg(pa + 32);
        const float4 a2 = __ldg(pa + 64);
        const float4 a3 = __ldg(pa + 96);
        const float4 b0 = __ldg(pb);
        const float4 b1 = __ldg(pb + 32);
        const float4 b2 = __ldg(pb + 64);
        const float4 b3 = __ldg(pb + 96);
        float ma = fmaxf(fmaxf(max4(a0), max4(a1)), fmaxf(max4(a2), max4(a3)));
        float mb = fmaxf(fmaxf(max4(b0), max4(b1)), fmaxf(max4(b2), max4(b3)));
#pragma unroll
        for (int o = 16; o > 0; o >>= 1) {
          ma = fmaxf(ma, __shfl_xor_sync(0xffffffffu, ma, o));
          mb = fmaxf(mb, __shfl_xor_sync(0xffffffffu, mb, o));
        }
        float sa = (exp4(a0, ma) + exp4(a1, ma)) + (exp4(a2, ma) + exp4(a3, ma));
        float sb = (exp4(b0, mb) + exp4(b1, mb)) + (exp4(b2, mb) + exp4(b3, mb));
#pragma unroll
        for (int o = 16; o > 0; o >>= 1) {
          sa += __shfl_xor_sync(0xffffffffu, sa, o);
          sb += __shfl_xor_sync(0xffffffffu, sb, o);
        }
        if (lane == k) {
          my_largest = ma;
          my_total = sa;
        }
        if (lane == k + 1) {
          my_largest = mb;
          my_total = sb;
        }
      }
    } else {
#pragma unroll 1
      for (int k = 0; k < 8; ++k) {
        if (row0 + k >= M) {
          break;
        }
        const float* p = x + (size_t)(row0 + k) * (size_t)N;
        float m = p[0];
        for (int j = lane; j < N; j += 32) {
          m = fmaxf(m, p[j]);
        }
#pragma unroll
        for (int o = 16; o > 0; o >>= 1) {
          m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
        }
        float s = 0.0f;
        for (int j = lane; j < N; j += 32) {
          s += __expf(p[j] - m);
        }
#pragma unroll
        for (int o = 16; o > 0; o >>= 1) {
          s += __shfl_xor_sync(0xffffffffu, s, o);
        }
        if (lane == k) {
          my_largest = m;
          my_total = s;
        }
      }
    }
  }

  float value = 0.0f;
  if (lane < 8 && mine < M) {
    const float log_probability =
        x[(size_t)mine * (size_t)N + lab] - my_largest - logf(my_total);
    const float rest = 1.0f - expf(log_probability);
    value = -rest * rest * log_probability;
  }
#pragma unroll
  for (int o = 4; o > 0; o >>= 1) {
    value += __shfl_xor_sync(0xffffffffu, value, o);
  }
  if (lane == 0) {
    s_part[warp] = value;
  }
  __syncthreads();
  if (t == 0) {
    float s = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      s += s_part[w];
    }
    partial[blockIdx.x] = s;
    __threadfence();
    s_last = atomicAdd(done, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (s_last) {
    __threadfence();
    float s = 0.0f;
    for (int b = t; b < (int)gridDim.x; b += 256) {
      s += __ldcg(partial + b);
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
      s += __shfl_xor_sync(0xffffffffu, s, o);
    }
    if (lane == 0) {
      s_part[warp] = s;
    }
    __syncthreads();
    if (t == 0) {
      float sum = 0.0f;
#pragma unroll
      for (int w = 0; w < 8; ++w) {
        sum += s_part[w];
      }
      loss[0] = sum / M;
    }
  }
}
