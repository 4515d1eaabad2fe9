// One launch: each warp takes 256 pixels, turns them in shared memory and writes them to the three planes.

//@ launch image_input<<<(ceil_div(P, 2048), B, 1), 256>>>(image, centre, spread, out, B, P)

__device__ __forceinline__ float intensity(float pixel, float c, float inv) {
  float value = pixel * (1.0f / 255.0f);
  return (value * value - c) * inv;
}

__global__ void __launch_bounds__(256) image_input(const float* __restrict__ image, const float* __restrict__ centre,
                                                   const float* __restrict__ spread, float* __restrict__ out, int B, int P) {
  __shared__ float4 tile[8][192];
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const size_t base = (size_t)blockIdx.y * (size_t)P * 3;

  if ((P & 3) == 0) {
    const int first = blockIdx.x * 2048 + warp * 256;  // first pixel of this warp
    if (first >= P) {
      return;
    }
    const float4* src = reinterpret_cast<const float4*>(image + base + (size_t)first * 3);
    float4 v[6];
    const int left = P - first;
    if (left >= 256) {
      #pragma unroll
      for (int k = 0; k < 6; ++k) {
        v[k] = __ldcs(src + k * 32 + lane);
      }
    } else {
      const int vectors = left / 4 * 3;
      #pragma unroll
      for (int k = 0; k < 6; ++k) {
        v[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (k * 32 + lane < vectors) {
          v[k] = __ldcs(src + k * 32 + lane);
        }
      }
    }
    const float c0 = __ldg(centre);
    const float c1 = __ldg(centre + 1);
    const float c2 = __ldg(centre + 2);
    const float i0 = 1.0f / __ldg(spread);
    const float i1 = 1.0f / __ldg(spread + 1);
    const float i2 = 1.0f / __ldg(spread + 2);
    #pragma unroll
    for (int k = 0; k < 6; ++k) {
      tile[warp][k * 32 + lane] = v[k];
    }
    __syncwarp();
    float* dst = out + base + first;
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float4 a = tile[warp][h * 96 + lane * 3];
      const float4 b = tile[warp][h * 96 + lane * 3 + 1];
      const float4 c = tile[warp][h * 96 + lane * 3 + 2];
      float4 p0, p1, p2;
      p0.x = intensity(a.x, c0, i0);
      p1.x = intensity(a.y, c1, i1);
      p2.x = intensity(a.z, c2, i2);
      p0.y = intensity(a.w, c0, i0);
      p1.y = intensity(b.x, c1, i1);
      p2.y = intensity(b.y, c2, i2);
      p0.z = intensity(b.z, c0, i0);
      p1.z = intensity(b.w, c1, i1);
      p2.z = intensity(c.x, c2, i2);
      p0.w = intensity(c.y, c0, i0);
      p1.w = intensity(c.z, c1, i1);
      p2.w = intensity(c.w, c2, i2);
      const int pixel = h * 128 + lane * 4;
      if (pixel < left) {
        __stcs(reinterpret_cast<float4*>(dst + pixel), p0);
        __stcs(reinterpret_cast<float4*>(dst + (size_t)P + pixel), p1);
        __stcs(reinterpret_cast<float4*>(dst + 2 * (size_t)P + pixel), p2);
      }
    }
  } else {
    const int first = blockIdx.x * 2048;
    const int last = min(first + 2048, P);
    const float c0 = centre[0];
    const float c1 = centre[1];
    const float c2 = centre[2];
    const float i0 = 1.0f / spread[0];
    const float i1 = 1.0f / spread[1];
    const float i2 = 1.0f / spread[2];
    for (int p = first + tid; p < last; p += 256) {
      const float* s = image + base + (size_t)p * 3;
      float* d = out + base + p;
      d[0] = intensity(s[0], c0, i0);
      d[(size_t)P] = intensity(s[1], c1, i1);
      d[2 * (size_t)P] = intensity(s[2], c2, i2);
    }
  }
}
