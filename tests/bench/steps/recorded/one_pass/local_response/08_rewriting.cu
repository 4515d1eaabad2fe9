// Response normalization over five neighbouring channels, a run of channels of four neighbouring elements for each thread.

#define RUN 12

__device__ __forceinline__ float response(float x, float a, float b, float c, float d, float e) {
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(c, c, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  const float y = 2.0f + 0.0001f / 5.0f * squares;  // at least 2
  float r, q;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(q) : "f"(r));
  return x * (r * q);
}

//@ launch local_response<<<(ceil_div(B * P, 128), ceil_div(C, 96)), (32, 8)>>>(x, out, B, C, P)
__global__ void __launch_bounds__(256, 2) local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int c0 = (blockIdx.y * 8 + threadIdx.y) * RUN;
  if (c0 >= C) return;
  if ((P & 3) == 0) {
    const int at = (blockIdx.x * 32 + threadIdx.x) * 4;
    if (at >= B * P) return;
    const int b = at / P;
    const size_t base = (size_t)b * C * P + (at - b * P);
    const float* p = x + base;
    float4 v[RUN + 4];
#pragma unroll
    for (int s = 0; s < RUN + 4; ++s) {
      const int c = c0 + s - 2;
      v[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) v[s] = __ldg(reinterpret_cast<const float4*>(p + (size_t)c * P));
    }
    float* o = out + base + (size_t)c0 * P;
#pragma unroll
    for (int s = 0; s < RUN; ++s) {
      if (c0 + s < C) {
        float4 r;
        r.x = response(v[s + 2].x, v[s].x, v[s + 1].x, v[s + 2].x, v[s + 3].x, v[s + 4].x);
        r.y = response(v[s + 2].y, v[s].y, v[s + 1].y, v[s + 2].y, v[s + 3].y, v[s + 4].y);
        r.z = response(v[s + 2].z, v[s].z, v[s + 1].z, v[s + 2].z, v[s + 3].z, v[s + 4].z);
        r.w = response(v[s + 2].w, v[s].w, v[s + 1].w, v[s + 2].w, v[s + 3].w, v[s + 4].w);
        __stcs(reinterpret_cast<float4*>(o + (size_t)s * P), r);
      }
    }
  } else {
    for (int e = 0; e < 4; ++e) {
      const int at = blockIdx.x * 128 + e * 32 + threadIdx.x;
      if (at < B * P) {
        const int b = at / P;
        const size_t base = (size_t)b * C * P + (at - b * P);
        const float* p = x + base;
        float v[RUN + 4];
#pragma unroll
        for (int s = 0; s < RUN + 4; ++s) {
          const int c = c0 + s - 2;
          v[s] = 0.0f;
          if (c >= 0 && c < C) v[s] = p[(size_t)c * P];
        }
#pragma unroll
        for (int s = 0; s < RUN; ++s) {
          if (c0 + s < C) {
            out[base + (size_t)(c0 + s) * P] = response(v[s + 2], v[s], v[s + 1], v[s + 2], v[s + 3], v[s + 4]);
          }
        }
      }
    }
  }
}
