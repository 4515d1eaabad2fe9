// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row,
// the row's visible part in registers, short and long rows alternating.

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)
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

__global__ void __launch_bounds__(128, 6) causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  constexpr int CHUNKS = 12;  // 12 * 32 lanes * 4 floats = 1536
  const int lane = threadIdx.x & 31;
  const int index = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (index >= H * T) return;
  const int head = index / T;
  const int q = index - head * T;
  const int i = (q & 1) ? T - 1 - (q >> 1) : (q >> 1);
  const size_t base = ((size_t)head * T + i) * (size_t)T;
  const float* __restrict__ in_row = x + base;
  float* __restrict__ out_row = out + base;
  const float NEG = __int_as_float(0xff800000);

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    const float4* __restrict__ in4 = reinterpret_cast<const float4*>(in_row) + lane;
    float4* __restrict__ out4 = reinterpret_cast<float4*>(out_row) + lane;
    float4 v[CHUNKS];
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      v[k] = make_float4(NEG, NEG, NEG, NEG);
      if (k * 128 + lane * 4 <= i) v[k] = __ldg(in4 + k * 32);
    }
    // chunks that lie wholly behind the diagonal need no data
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      if (k * 128 > i && k * 128 + lane * 4 < T) {
        __stcs(out4 + k * 32, make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }
    float largest = NEG;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      if (k * 128 <= i) {
        const int j = k * 128 + lane * 4;
        if (j + 1 > i) v[k].y = NEG;
        if (j + 2 > i) v[k].z = NEG;
        if (j + 3 > i) v[k].w = NEG;
        largest = fmaxf(largest, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
      }
    }
    largest = warp_max(largest);
    float total = 0.0f;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      if (k * 128 <= i) {
        const int j = k * 128 + lane * 4;
        const float a = expf(v[k].x - largest);
        const float b = expf(v[k].y - largest);
        const float c = expf(v[k].z - largest);
        const float d = expf(v[k].w - largest);
        v[k].x = j <= i ? a : 0.0f;
        v[k].y = j + 1 <= i ? b : 0.0f;
        v[k].z = j + 2 <= i ? c : 0.0f;
        v[k].w = j + 3 <= i ? d : 0.0f;
        total += (v[k].x + v[k].y) + (v[k].z + v[k].w);
      }
    }
    total = warp_sum(total);
    const float scale = 1.0f / total;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      if (k * 128 <= i) {
        const int j = k * 128 + lane * 4;
        if (j < T) {
          float4 r;
          r.x = j <= i ? v[k].x * scale : 0.0f;
          r.y = j + 1 <= i ? v[k].y * scale : 0.0f;
          r.z = j + 2 <= i ? v[k].z * scale : 0.0f;
          r.w = j + 3 <= i ? v[k].w * scale : 0.0f;
          __stcs(out4 + k * 32, r);
        }
      }
    }
  } else {
    float largest = NEG;
    for (int j = lane; j <= i; j += 32) largest = fmaxf(largest, in_row[j]);
    largest = warp_max(largest);
    float total = 0.0f;
    for (int j = lane; j <= i; j += 32) total += expf(in_row[j] - largest);
    total = warp_sum(total);
    const float scale = 1.0f / total;
    for (int j = lane; j < T; j += 32) {
      out_row[j] = j <= i ? expf(in_row[j] - largest) * scale : 0.0f;
    }
  }
}
