// A loss for each row and their mean in one launch: half a warp for each row, the last block adds the partial sums.

//@ scratch partial: f32[660]
//@ scratch done: i32[1] zero
//@ launch focal_loss<<<660, 256>>>(x, label, partial, done, loss, M, N)
__global__ void __launch_bounds__(256, 5) focal_loss(const float* __restrict__ x, const int* __restrict__ label,
                                                     float* partial, int* done, float* __restrict__ loss, int M,
                                                     int N) {
  __shared__ float sums[8];
  __shared__ int is_last;
  const unsigned full = 0xffffffffu;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int half = lane >> 4;
  const int l16 = lane & 15;
  const int warps = gridDim.x * 8;
  const int pairs = (M + 1) / 2;
  int pair = blockIdx.x * 8 + warp;
  float sum = 0.0f;

  int next_label = 0;
  if (pair < pairs) {
    next_label = label[min(pair * 2 + half, M - 1)];
  }
  if (N == 512) {
    for (; pair < pairs; pair += warps) {
      const int row = pair * 2 + half;
      const int safe_row = min(row, M - 1);
      const float* p = x + (size_t)safe_row * 512;
      const float4* p4 = reinterpret_cast<const float4*>(p) + l16;
      float4 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        v[k] = __ldg(p4 + k * 16);
      }
      const float target = __ldg(p + next_label);
      if (pair + warps < pairs) {
        next_label = __ldg(label + min((pair + warps) * 2 + half, M - 1));
      }
      float m0 = v[0].x, m1 = v[0].y, m2 = v[0].z, m3 = v[0].w;
#pragma unroll
      for (int k = 1; k < 8; ++k) {
        m0 = fmaxf(m0, v[k].x);
        m1 = fmaxf(m1, v[k].y);
        m2 = fmaxf(m2, v[k].z);
        m3 = fmaxf(m3, v[k].w);
      }
      float largest = fmaxf(fmaxf(m0, m1), fmaxf(m2, m3));
#pragma unroll
      for (int offset = 8; offset > 0; offset >>= 1) {
        largest = fmaxf(largest, __shfl_xor_sync(full, largest, offset));
      }
      float t0 = 0.0f, t1 = 0.0f, t2 = 0.0f, t3 = 0.0f;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        t0 += __expf(v[k].x - largest);
        t1 += __expf(v[k].y - largest);
        t2 += __expf(v[k].z - largest);
        t3 += __expf(v[k].w - largest);
      }
      float total = (t0 + t1) + (t2 + t3);
#pragma unroll
      for (int offset = 8; offset > 0; offset >>= 1) {
        total += __shfl_xor_sync(full, total, offset);
      }
      const float log_probability = target - largest - logf(total);
      const float rest = 1.0f - expf(log_probability);
      const float value = -rest * rest * log_probability;
      if (l16 == 0 && row < M) sum += value;
    }
  } else {
    for (; pair < pairs; pair += warps) {
      const int row = pair * 2 + half;
      const int safe_row = min(row, M - 1);
      const float* p = x + (size_t)safe_row * (size_t)N;
      const float target = p[next_label];
      if (pair + warps < pairs) {
        next_label = label[min((pair + warps) * 2 + half, M - 1)];
      }
      float largest = p[0];
      for (int j = l16; j < N; j += 16) {
        largest = fmaxf(largest, p[j]);
      }
#pragma unroll
      for (int offset = 8; offset > 0; offset >>= 1) {
        largest = fmaxf(largest, __shfl_xor_sync(full, largest, offset));
      }
      float total = 0.0f;
      for (int j = l16; j < N; j += 16) {
        total += expf(p[j] - largest);
      }
#pragma unroll
      for (int offset = 8; offset > 0; offset >>= 1) {
        total += __shfl_xor_sync(full, total, offset);
      }
      const float log_probability = target - largest - logf(total);
      const float rest = 1.0f - expf(log_probability);
      const float value = -rest * rest * log_probability;
      if (l16 == 0 && row < M) sum += value;
    }
  }

#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    sum += __shfl_xor_sync(full, sum, offset);
  }
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float block_sum = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      block_sum += sums[w];
    }
    __stcg(partial + blockIdx.x, block_sum);
    __threadfence();
    is_last = atomicAdd(done, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    __threadfence();
    float rest_sum = 0.0f;
    for (int b = threadIdx.x; b < (int)gridDim.x; b += 256) {
      rest_sum += __ldcg(partial + b);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
      rest_sum += __shfl_xor_sync(full, rest_sum, offset);
    }
    if (lane == 0) sums[warp] = rest_sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      float all = 0.0f;
#pragma unroll
      for (int w = 0; w < 8; ++w) {
        all += sums[w];
      }
      loss[0] = all / M;
    }
  }
}
