// Response normalization over five neighbouring channels, four positions and a run of channels for each thread.

#define LR_CHUNK 32

__device__ __forceinline__ float lr_scale(float squares) {
  const float v = 2.0f + 0.0001f / 5.0f * squares;
  const float r = rsqrtf(v);  // v^-1/2
  float q;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(q) : "f"(r));  // v^-1/4
  return r * q;
}

__device__ __forceinline__ float lr_sum(float a, float b, float c, float d, float e) {
  return fmaf(e, e, fmaf(d, d, fmaf(c, c, fmaf(b, b, a * a))));
}

//@ launch local_response<<<ceil_div(B * ceil_div(P, 4), 128) * ceil_div(C, 32), 128>>>(x, out, B, C, P)
__global__ void __launch_bounds__(128, 9) local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int chunks = (C + LR_CHUNK - 1) / LR_CHUNK;
  const int chunk = blockIdx.x % chunks;
  const int column = (blockIdx.x / chunks) * 128 + threadIdx.x;
  const int quads = (P + 3) / 4;
  if (column >= B * quads) return;
  const int b = column / quads;
  const int p = (column - b * quads) * 4;
  const int first = chunk * LR_CHUNK;
  const int count = min(LR_CHUNK, C - first);
  const size_t origin = (size_t)b * C * P + p;

  if ((P & 3) == 0) {
    const int step = (chunk & 1) ? -1 : 1;
    int c = (chunk & 1) ? first + count - 1 : first;
    const float* px = x + origin;
    float* po = out + origin;
    auto load = [&](int ch) -> float4 {
      float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (ch >= 0 && ch < C) v = *reinterpret_cast<const float4*>(px + (size_t)ch * P);
      return v;
    };
    float4 m2 = load(c - 2 * step);
    float4 m1 = load(c - step);
    float4 c0 = load(c);
    float4 p1 = load(c + step);
    float4 p2 = load(c + 2 * step);
    float4 p3 = load(c + 3 * step);
#pragma unroll 4
    for (int n = 0; n < count; ++n) {
      float4 p4 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (n + 2 < count) p4 = load(c + 4 * step);
      float4 r;
      r.x = c0.x * lr_scale(lr_sum(m2.x, m1.x, c0.x, p1.x, p2.x));
      r.y = c0.y * lr_scale(lr_sum(m2.y, m1.y, c0.y, p1.y, p2.y));
      r.z = c0.z * lr_scale(lr_sum(m2.z, m1.z, c0.z, p1.z, p2.z));
      r.w = c0.w * lr_scale(lr_sum(m2.w, m1.w, c0.w, p1.w, p2.w));
      __stcs(reinterpret_cast<float4*>(po + (size_t)c * P), r);
      m2 = m1;
      m1 = c0;
      c0 = p1;
      p1 = p2;
      p2 = p3;
      p3 = p4;
      c += step;
    }
  } else {
    for (int q = 0; q < 4; ++q) {
      if (p + q < P) {
        const float* px = x + origin + q;
        float* po = out + origin + q;
        for (int n = 0; n < count; ++n) {
          const int c = first + n;
          float squares = 0.0f;
#pragma unroll
          for (int d = -2; d <= 2; ++d) {
            if (c + d >= 0 && c + d < C) {
              const float v = px[(size_t)(c + d) * P];
              squares += v * v;
            }
          }
          po[(size_t)c * P] = px[(size_t)c * P] * lr_scale(squares);
        }
      }
    }
  }
}
