// Response normalization over five neighbouring channels, a thread for four neighbouring positions of eight channels.

#define LR_CH 8

// s^-0.75 for s >= 2
__device__ __forceinline__ float lr_scale(float s) {
  const float r = rsqrtf(s);
  float q;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(q) : "f"(r));
  return r * q;
}

__device__ __forceinline__ float lr_one(float a, float b, float c, float d, float e) {
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(c, c, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  return c * lr_scale(2.0f + 0.0001f / 5.0f * squares);
}

template <bool VEC>
__device__ __forceinline__ void lr_run(const float* __restrict__ x, float* __restrict__ out, int b, int c0, int p, int C, int P) {
  const size_t base = (size_t)b * (size_t)C * (size_t)P + (size_t)p;
  float4 v[LR_CH + 4];
#pragma unroll
  for (int s = 0; s < LR_CH + 4; ++s) {
    const int c = c0 + s - 2;
    v[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (c >= 0 && c < C) {
      const float* src = x + (base + (size_t)c * (size_t)P);
      if (VEC) {
        v[s] = __ldg(reinterpret_cast<const float4*>(src));
      } else {
        v[s].x = src[0];
        if (p + 1 < P) v[s].y = src[1];
        if (p + 2 < P) v[s].z = src[2];
        if (p + 3 < P) v[s].w = src[3];
      }
    }
  }
#pragma unroll
  for (int s = 0; s < LR_CH; ++s) {
    const int c = c0 + s;
    if (c < C) {
      float4 r;
      r.x = lr_one(v[s].x, v[s + 1].x, v[s + 2].x, v[s + 3].x, v[s + 4].x);
      r.y = lr_one(v[s].y, v[s + 1].y, v[s + 2].y, v[s + 3].y, v[s + 4].y);
      r.z = lr_one(v[s].z, v[s + 1].z, v[s + 2].z, v[s + 3].z, v[s + 4].z);
      r.w = lr_one(v[s].w, v[s + 1].w, v[s + 2].w, v[s + 3].w, v[s + 4].w);
      float* dst = out + (base + (size_t)c * (size_t)P);
      if (VEC) {
        __stcs(reinterpret_cast<float4*>(dst), r);
      } else {
        dst[0] = r.x;
        if (p + 1 < P) dst[1] = r.y;
        if (p + 2 < P) dst[2] = r.z;
        if (p + 3 < P) dst[3] = r.w;
      }
    }
  }
}

//@ launch local_response<<<ceil_div(B * ceil_div(C, 8) * ceil_div(P, 4), 128), 128>>>(x, out, B, C, P)
__global__ void __launch_bounds__(128) local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int quads = (P + 3) / 4;
  const int chunks = (C + LR_CH - 1) / LR_CH;
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= B * chunks * quads) return;
  const int rest = t / quads;
  const int p = (t - rest * quads) * 4;
  const int b = rest / chunks;
  const int c0 = (rest - b * chunks) * LR_CH;
  if ((P & 3) == 0) {
    lr_run<true>(x, out, b, c0, p, C, P);
  } else {
    lr_run<false>(x, out, b, c0, p, C, P);
  }
}
