// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row, the row in registers.

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)
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

__global__ void __launch_bounds__(128, 6) causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  constexpr int CHUNKS = 12;
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= H * T) {
    return;
  }
  const int i = row % T;
  const float* xr = x + (size_t)row * T;
  float* outr = out + (size_t)row * T;
  const float NEG = -__int_as_float(0x7f800000);

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    float4 v[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + lane * 4;
      v[c] = make_float4(NEG, NEG, NEG, NEG);
      if (j <= i) {
        v[c] = __ldg(reinterpret_cast<const float4*>(xr + j));
      }
    }
    // zeros behind the diagonal need no data: store them while the loads are under way
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + lane * 4;
      if (j > i && j < T) {
        __stcs(reinterpret_cast<float4*>(outr + j), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }
    float m0 = NEG, m1 = NEG;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        const int j = c * 128 + lane * 4;
        // elements of the last vector that lie behind the diagonal
        if (j + 1 > i) v[c].y = NEG;
        if (j + 2 > i) v[c].z = NEG;
        if (j + 3 > i) v[c].w = NEG;
        m0 = fmaxf(m0, fmaxf(v[c].x, v[c].y));
        m1 = fmaxf(m1, fmaxf(v[c].z, v[c].w));
      }
    }
    const float largest = warp_max(fmaxf(m0, m1));
    float s0 = 0.0f, s1 = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        v[c].x = expf(v[c].x - largest);
        v[c].y = expf(v[c].y - largest);
        v[c].z = expf(v[c].z - largest);
        v[c].w = expf(v[c].w - largest);
        s0 += v[c].x + v[c].y;
        s1 += v[c].z + v[c].w;
      }
    }
    const float inv = 1.0f / warp_sum(s0 + s1);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + lane * 4;
      if (j <= i) {
        float4 r;
        r.x = v[c].x * inv;
        r.y = j + 1 <= i ? v[c].y * inv : 0.0f;
        r.z = j + 2 <= i ? v[c].z * inv : 0.0f;
        r.w = j + 3 <= i ? v[c].w * inv : 0.0f;
        __stcs(reinterpret_cast<float4*>(outr + j), r);
      }
    }
  } else {
    float largest = NEG;
    for (int j = lane; j <= i; j += 32) {
      largest = fmaxf(largest, xr[j]);
    }
    largest = warp_max(largest);
    float total = 0.0f;
    for (int j = lane; j <= i; j += 32) {
      total += expf(xr[j] - largest);
    }
    const float inv = 1.0f / warp_sum(total);
    for (int j = lane; j < T; j += 32) {
      outr[j] = j <= i ? expf(xr[j] - largest) * inv : 0.0f;
    }
  }
}
