// Intensities made linear, standardized and moved to planes in one launch; each warp exchanges its pixels in shared memory.

//@ launch image_input<<<B * ceil_div(P, 2048), 256>>>(image, centre, spread, out, P)
__device__ __forceinline__ float intensity(float v, float c, float s, float inv) {
  // v / 255, rounded as a division
  const float r = 1.0f / 255.0f;
  float q = v * r;
  q = fmaf(fmaf(-q, 255.0f, v), r, q);
  const float d = q * q - c;
  // d / s
  const float e = d * inv;
  return fmaf(fmaf(-e, s, d), inv, e);
}

__global__ void __launch_bounds__(256) image_input(const float* __restrict__ image, const float* __restrict__ centre,
                                                   const float* __restrict__ spread, float* __restrict__ out, int P) {
  __shared__ float4 exchange[8][192];
  const int t = threadIdx.x;
  const int warp = t >> 5;
  const int lane = t & 31;
  const int tiles = (P - 1) / 2048 + 1;
  const int batch = blockIdx.x / tiles;
  const int tile = blockIdx.x - batch * tiles;
  const size_t base = (size_t)batch * 3 * (size_t)P;

  if ((P & 3) == 0) {
    const int quads = P >> 2;
    const int vectors = quads * 3;
    const int first = tile * 512 + warp * 64;
    const float4* in = reinterpret_cast<const float4*>(image + base);
    float4* mine = exchange[warp];
    float4 v[6];
    if (first + 64 <= quads) {
#pragma unroll
      for (int k = 0; k < 6; ++k) v[k] = __ldcs(in + first * 3 + lane + k * 32);
    } else {
#pragma unroll
      for (int k = 0; k < 6; ++k) {
        const int i = first * 3 + lane + k * 32;
        v[k] = i < vectors ? __ldcs(in + i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      }
    }
    const float c0 = __ldg(centre), c1 = __ldg(centre + 1), c2 = __ldg(centre + 2);
    const float s0 = __ldg(spread), s1 = __ldg(spread + 1), s2 = __ldg(spread + 2);
    const float i0 = 1.0f / s0, i1 = 1.0f / s1, i2 = 1.0f / s2;
#pragma unroll
    for (int k = 0; k < 6; ++k) mine[lane + k * 32] = v[k];
    __syncwarp();

    float4* p0 = reinterpret_cast<float4*>(out + base);
    float4* p1 = p0 + quads;
    float4* p2 = p1 + quads;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int quad = first + h * 32 + lane;
      const float4 a = mine[h * 96 + lane * 3];
      const float4 b = mine[h * 96 + lane * 3 + 1];
      const float4 c = mine[h * 96 + lane * 3 + 2];
      if (quad < quads) {
        __stcs(p0 + quad, make_float4(intensity(a.x, c0, s0, i0), intensity(a.w, c0, s0, i0),
                                      intensity(b.z, c0, s0, i0), intensity(c.y, c0, s0, i0)));
        __stcs(p1 + quad, make_float4(intensity(a.y, c1, s1, i1), intensity(b.x, c1, s1, i1),
                                      intensity(b.w, c1, s1, i1), intensity(c.z, c1, s1, i1)));
        __stcs(p2 + quad, make_float4(intensity(a.z, c2, s2, i2), intensity(b.y, c2, s2, i2),
                                      intensity(c.x, c2, s2, i2), intensity(c.w, c2, s2, i2)));
      }
    }
  } else {
    const float c0 = __ldg(centre), c1 = __ldg(centre + 1), c2 = __ldg(centre + 2);
    const float s0 = __ldg(spread), s1 = __ldg(spread + 1), s2 = __ldg(spread + 2);
    const float i0 = 1.0f / s0, i1 = 1.0f / s1, i2 = 1.0f / s2;
    const float* in = image + base;
    float* to = out + base;
    for (int k = 0; k < 8; ++k) {
      const int pixel = tile * 2048 + k * 256 + t;
      if (pixel < P) {
        const float* p = in + (size_t)pixel * 3;
        to[pixel] = intensity(p[0], c0, s0, i0);
        to[(size_t)P + pixel] = intensity(p[1], c1, s1, i1);
        to[(size_t)P * 2 + pixel] = intensity(p[2], c2, s2, i2);
      }
    }
  }
}
