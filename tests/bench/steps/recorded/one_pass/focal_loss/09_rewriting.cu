// A loss for each row by a warp, summed for each block, and the mean by the block that finishes last: one launch.

//@ scratch partials: f32[528]
//@ scratch counter: i32[1] zero
//@ launch focal_loss<<<528, 256>>>(x, label, loss, partials, counter, M, N)

__device__ __forceinline__ float fast_exp2(float v) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
  return y;
}

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

__device__ __forceinline__ float one_loss(float value, float largest, float total) {
  float log_probability = value - largest - logf(total);
  float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__global__ void __launch_bounds__(256, 4) focal_loss(const float* __restrict__ x,
                                                     const int* __restrict__ label,
                                                     float* __restrict__ loss,
                                                     float* partials, int* counter,
                                                     int M, int N) {
  __shared__ float part[8];
  __shared__ int last;
  const float LOG2E = 1.4426950408889634f;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int stride = gridDim.x * 8;
  int row = blockIdx.x * 8 + warp;
  float acc = 0.0f;

  if (N == 512) {
    if (row < M) {
      float4 a[4];
      const float4* p = reinterpret_cast<const float4*>(x + (size_t)row * 512) + lane;
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        a[u] = __ldg(p + u * 32);
      }
      int l = __ldg(label + row);
      while (true) {
        const int next = row + stride;
        const bool more = next < M;
        float value = __ldg(x + (size_t)row * 512 + l);
        float4 b[4];
        int nl = 0;
        if (more) {
          const float4* q = reinterpret_cast<const float4*>(x + (size_t)next * 512) + lane;
#pragma unroll
          for (int u = 0; u < 4; ++u) {
            b[u] = __ldg(q + u * 32);
          }
          nl = __ldg(label + next);
        }

        float m0 = fmaxf(fmaxf(a[0].x, a[0].y), fmaxf(a[0].z, a[0].w));
        float m1 = fmaxf(fmaxf(a[1].x, a[1].y), fmaxf(a[1].z, a[1].w));
        float m2 = fmaxf(fmaxf(a[2].x, a[2].y), fmaxf(a[2].z, a[2].w));
        float m3 = fmaxf(fmaxf(a[3].x, a[3].y), fmaxf(a[3].z, a[3].w));
        float largest = warp_max(fmaxf(fmaxf(m0, m1), fmaxf(m2, m3)));

        float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          s0 += fast_exp2((a[u].x - largest) * LOG2E);
          s1 += fast_exp2((a[u].y - largest) * LOG2E);
          s2 += fast_exp2((a[u].z - largest) * LOG2E);
          s3 += fast_exp2((a[u].w - largest) * LOG2E);
        }
        float total = warp_sum((s0 + s1) + (s2 + s3));
        acc += one_loss(value, largest, total);

        if (!more) {
          break;
        }
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          a[u] = b[u];
        }
        l = nl;
        row = next;
      }
    }
  } else {
    for (; row < M; row += stride) {
      const float* p = x + (size_t)row * (size_t)N;
      float largest = p[0];
      for (int j = lane; j < N; j += 32) {
        largest = fmaxf(largest, p[j]);
      }
      largest = warp_max(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) {
        total += fast_exp2((p[j] - largest) * LOG2E);
      }
      total = warp_sum(total);
      acc += one_loss(p[label[row]], largest, total);
    }
  }

  // Every lane of a warp holds the same sum of its rows.
  if (lane == 0) {
    part[warp] = acc;
  }
  __syncthreads();
  if (tid == 0) {
    float s = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    __stcg(partials + blockIdx.x, s);
    __threadfence();
    int before = atomicAdd(counter, 1);
    last = (before == (int)gridDim.x - 1) ? 1 : 0;
    __threadfence();
  }
  __syncthreads();
  if (last) {
    float s = 0.0f;
    for (int k = tid; k < (int)gridDim.x; k += 256) {
      s += __ldcg(partials + k);
    }
    s = warp_sum(s);
    if (lane == 0) {
      part[warp] = s;
    }
    __syncthreads();
    if (tid == 0) {
      float sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
      loss[0] = sum / M;
    }
  }
}
