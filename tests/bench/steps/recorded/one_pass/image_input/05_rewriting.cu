// One launch: a warp turns 256 pixels at a time from channels to planes through its own shared memory.

#include <cstddef>

#define THREADS 256
#define WARPS 8
#define PIXELS_OF_WARP 256
#define PIXELS_OF_BLOCK 2048

//@ launch image_input<<<(ceil_div(P, 2048), B, 1), 256>>>(image, centre, spread, out, B, P)

__device__ __forceinline__ float convert(float v, float c, float inverse) {
  const float value = v * (1.0f / 255.0f);
  return (value * value - c) * inverse;
}

__global__ void __launch_bounds__(THREADS) image_input(const float* __restrict__ image,
                                                       const float* __restrict__ centre,
                                                       const float* __restrict__ spread, float* __restrict__ out,
                                                       int B, int P) {
  __shared__ float4 tile[WARPS][PIXELS_OF_WARP * 3 / 4];
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const size_t base = (size_t)blockIdx.y * (size_t)P * 3;
  const int start = blockIdx.x * PIXELS_OF_BLOCK + warp * PIXELS_OF_WARP;

  if ((P & 3) == 0 && start + PIXELS_OF_WARP <= P) {
    const float4* in4 = reinterpret_cast<const float4*>(image + base + (size_t)start * 3) + lane;
    const float4 v0 = __ldcs(in4);
    const float4 v1 = __ldcs(in4 + 32);
    const float4 v2 = __ldcs(in4 + 64);
    const float4 v3 = __ldcs(in4 + 96);
    const float4 v4 = __ldcs(in4 + 128);
    const float4 v5 = __ldcs(in4 + 160);
    const float c0 = __ldg(centre);
    const float c1 = __ldg(centre + 1);
    const float c2 = __ldg(centre + 2);
    const float i0 = 1.0f / __ldg(spread);
    const float i1 = 1.0f / __ldg(spread + 1);
    const float i2 = 1.0f / __ldg(spread + 2);
    float4* mine = tile[warp];
    mine[lane] = v0;
    mine[lane + 32] = v1;
    mine[lane + 64] = v2;
    mine[lane + 96] = v3;
    mine[lane + 128] = v4;
    mine[lane + 160] = v5;
    __syncwarp();
    float* o = out + base + start + lane * 4;
    #pragma unroll
    for (int k = 0; k < 2; ++k) {
      // twelve neighbouring floats: four pixels of three channels
      const float4 a = mine[k * 96 + lane * 3];
      const float4 b = mine[k * 96 + lane * 3 + 1];
      const float4 c = mine[k * 96 + lane * 3 + 2];
      float4 p0, p1, p2;
      p0.x = convert(a.x, c0, i0);
      p1.x = convert(a.y, c1, i1);
      p2.x = convert(a.z, c2, i2);
      p0.y = convert(a.w, c0, i0);
      p1.y = convert(b.x, c1, i1);
      p2.y = convert(b.y, c2, i2);
      p0.z = convert(b.z, c0, i0);
      p1.z = convert(b.w, c1, i1);
      p2.z = convert(c.x, c2, i2);
      p0.w = convert(c.y, c0, i0);
      p1.w = convert(c.z, c1, i1);
      p2.w = convert(c.w, c2, i2);
      __stcs(reinterpret_cast<float4*>(o + k * 128), p0);
      __stcs(reinterpret_cast<float4*>(o + (size_t)P + k * 128), p1);
      __stcs(reinterpret_cast<float4*>(o + 2 * (size_t)P + k * 128), p2);
    }
  } else {
    const float c0 = centre[0];
    const float c1 = centre[1];
    const float c2 = centre[2];
    const float i0 = 1.0f / spread[0];
    const float i1 = 1.0f / spread[1];
    const float i2 = 1.0f / spread[2];
    for (int k = lane; k < PIXELS_OF_WARP; k += 32) {
      const int pixel = start + k;
      if (pixel < P) {
        const float* p = image + base + (size_t)pixel * 3;
        float* o = out + base + pixel;
        o[0] = convert(p[0], c0, i0);
        o[(size_t)P] = convert(p[1], c1, i1);
        o[2 * (size_t)P] = convert(p[2], c2, i2);
      }
    }
  }
}
