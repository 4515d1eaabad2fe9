// One launch; each warp stages its pixels in shared memory with asynchronous copies and writes whole vectors of planes.
#include <cuda_pipeline.h>

//@ launch image_input<<<(ceil_div(P, 2048), min(B, 65535)), 256>>>(image, centre, spread, out, B, P)

__device__ __forceinline__ float intensity(float v, float centre, float spread) {
  const float value = v / 255.0f;
  const float linear = __fmul_rn(value, value);
  return __fsub_rn(linear, centre) / spread;
}

__device__ __forceinline__ float4 intensities(float p0, float p1, float p2, float p3, float centre, float spread) {
  float4 o;
  o.x = intensity(p0, centre, spread);
  o.y = intensity(p1, centre, spread);
  o.z = intensity(p2, centre, spread);
  o.w = intensity(p3, centre, spread);
  return o;
}

__global__ void __launch_bounds__(256, 6) image_input(const float* __restrict__ image,
                                                      const float* __restrict__ centre,
                                                      const float* __restrict__ spread,
                                                      float* __restrict__ out, int B, int P) {
  __shared__ __align__(16) float4 stage[8][192];

  if ((P & 3) == 0) {
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int groups = P >> 2;                             // groups of four pixels in an image
    const int first = (blockIdx.x * 8 + warp) * 64;        // first group of this warp
    const int left = groups - first;                       // groups from there to the image's end
    float4* mine = stage[warp];

    for (int b = blockIdx.y; b < B; b += gridDim.y) {
      const float4* source = reinterpret_cast<const float4*>(image) + ((long long)b * groups + first) * 3;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int k = 0; k < 3; ++k) {
          const int i = h * 96 + k * 32 + lane;
          if (i < 3 * (left < 64 ? left : 64)) __pipeline_memcpy_async(mine + i, source + i, 16);
        }
        __pipeline_commit();
      }

      const float c0 = __ldg(centre), c1 = __ldg(centre + 1), c2 = __ldg(centre + 2);
      const float s0 = __ldg(spread), s1 = __ldg(spread + 1), s2 = __ldg(spread + 2);
      float4* target = reinterpret_cast<float4*>(out) + (long long)b * 3 * groups + first;

#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (h == 0) {
          __pipeline_wait_prior(1);
        } else {
          __pipeline_wait_prior(0);
        }
        __syncwarp();
        const int g = h * 32 + lane;
        if (g < left) {
          const float4 u = mine[g * 3];
          const float4 v = mine[g * 3 + 1];
          const float4 w = mine[g * 3 + 2];
          __stcs(target + g, intensities(u.x, u.w, v.z, w.y, c0, s0));
          __stcs(target + (long long)groups + g, intensities(u.y, v.x, v.w, w.z, c1, s1));
          __stcs(target + 2LL * groups + g, intensities(u.z, v.y, w.x, w.w, c2, s2));
        }
      }
      __syncwarp();
    }
  } else {
    const float c0 = __ldg(centre), c1 = __ldg(centre + 1), c2 = __ldg(centre + 2);
    const float s0 = __ldg(spread), s1 = __ldg(spread + 1), s2 = __ldg(spread + 2);
    for (int b = blockIdx.y; b < B; b += gridDim.y) {
      const float* source = image + (long long)b * P * 3;
      float* target = out + (long long)b * P * 3;
#pragma unroll 1
      for (int k = 0; k < 8; ++k) {
        const long long p = (long long)blockIdx.x * 2048 + k * 256 + threadIdx.x;
        if (p >= P) break;
        const float v0 = source[p * 3];
        const float v1 = source[p * 3 + 1];
        const float v2 = source[p * 3 + 2];
        target[p] = intensity(v0, c0, s0);
        target[(long long)P + p] = intensity(v1, c1, s1);
        target[2LL * P + p] = intensity(v2, c2, s2);
      }
    }
  }
}
