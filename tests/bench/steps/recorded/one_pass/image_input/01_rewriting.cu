// Pixels by channel to planes of standardized intensities: one launch, a warp stages 256 pixels in shared memory.

__device__ __forceinline__ float intensity(float v, float c, float inv) {
  const float value = v * (1.0f / 255.0f);
  return (value * value - c) * inv;
}

//@ launch image_input<<<B * ceil_div(P, 2048), 256>>>(image, centre, spread, out, B, P)
__global__ void __launch_bounds__(256)
image_input(const float* __restrict__ image, const float* __restrict__ centre,
            const float* __restrict__ spread, float* __restrict__ out, int B, int P) {
  __shared__ float4 stage[8][192];
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int tiles = (P + 2047) / 2048;
  const int item = blockIdx.x / tiles;
  const int tile = blockIdx.x - item * tiles;
  const size_t base = (size_t)item * 3 * (size_t)P;
  const float* in = image + base;
  float* o0 = out + base;
  float* o1 = o0 + P;
  float* o2 = o1 + P;

  if ((P & 3) == 0) {
    const int p0 = tile * 2048 + warp * 256;
    if (p0 < P) {
      const float4* src = reinterpret_cast<const float4*>(in + (size_t)p0 * 3) + lane;
      float4* mine = stage[warp];
      if (p0 + 256 <= P) {
        float4 v[6];
#pragma unroll
        for (int k = 0; k < 6; ++k) {
          v[k] = __ldcs(src + 32 * k);
        }
#pragma unroll
        for (int k = 0; k < 6; ++k) {
          mine[lane + 32 * k] = v[k];
        }
      } else {
        const int left = (P - p0) / 4 * 3;
#pragma unroll
        for (int k = 0; k < 6; ++k) {
          if (lane + 32 * k < left) {
            mine[lane + 32 * k] = __ldcs(src + 32 * k);
          }
        }
      }
      const float c0 = __ldg(centre);
      const float c1 = __ldg(centre + 1);
      const float c2 = __ldg(centre + 2);
      const float s0 = 1.0f / __ldg(spread);
      const float s1 = 1.0f / __ldg(spread + 1);
      const float s2 = 1.0f / __ldg(spread + 2);
      __syncwarp();
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        const int q = lane + 32 * u;
        const int p = p0 + 4 * q;
        if (p < P) {
          const float4 a = mine[3 * q];
          const float4 b = mine[3 * q + 1];
          const float4 c = mine[3 * q + 2];
          float4 w;
          w.x = intensity(a.x, c0, s0);
          w.y = intensity(a.w, c0, s0);
          w.z = intensity(b.z, c0, s0);
          w.w = intensity(c.y, c0, s0);
          __stcs(reinterpret_cast<float4*>(o0 + p), w);
          w.x = intensity(a.y, c1, s1);
          w.y = intensity(b.x, c1, s1);
          w.z = intensity(b.w, c1, s1);
          w.w = intensity(c.z, c1, s1);
          __stcs(reinterpret_cast<float4*>(o1 + p), w);
          w.x = intensity(a.z, c2, s2);
          w.y = intensity(b.y, c2, s2);
          w.z = intensity(c.x, c2, s2);
          w.w = intensity(c.w, c2, s2);
          __stcs(reinterpret_cast<float4*>(o2 + p), w);
        }
      }
    }
  } else {
    const float c0 = __ldg(centre);
    const float c1 = __ldg(centre + 1);
    const float c2 = __ldg(centre + 2);
    const float s0 = 1.0f / __ldg(spread);
    const float s1 = 1.0f / __ldg(spread + 1);
    const float s2 = 1.0f / __ldg(spread + 2);
    const int end = min(P, tile * 2048 + 2048);
    for (int p = tile * 2048 + t; p < end; p += 256) {
      const float* px = in + (size_t)p * 3;
      o0[p] = intensity(px[0], c0, s0);
      o1[p] = intensity(px[1], c1, s1);
      o2[p] = intensity(px[2], c2, s2);
    }
  }
}
