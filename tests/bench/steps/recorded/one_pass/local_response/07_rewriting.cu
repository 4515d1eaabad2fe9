// Response normalization over five neighbouring channels, eight channels of four positions for each thread.

#define LR_CH 8

__device__ __forceinline__ float lr_one(float x, float a, float b, float d, float e) {
  // a, b, x, d, e: channels c - 2 to c + 2
  float squares = a * a;
  squares = fmaf(b, b, squares);
  squares = fmaf(x, x, squares);
  squares = fmaf(d, d, squares);
  squares = fmaf(e, e, squares);
  const float t = 2.0f + 0.0001f / 5.0f * squares;
  const float r = rsqrtf(t);
  return x * (r * sqrtf(r));
}

//@ launch local_response<<<ceil_div(B * ceil_div(C, 8) * ceil_div(P, 4), 128), 128>>>(x, out, B, C, P)
__global__ void __launch_bounds__(128) local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  const int groups = (P + 3) / 4;
  const int chunks = (C + LR_CH - 1) / LR_CH;
  const int id = blockIdx.x * 128 + threadIdx.x;
  if (id >= B * chunks * groups) {
    return;
  }
  const int g = id % groups;
  const int rest = id / groups;
  const int c0 = rest % chunks * LR_CH;
  const int b = rest / chunks;
  const int p = g * 4;
  const size_t base = (size_t)b * C * P + p;

  if ((P & 3) == 0) {
    float4 v[LR_CH + 4];
#pragma unroll
    for (int q = 0; q < LR_CH + 4; ++q) {
      const int c = c0 + q - 2;
      v[q] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (c >= 0 && c < C) {
        v[q] = __ldg(reinterpret_cast<const float4*>(x + base + (size_t)c * P));
      }
    }
#pragma unroll
    for (int q = 0; q < LR_CH; ++q) {
      const int c = c0 + q;
      if (c < C) {
        float4 r;
        r.x = lr_one(v[q + 2].x, v[q].x, v[q + 1].x, v[q + 3].x, v[q + 4].x);
        r.y = lr_one(v[q + 2].y, v[q].y, v[q + 1].y, v[q + 3].y, v[q + 4].y);
        r.z = lr_one(v[q + 2].z, v[q].z, v[q + 1].z, v[q + 3].z, v[q + 4].z);
        r.w = lr_one(v[q + 2].w, v[q].w, v[q + 1].w, v[q + 3].w, v[q + 4].w);
        __stcs(reinterpret_cast<float4*>(out + base + (size_t)c * P), r);
      }
    }
  } else {
    for (int h = 0; h < 4; ++h) {
      if (p + h >= P) {
        break;
      }
      float v[LR_CH + 4];
#pragma unroll
      for (int q = 0; q < LR_CH + 4; ++q) {
        const int c = c0 + q - 2;
        v[q] = 0.0f;
        if (c >= 0 && c < C) {
          v[q] = __ldg(x + base + h + (size_t)c * P);
        }
      }
#pragma unroll
      for (int q = 0; q < LR_CH; ++q) {
        const int c = c0 + q;
        if (c < C) {
          out[base + h + (size_t)c * P] = lr_one(v[q + 2], v[q], v[q + 1], v[q + 3], v[q + 4]);
        }
      }
    }
  }
}
