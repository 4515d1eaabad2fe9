// A warp per row, rows held in registers, block sums combined in fixed order by the last block: one launch.

//@ scratch partial: f32[528]
//@ scratch arrived: i32[1] zero
//@ launch focal<<<min(528, ceil_div(M, 8)), 256>>>(x, label, partial, arrived, loss, M, N)

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__device__ __forceinline__ float loss_of(float picked, float largest, float total) {
  const float log_probability = picked - largest - logf(total);
  const float rest = 1.0f - expf(log_probability);
  return -rest * rest * log_probability;
}

// Row of 512: four float4 for each lane.
__device__ __forceinline__ void load_row(const float* __restrict__ x, const int* __restrict__ label,
                                         int row, int M, int lane, float4 (&v)[4], int& chosen) {
  if (row < M) {
    chosen = __ldg(label + row);
    const float4* p = reinterpret_cast<const float4*>(x + (long long)row * 512) + lane;
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = __ldg(p + k * 32);
  }
}

__device__ __forceinline__ float row_loss(const float* __restrict__ x, int row, const float4 (&v)[4], int chosen) {
  const float picked = __ldg(x + (long long)row * 512 + chosen);
  float m[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) m[k] = fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w));
  const float largest = warp_max(fmaxf(fmaxf(m[0], m[1]), fmaxf(m[2], m[3])));
  float s[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    s[k] = (expf(v[k].x - largest) + expf(v[k].y - largest)) +
           (expf(v[k].z - largest) + expf(v[k].w - largest));
  }
  const float total = warp_sum((s[0] + s[1]) + (s[2] + s[3]));
  return loss_of(picked, largest, total);
}

__global__ void __launch_bounds__(256, 4) focal(const float* __restrict__ x, const int* __restrict__ label,
                                                float* partial, int* arrived, float* loss, int M, int N) {
  __shared__ float parts[8];
  __shared__ int is_last;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int stride = gridDim.x * 8;
  int row = blockIdx.x * 8 + warp;
  float acc = 0.0f;

  if (N == 512) {
    float4 a[4], b[4];
    int chosen_a = 0, chosen_b = 0;
    load_row(x, label, row, M, lane, a, chosen_a);
    while (row < M) {
      load_row(x, label, row + stride, M, lane, b, chosen_b);
      acc += row_loss(x, row, a, chosen_a);
      row += stride;
      if (row >= M) break;
      load_row(x, label, row + stride, M, lane, a, chosen_a);
      acc += row_loss(x, row, b, chosen_b);
      row += stride;
    }
  } else {
    for (; row < M; row += stride) {
      const float* record = x + (long long)row * N;
      const float picked = __ldg(record + __ldg(label + row));
      float largest = __int_as_float(0xff800000);  // minus infinity
      for (int j = lane; j < N; j += 32) largest = fmaxf(largest, __ldg(record + j));
      largest = warp_max(largest);
      float total = 0.0f;
      for (int j = lane; j < N; j += 32) total += expf(__ldg(record + j) - largest);
      total = warp_sum(total);
      acc += loss_of(picked, largest, total);
    }
  }

  if (lane == 0) parts[warp] = acc;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += parts[k];
    __stcg(partial + blockIdx.x, sum);
    __threadfence();
    is_last = atomicAdd(arrived, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;

  __threadfence();
  float sum = 0.0f;
  for (int k = threadIdx.x; k < (int)gridDim.x; k += 256) sum += __ldcg(partial + k);
  sum = warp_sum(sum);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float whole = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) whole += parts[k];
    loss[0] = whole / M;
  }
}
