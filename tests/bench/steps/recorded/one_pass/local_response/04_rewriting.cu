// Response normalization over five neighbouring channels, a thread for four positions of eight channels.

// s to the power -0.75, for s >= 2
__device__ __forceinline__ float power_m075(float s) {
  const float r = rsqrtf(s);
  float q;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(q) : "f"(r));
  return r * q;
}

__device__ __forceinline__ float respond(float a, float b, float x, float d, float e) {
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(x, x, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  return x * power_m075(2.0f + 0.0001f / 5.0f * squares);
}

//@ launch local_response<<<ceil_div(B * P, 128) * ceil_div(C, 48), (32, 6)>>>(x, out, B, C, P)
__global__ void __launch_bounds__(192, 4) local_response(const float* __restrict__ x, float* __restrict__ out,
                                                         int B, int C, int P) {
  constexpr int RUN = 8;
  const int lane = threadIdx.x;
  const int groups = (C + 47) / 48;
  const int group = blockIdx.x % groups;
  const int tile = blockIdx.x / groups;
  const int c0 = (group * 6 + threadIdx.y) * RUN;
  if (c0 >= C) return;

  if ((P & 3) == 0) {
    const int column = tile * 128 + lane * 4;
    if (column >= B * P) return;
    const int b = column / P;
    const int p = column - b * P;
    const size_t base = ((size_t)b * C + c0) * P + p;
    const float* xp = x + base;
    float* op = out + base;

    float4 v[RUN + 4];
#pragma unroll
    for (int k = 0; k < RUN + 4; ++k) {
      const int c = c0 + k - 2;
      v[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) v[k] = __ldg(reinterpret_cast<const float4*>(xp + (ptrdiff_t)(k - 2) * P));
    }
#pragma unroll
    for (int k = 0; k < RUN; ++k) {
      if (c0 + k < C) {
        float4 r;
        r.x = respond(v[k].x, v[k + 1].x, v[k + 2].x, v[k + 3].x, v[k + 4].x);
        r.y = respond(v[k].y, v[k + 1].y, v[k + 2].y, v[k + 3].y, v[k + 4].y);
        r.z = respond(v[k].z, v[k + 1].z, v[k + 2].z, v[k + 3].z, v[k + 4].z);
        r.w = respond(v[k].w, v[k + 1].w, v[k + 2].w, v[k + 3].w, v[k + 4].w);
        __stcs(reinterpret_cast<float4*>(op + (size_t)k * P), r);
      }
    }
  } else {
    for (int q = 0; q < 4; ++q) {
      const int column = tile * 128 + q * 32 + lane;
      if (column < B * P) {
        const int b = column / P;
        const int p = column - b * P;
        const size_t base = ((size_t)b * C + c0) * P + p;
        const float* xp = x + base;
        float* op = out + base;
        float v[RUN + 4];
#pragma unroll
        for (int k = 0; k < RUN + 4; ++k) {
          const int c = c0 + k - 2;
          v[k] = 0.0f;
          if (c >= 0 && c < C) v[k] = __ldg(xp + (ptrdiff_t)(k - 2) * P);
        }
#pragma unroll
        for (int k = 0; k < RUN; ++k) {
          if (c0 + k < C) op[(size_t)k * P] = respond(v[k], v[k + 1], v[k + 2], v[k + 3], v[k + 4]);
        }
      }
    }
  }
}
