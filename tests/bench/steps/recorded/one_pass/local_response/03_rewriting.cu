// Response normalization over five neighbouring channels, one thread for eight channels of four positions.

//@ launch local_response<<<ceil_div(B * ceil_div(C, 8) * ceil_div(P, 4), 128), 128>>>(x, out, B, C, P)
constexpr int CHANNELS = 8;

// s to the power of -3/4 for s >= 2
__device__ __forceinline__ float power(float s) {
  float r, q;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(s));
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(q) : "f"(r));
  return r * q;
}

__device__ __forceinline__ float response(float a, float b, float c, float d, float e) {
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(c, c, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  return c * power(fmaf(0.0001f / 5.0f, squares, 2.0f));
}

__global__ void __launch_bounds__(128, 7) local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int first = blockIdx.x * 128 + threadIdx.x;
  const int chunks = (C + CHANNELS - 1) / CHANNELS;
  if ((P & 3) == 0) {
    const int width = P >> 2;
    if (first >= B * chunks * width) {
      return;
    }
    const int group = first / width;
    const int p = first - group * width;
    const int b = group / chunks;
    const int c0 = (group - b * chunks) * CHANNELS;
    const size_t base = ((size_t)b * C + c0) * width + p;
    const float4* xp = reinterpret_cast<const float4*>(x) + base;
    float4* op = reinterpret_cast<float4*>(out) + base;
    float4 v[CHANNELS + 4];
#pragma unroll
    for (int q = 0; q < CHANNELS + 4; ++q) {
      const int c = c0 + q - 2;
      v[q] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) {
        v[q] = __ldg(xp + (q - 2) * width);
      }
    }
#pragma unroll
    for (int q = 0; q < CHANNELS; ++q) {
      if (c0 + q < C) {
        float4 r;
        r.x = response(v[q].x, v[q + 1].x, v[q + 2].x, v[q + 3].x, v[q + 4].x);
        r.y = response(v[q].y, v[q + 1].y, v[q + 2].y, v[q + 3].y, v[q + 4].y);
        r.z = response(v[q].z, v[q + 1].z, v[q + 2].z, v[q + 3].z, v[q + 4].z);
        r.w = response(v[q].w, v[q + 1].w, v[q + 2].w, v[q + 3].w, v[q + 4].w);
        __stcs(op + q * width, r);
      }
    }
  } else {
    const int total = B * chunks * P;
    for (int t = first; t < total; t += gridDim.x * 128) {
      const int group = t / P;
      const int p = t - group * P;
      const int b = group / chunks;
      const int c0 = (group - b * chunks) * CHANNELS;
      const size_t base = ((size_t)b * C + c0) * P + p;
      const float* xp = x + base;
      float* op = out + base;
      float v[CHANNELS + 4];
#pragma unroll
      for (int q = 0; q < CHANNELS + 4; ++q) {
        const int c = c0 + q - 2;
        v[q] = 0.0f;
        if (c >= 0 && c < C) {
          v[q] = __ldg(xp + (q - 2) * P);
        }
      }
#pragma unroll
      for (int q = 0; q < CHANNELS; ++q) {
        if (c0 + q < C) {
          op[q * P] = response(v[q], v[q + 1], v[q + 2], v[q + 3], v[q + 4]);
        }
      }
    }
  }
}
