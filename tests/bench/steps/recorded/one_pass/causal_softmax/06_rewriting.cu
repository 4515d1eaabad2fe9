// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each row.

__device__ __forceinline__ float warp_largest(float v) {
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, s));
  }
  return v;
}

__device__ __forceinline__ float warp_total(float v) {
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, s);
  }
  return v;
}

//@ launch causal_softmax<<<ceil_div(H * T, 4), 128>>>(x, out, H, T)
__global__ void __launch_bounds__(128) causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  constexpr int CHUNKS = 12;  // 12 * 128 = 1536 elements of a row in registers
  const int lane = threadIdx.x & 31;
  int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= H * T) {
    return;
  }
  row = H * T - 1 - row;  // long rows first
  const int i = row % T;
  const float* xr = x + (size_t)row * T;
  float* outr = out + (size_t)row * T;
  const float ninf = __int_as_float(0xff800000);

  if ((T & 3) == 0 && T <= CHUNKS * 128) {
    float4 v[CHUNKS];
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      const int j = k * 128 + lane * 4;
      v[k] = make_float4(ninf, ninf, ninf, ninf);
      if (j <= i) {
        v[k] = __ldg(reinterpret_cast<const float4*>(xr + j));
      }
    }
    // chunks wholly behind the diagonal need no data
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      const int j = k * 128 + lane * 4;
      if (k * 128 > i && j < T) {
        __stcs(reinterpret_cast<float4*>(outr + j), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
      }
    }
    float m0 = ninf, m1 = ninf, m2 = ninf, m3 = ninf;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      if (k * 128 <= i) {
        const int j = k * 128 + lane * 4;
        if (j + 1 > i) v[k].y = ninf;
        if (j + 2 > i) v[k].z = ninf;
        if (j + 3 > i) v[k].w = ninf;
        m0 = fmaxf(m0, v[k].x);
        m1 = fmaxf(m1, v[k].y);
        m2 = fmaxf(m2, v[k].z);
        m3 = fmaxf(m3, v[k].w);
      }
    }
    const float largest = warp_largest(fmaxf(fmaxf(m0, m1), fmaxf(m2, m3)));
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      if (k * 128 <= i) {
        v[k].x = expf(v[k].x - largest);
        v[k].y = expf(v[k].y - largest);
        v[k].z = expf(v[k].z - largest);
        v[k].w = expf(v[k].w - largest);
        s0 += v[k].x;
        s1 += v[k].y;
        s2 += v[k].z;
        s3 += v[k].w;
      }
    }
    const float total = warp_total((s0 + s1) + (s2 + s3));
    const float inv = 1.0f / total;
#pragma unroll
    for (int k = 0; k < CHUNKS; ++k) {
      const int j = k * 128 + lane * 4;
      if (k * 128 <= i && j < T) {
        float4 r;
        r.x = j <= i ? v[k].x * inv : 0.0f;
        r.y = j + 1 <= i ? v[k].y * inv : 0.0f;
        r.z = j + 2 <= i ? v[k].z * inv : 0.0f;
        r.w = j + 3 <= i ? v[k].w * inv : 0.0f;
        __stcs(reinterpret_cast<float4*>(outr + j), r);
      }
    }
  } else {
    float largest = ninf;
    for (int j = lane; j <= i; j += 32) {
      largest = fmaxf(largest, xr[j]);
    }
    largest = warp_largest(largest);
    float total = 0.0f;
    for (int j = lane; j <= i; j += 32) {
      total += expf(xr[j] - largest);
    }
    total = warp_total(total);
    const float inv = 1.0f / total;
    for (int j = lane; j < T; j += 32) {
      outr[j] = j <= i ? expf(xr[j] - largest) * inv : 0.0f;
    }
  }
}
