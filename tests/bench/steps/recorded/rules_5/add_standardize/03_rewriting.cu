// A residual is added and each row is standardized: one launch, one warp for each row, the row in registers.

//@ launch add_standardize<<<ceil_div(M, 4), 128>>>(x, r, out, M, N)
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__global__ void __launch_bounds__(128, 5) add_standardize(const float* __restrict__ x, const float* __restrict__ r,
                                                          float* __restrict__ out, int M, int N) {
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= M) return;
  const long long base = (long long)row * N;
  if (N == 2048) {
    const float4* x4 = reinterpret_cast<const float4*>(x + base) + lane;
    const float4* r4 = reinterpret_cast<const float4*>(r + base) + lane;
    float4* o4 = reinterpret_cast<float4*>(out + base) + lane;
    float4 v[16];
#pragma unroll
    for (int h = 0; h < 16; h += 4) {
      float4 b[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        v[h + k] = __ldcs(x4 + (h + k) * 32);
        b[k] = __ldcs(r4 + (h + k) * 32);
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        v[h + k].x += b[k].x;
        v[h + k].y += b[k].y;
        v[h + k].z += b[k].z;
        v[h + k].w += b[k].w;
      }
    }
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      s0 += v[k].x;
      s1 += v[k].y;
      s2 += v[k].z;
      s3 += v[k].w;
    }
    const float mean = warp_sum((s0 + s1) + (s2 + s3)) * (1.0f / 2048.0f);
    s0 = s1 = s2 = s3 = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      v[k].x -= mean;
      v[k].y -= mean;
      v[k].z -= mean;
      v[k].w -= mean;
      s0 = fmaf(v[k].x, v[k].x, s0);
      s1 = fmaf(v[k].y, v[k].y, s1);
      s2 = fmaf(v[k].z, v[k].z, s2);
      s3 = fmaf(v[k].w, v[k].w, s3);
    }
    const float scale = rsqrtf(warp_sum((s0 + s1) + (s2 + s3)) * (1.0f / 2048.0f) + 1e-5f);
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float4 w;
      w.x = v[k].x * scale;
      w.y = v[k].y * scale;
      w.z = v[k].z * scale;
      w.w = v[k].w * scale;
      __stcs(o4 + k * 32, w);
    }
  } else {
    const float* xr = x + base;
    const float* rr = r + base;
    float* o = out + base;
    float s = 0.0f;
    for (int j = lane; j < N; j += 32) s += xr[j] + rr[j];
    const float mean = warp_sum(s) / N;
    s = 0.0f;
    for (int j = lane; j < N; j += 32) {
      const float d = (xr[j] + rr[j]) - mean;
      s = fmaf(d, d, s);
    }
    const float scale = rsqrtf(warp_sum(s) / N + 1e-5f);
    for (int j = lane; j < N; j += 32) o[j] = ((xr[j] + rr[j]) - mean) * scale;
  }
}
