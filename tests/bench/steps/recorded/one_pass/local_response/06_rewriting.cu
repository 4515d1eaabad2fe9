// Response normalization over five neighbouring channels, a sliding window of channels for each four positions.

__device__ __forceinline__ float responded(float v, float squares) {
  // y^-0.75 with y >= 2
  const float r = rsqrtf(2.0f + 0.0001f / 5.0f * squares);
  return v * (r * sqrtf(r));
}

__device__ __forceinline__ float five_squares(float a, float b, float c, float d, float e) {
  float squares = a * a;
  squares += b * b;
  squares += c * c;
  squares += d * d;
  squares += e * e;
  return squares;
}

//@ launch local_response<<<ceil_div(B * ceil_div(C, 24) * ceil_div(P, 4), 128), 128>>>(x, out, B, C, P)
__global__ void __launch_bounds__(128, 12) local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  constexpr int CHANNELS = 24;
  const int columns = (P + 3) / 4;
  const int chunks = (C + CHANNELS - 1) / CHANNELS;
  const int index = blockIdx.x * 128 + threadIdx.x;
  if (index >= B * chunks * columns) {
    return;
  }
  const int rest = index / columns;
  const int p = (index - rest * columns) * 4;
  const int b = rest / chunks;
  const int c0 = (rest - b * chunks) * CHANNELS;
  const int c1 = min(c0 + CHANNELS, C);

  if ((P & 3) == 0) {
    const int base = (b * C + c0) * P + p;
    const float* s = x + base;
    float* o = out + base;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 w0 = zero, w1 = zero, w3 = zero;
    if (c0 >= 2) {
      w0 = __ldg(reinterpret_cast<const float4*>(s - 2 * P));
      w1 = __ldg(reinterpret_cast<const float4*>(s - P));
    }
    float4 w2 = __ldg(reinterpret_cast<const float4*>(s));
    if (c0 + 1 < C) {
      w3 = __ldg(reinterpret_cast<const float4*>(s + P));
    }
    s += 2 * P;
#pragma unroll 4
    for (int c = c0; c < c1; ++c) {
      float4 w4 = zero;
      if (c + 2 < C) {
        w4 = __ldg(reinterpret_cast<const float4*>(s));
      }
      float4 r;
      r.x = responded(w2.x, five_squares(w0.x, w1.x, w2.x, w3.x, w4.x));
      r.y = responded(w2.y, five_squares(w0.y, w1.y, w2.y, w3.y, w4.y));
      r.z = responded(w2.z, five_squares(w0.z, w1.z, w2.z, w3.z, w4.z));
      r.w = responded(w2.w, five_squares(w0.w, w1.w, w2.w, w3.w, w4.w));
      __stcs(reinterpret_cast<float4*>(o), r);
      w0 = w1;
      w1 = w2;
      w2 = w3;
      w3 = w4;
      s += P;
      o += P;
    }
  } else {
    const int q1 = min(p + 4, P);
    for (int c = c0; c < c1; ++c) {
      for (int q = p; q < q1; ++q) {
        const int i = (b * C + c) * P + q;
        float squares = 0.0f;
        for (int d = -2; d <= 2; ++d) {
          if (c + d >= 0 && c + d < C) {
            squares += x[i + d * P] * x[i + d * P];
          }
        }
        out[i] = responded(x[i], squares);
      }
    }
  }
}
