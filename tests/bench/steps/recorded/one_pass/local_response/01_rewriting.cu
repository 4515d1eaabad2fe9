// Response normalization over five neighbouring channels, one thread for four positions of eight channels.

__device__ __forceinline__ float weakened(float v, float squares) {
  const float s = 2.0f + 0.0001f / 5.0f * squares;
  const float r = rsqrtf(s);
  float q;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(q) : "f"(r));
  return v * (r * q);
}

//@ launch local_response<<<ceil_div(B * ceil_div(C, 8) * ceil_div(P, 4), 128), 128>>>(x, out, B, C, P)
__global__ void __launch_bounds__(128, 6) local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  constexpr int RUN = 8;
  const int quads = (P + 3) / 4;
  const int runs = (C + RUN - 1) / RUN;
  const int index = blockIdx.x * 128 + threadIdx.x;
  if (index >= B * runs * quads) {
    return;
  }
  const int upper = index / quads;
  const int quad = index - upper * quads;
  const int b = upper / runs;
  const int c0 = (upper - b * runs) * RUN;
  const size_t image = (size_t)b * C * P;

  if ((P & 3) == 0) {
    const float4* x4 = reinterpret_cast<const float4*>(x + image) + quad;
    float4* o4 = reinterpret_cast<float4*>(out + image) + quad;
    float4 v[RUN + 4];
#pragma unroll
    for (int q = 0; q < RUN + 4; ++q) {
      const int c = c0 + q - 2;
      v[q] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) {
        v[q] = __ldg(x4 + c * quads);
      }
    }
#pragma unroll
    for (int q = 0; q < RUN; ++q) {
      const int c = c0 + q;
      float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
      for (int d = 0; d < 5; ++d) {
        s.x = fmaf(v[q + d].x, v[q + d].x, s.x);
        s.y = fmaf(v[q + d].y, v[q + d].y, s.y);
        s.z = fmaf(v[q + d].z, v[q + d].z, s.z);
        s.w = fmaf(v[q + d].w, v[q + d].w, s.w);
      }
      if (c < C) {
        float4 r;
        r.x = weakened(v[q + 2].x, s.x);
        r.y = weakened(v[q + 2].y, s.y);
        r.z = weakened(v[q + 2].z, s.z);
        r.w = weakened(v[q + 2].w, s.w);
        __stcs(o4 + c * quads, r);
      }
    }
    return;
  }

  for (int t = 0; t < 4; ++t) {
    const int p = quad + t * quads;
    if (p >= P) {
      break;
    }
    const float* xp = x + image + p;
    float* op = out + image + p;
    for (int c = c0; c < c0 + RUN && c < C; ++c) {
      float squares = 0.0f;
#pragma unroll
      for (int d = -2; d <= 2; ++d) {
        if (c + d >= 0 && c + d < C) {
          const float w = xp[(c + d) * P];
          squares += w * w;
        }
      }
      op[c * P] = weakened(xp[c * P], squares);
    }
  }
}
