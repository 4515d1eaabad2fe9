// One launch: pixels are read once, made linear, standardized and written to their planes.

//@ launch image_input<<<(ceil_div(P, 2048), B), 256>>>(image, centre, spread, out, P)
constexpr int II_CHUNKS = 2;

// a / d, with inverse = 1 / d rounded: one step of correction gives the rounded quotient
__device__ __forceinline__ float ii_divide(float a, float d, float inverse) {
  float q = a * inverse;
  return fmaf(fmaf(-q, d, a), inverse, q);
}

__device__ __forceinline__ float ii_one(float pixel, float centre, float spread, float inverse) {
  float value = ii_divide(pixel, 255.0f, 1.0f / 255.0f);
  return ii_divide(value * value - centre, spread, inverse);
}

__global__ void __launch_bounds__(256) image_input(const float* __restrict__ image, const float* __restrict__ centre,
                                                   const float* __restrict__ spread, float* __restrict__ out, int P) {
  __shared__ float4 stage[8][II_CHUNKS][96];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const size_t base = (size_t)blockIdx.y * (size_t)P * 3;
  const float* __restrict__ in = image + base;
  float* __restrict__ o0 = out + base;
  float* __restrict__ o1 = o0 + P;
  float* __restrict__ o2 = o1 + P;

  if ((P & 3) == 0) {
    const int first = blockIdx.x * 2048 + warp * (128 * II_CHUNKS);  // first pixel of the warp
    const int nv = P / 4 * 3;
    const int v0 = first / 4 * 3;
    const float4* __restrict__ in4 = reinterpret_cast<const float4*>(in);
    float4 a[II_CHUNKS * 3];
#pragma unroll
    for (int k = 0; k < II_CHUNKS * 3; ++k) {
      const int v = v0 + k * 32 + lane;
      a[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (v < nv) {
        a[k] = __ldcs(in4 + v);
      }
    }
    const float c0 = __ldg(centre), c1 = __ldg(centre + 1), c2 = __ldg(centre + 2);
    const float s0 = __ldg(spread), s1 = __ldg(spread + 1), s2 = __ldg(spread + 2);
    const float i0 = 1.0f / s0, i1 = 1.0f / s1, i2 = 1.0f / s2;
#pragma unroll
    for (int k = 0; k < II_CHUNKS * 3; ++k) {
      stage[warp][k / 3][(k % 3) * 32 + lane] = a[k];
    }
    __syncwarp();
#pragma unroll
    for (int c = 0; c < II_CHUNKS; ++c) {
      const int p = first + c * 128 + lane * 4;
      if (p < P) {
        const float4 u = stage[warp][c][lane * 3];
        const float4 v = stage[warp][c][lane * 3 + 1];
        const float4 w = stage[warp][c][lane * 3 + 2];
        __stcs(reinterpret_cast<float4*>(o0 + p),
               make_float4(ii_one(u.x, c0, s0, i0), ii_one(u.w, c0, s0, i0), ii_one(v.z, c0, s0, i0), ii_one(w.y, c0, s0, i0)));
        __stcs(reinterpret_cast<float4*>(o1 + p),
               make_float4(ii_one(u.y, c1, s1, i1), ii_one(v.x, c1, s1, i1), ii_one(v.w, c1, s1, i1), ii_one(w.z, c1, s1, i1)));
        __stcs(reinterpret_cast<float4*>(o2 + p),
               make_float4(ii_one(u.z, c2, s2, i2), ii_one(v.y, c2, s2, i2), ii_one(w.x, c2, s2, i2), ii_one(w.w, c2, s2, i2)));
      }
    }
  } else {
    const float c0 = __ldg(centre), c1 = __ldg(centre + 1), c2 = __ldg(centre + 2);
    const float s0 = __ldg(spread), s1 = __ldg(spread + 1), s2 = __ldg(spread + 2);
    const float i0 = 1.0f / s0, i1 = 1.0f / s1, i2 = 1.0f / s2;
    const int first = blockIdx.x * 2048;
    const int end = min(first + 2048, P);
    for (int p = first + (int)threadIdx.x; p < end; p += 256) {
      const float* q = in + (size_t)p * 3;
      o0[p] = ii_one(q[0], c0, s0, i0);
      o1[p] = ii_one(q[1], c1, s1, i1);
      o2[p] = ii_one(q[2], c2, s2, i2);
    }
  }
}
