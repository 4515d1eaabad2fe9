// A loss for each row and their mean: one launch, 16 lanes for a row, the last block sums the blocks' parts.

//@ scratch parts: f32[528]
//@ scratch ticket: i32[1] zero
//@ launch focal_loss<<<min(528, ceil_div(M, 16)), 256>>>(x, label, loss, parts, ticket, M, N)

__device__ __forceinline__ float max16(float v) {
#pragma unroll
  for (int o = 8; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

__device__ __forceinline__ float sum16(float v) {
#pragma unroll
  for (int o = 8; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ __forceinline__ float row_value(float at, float largest, float total) {
  const float log_probability = at - largest - logf(total);
  const float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

__global__ void __launch_bounds__(256, 4) focal_loss(const float* __restrict__ x, const int* __restrict__ label,
                                                     float* __restrict__ loss, float* parts, int* ticket, int M,
                                                     int N) {
  __shared__ float warps[8];
  __shared__ int last;
  const int tid = threadIdx.x;
  const int lane = tid & 15;
  const int half = (tid >> 4) & 1;
  const int step = gridDim.x * 16;
  const int first = (blockIdx.x * 8 + (tid >> 5)) * 2;
  float sum = 0.0f;

  if (N == 512) {
    int next = 0;
    if (first < M) next = label[min(first + half, M - 1)];
    for (int pair = first; pair < M; pair += step) {
      const int row = min(pair + half, M - 1);
      const float* xr = x + (long long)row * 512;
      const float4* p = reinterpret_cast<const float4*>(xr) + lane;
      float4 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) v[k] = __ldg(p + k * 16);
      const float at = __ldg(xr + next);
      if (pair + step < M) next = label[min(pair + step + half, M - 1)];
      float m0 = fmaxf(v[0].x, v[0].y), m1 = fmaxf(v[0].z, v[0].w);
#pragma unroll
      for (int k = 1; k < 8; ++k) {
        m0 = fmaxf(m0, fmaxf(v[k].x, v[k].y));
        m1 = fmaxf(m1, fmaxf(v[k].z, v[k].w));
      }
      const float largest = max16(fmaxf(m0, m1));
      float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        s0 += __expf(v[k].x - largest);
        s1 += __expf(v[k].y - largest);
        s2 += __expf(v[k].z - largest);
        s3 += __expf(v[k].w - largest);
      }
      const float total = sum16((s0 + s1) + (s2 + s3));
      if (lane == 0 && pair + half < M) sum += row_value(at, largest, total);
      __syncwarp();
    }
  } else {
    for (int pair = first; pair < M; pair += step) {
      const int row = min(pair + half, M - 1);
      const float* xr = x + (long long)row * N;
      float largest = xr[0];
      for (int j = lane; j < N; j += 16) largest = fmaxf(largest, xr[j]);
      __syncwarp();
      largest = max16(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 16) total += expf(xr[j] - largest);
      __syncwarp();
      total = sum16(total);
      if (lane == 0 && pair + half < M) sum += row_value(xr[label[row]], largest, total);
      __syncwarp();
    }
  }

  sum += __shfl_xor_sync(0xffffffffu, sum, 16);
  if ((tid & 31) == 0) warps[tid >> 5] = sum;
  __syncthreads();
  if (tid == 0) {
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) s += warps[k];
    parts[blockIdx.x] = s;
    __threadfence();
    last = atomicAdd(ticket, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    __threadfence();
    float s = 0.0f;
    for (int k = tid; k < (int)gridDim.x; k += 256) s += __ldcg(parts + k);
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
    if ((tid & 31) == 0) warps[tid >> 5] = s;
    __syncthreads();
    if (tid == 0) {
      float t = 0.0f;
#pragma unroll
      for (int k = 0; k < 8; ++k) t += warps[k];
      loss[0] = t / M;
    }
  }
}
