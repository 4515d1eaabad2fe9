// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row.

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)

__device__ __forceinline__ float warp_largest(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

__device__ __forceinline__ float warp_total(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// e / total with r = 1 / total; total is in [1, T] or NaN. One correction step after the product.
__device__ __forceinline__ float quotient(float e, float total, float r) {
  const float q = e * r;
  return fmaf(fmaf(-q, total, e), r, q);
}

__global__ void __launch_bounds__(128, 6)
causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  constexpr int CHUNKS = 12;              // chunks of 128 scores held in registers
  const int lane = threadIdx.x & 31;
  const int rows = H * T;
  const int index = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (index >= rows) return;
  const int row = rows - 1 - index;       // long rows first, short ones at the end
  const int i = row % T;
  const float* __restrict__ xr = x + (size_t)row * T;
  float* __restrict__ yr = out + (size_t)row * T;
  const float lowest = __int_as_float((int)0xff800000u);

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    float4 v[CHUNKS];
    const int first = lane * 4;

    // All loads of the row, none behind the diagonal's vector.
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = c * 128 + first;
      v[c] = make_float4(lowest, lowest, lowest, lowest);
      if (col <= i) v[c] = __ldg(reinterpret_cast<const float4*>(xr + col));
    }

    // Chunks wholly behind the diagonal, while the loads are under way.
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = c * 128 + first;
      if (c * 128 > i && col < T) {
        __stcs(reinterpret_cast<float4*>(yr + col), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }

    float largest = lowest;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = c * 128 + first;
      v[c].x = col <= i ? v[c].x : lowest;
      v[c].y = col + 1 <= i ? v[c].y : lowest;
      v[c].z = col + 2 <= i ? v[c].z : lowest;
      v[c].w = col + 3 <= i ? v[c].w : lowest;
      largest = fmaxf(largest, fmaxf(fmaxf(v[c].x, v[c].y), fmaxf(v[c].z, v[c].w)));
    }
    largest = warp_largest(largest);

    float total = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        // Masked scores are -inf and give 0 (or NaN where the whole row is NaN anyway).
        v[c].x = expf(v[c].x - largest);
        v[c].y = expf(v[c].y - largest);
        v[c].z = expf(v[c].z - largest);
        v[c].w = expf(v[c].w - largest);
        total += (v[c].x + v[c].y) + (v[c].z + v[c].w);
      }
    }
    total = warp_total(total);
    const float r = 1.0f / total;

#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int col = c * 128 + first;
      if (c * 128 <= i && col < T) {
        float4 y;
        y.x = col <= i ? quotient(v[c].x, total, r) : 0.0f;
        y.y = col + 1 <= i ? quotient(v[c].y, total, r) : 0.0f;
        y.z = col + 2 <= i ? quotient(v[c].z, total, r) : 0.0f;
        y.w = col + 3 <= i ? quotient(v[c].w, total, r) : 0.0f;
        __stcs(reinterpret_cast<float4*>(yr + col), y);
      }
    }
  } else {
    // Any other size: the warp walks the row, which stays in the caches between the passes.
    float largest = lowest;
    for (int j = lane; j <= i; j += 32) largest = fmaxf(largest, __ldg(xr + j));
    largest = warp_largest(largest);

    float total = 0.0f;
    for (int j = lane; j <= i; j += 32) total += expf(__ldg(xr + j) - largest);
    total = warp_total(total);
    const float r = 1.0f / total;

    for (int j = lane; j < T; j += 32) {
      float y = 0.0f;
      if (j <= i) y = quotient(expf(__ldg(xr + j) - largest), total, r);
      __stcs(yr + j, y);
    }
  }
}
