// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row, the row in registers.

__device__ __forceinline__ float warp_largest(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  }
  return v;
}

__device__ __forceinline__ float warp_total(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, o);
  }
  return v;
}

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)
__global__ void __launch_bounds__(128, 7) causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  constexpr int CHUNKS = 12;
  const float NEG_INF = -__int_as_float(0x7f800000);
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= H * T) {
    return;
  }
  const int i = row % T;
  const float* xr = x + (size_t)row * T;
  float* outr = out + (size_t)row * T;

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    const int j0 = lane * 4;
    float4 v[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      const int j = c * 128 + j0;
      v[c] = make_float4(NEG_INF, NEG_INF, NEG_INF, NEG_INF);
      if (j <= i) {
        v[c] = __ldg(reinterpret_cast<const float4*>(xr + j));
      }
    }
    // zeros of the parts wholly behind the diagonal, while the loads are under way
#pragma unroll
    for (int c = 1; c < CHUNKS; ++c) {
      const int j = c * 128 + j0;
      if (c * 128 > i && j < T) {
        __stcs(reinterpret_cast<float4*>(outr + j), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }
    float m0 = NEG_INF, m1 = NEG_INF, m2 = NEG_INF, m3 = NEG_INF;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        const int j = c * 128 + j0;
        if (c * 128 + 127 > i) {
          if (j + 1 > i) v[c].y = NEG_INF;
          if (j + 2 > i) v[c].z = NEG_INF;
          if (j + 3 > i) v[c].w = NEG_INF;
        }
        m0 = fmaxf(m0, v[c].x);
        m1 = fmaxf(m1, v[c].y);
        m2 = fmaxf(m2, v[c].z);
        m3 = fmaxf(m3, v[c].w);
      }
    }
    const float largest = warp_largest(fmaxf(fmaxf(m0, m1), fmaxf(m2, m3)));
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        v[c].x = expf(v[c].x - largest);
        v[c].y = expf(v[c].y - largest);
        v[c].z = expf(v[c].z - largest);
        v[c].w = expf(v[c].w - largest);
        s0 += v[c].x;
        s1 += v[c].y;
        s2 += v[c].z;
        s3 += v[c].w;
      }
    }
    const float inverse = 1.0f / warp_total((s0 + s1) + (s2 + s3));
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      if (c * 128 <= i) {
        const int j = c * 128 + j0;
        float4 r;
        r.x = v[c].x * inverse;
        r.y = v[c].y * inverse;
        r.z = v[c].z * inverse;
        r.w = v[c].w * inverse;
        if (c * 128 + 127 > i) {
          if (j > i) r.x = 0.0f;
          if (j + 1 > i) r.y = 0.0f;
          if (j + 2 > i) r.z = 0.0f;
          if (j + 3 > i) r.w = 0.0f;
        }
        if (j < T) {
          __stcs(reinterpret_cast<float4*>(outr + j), r);
        }
      }
    }
  } else {
    float largest = NEG_INF;
    for (int j = lane; j <= i; j += 32) {
      largest = fmaxf(largest, __ldg(xr + j));
    }
    largest = warp_largest(largest);
    float total = 0.0f;
    for (int j = lane; j <= i; j += 32) {
      total += expf(__ldg(xr + j) - largest);
    }
    const float inverse = 1.0f / warp_total(total);
    for (int j = lane; j < T; j += 32) {
      outr[j] = j <= i ? expf(__ldg(xr + j) - largest) * inverse : 0.0f;
    }
  }
}
