// Pixels by channel to standardized planes in one launch: every warp moves 256 pixels through its own shared slice.

//@ launch image_input<<<ceil_div(P, 2048) * B, 256>>>(image, centre, spread, out, B, P)

__device__ __forceinline__ float intensity(float v, float c, float inverse) {
  const float a = v * (1.0f / 255.0f);
  return (a * a - c) * inverse;
}

__device__ __forceinline__ float4 intensities(float v0, float v1, float v2, float v3, float c, float inverse) {
  return make_float4(intensity(v0, c, inverse), intensity(v1, c, inverse), intensity(v2, c, inverse),
                     intensity(v3, c, inverse));
}

__global__ void __launch_bounds__(256) image_input(const float* __restrict__ image, const float* __restrict__ centre,
                                                   const float* __restrict__ spread, float* __restrict__ out, int B,
                                                   int P) {
  __shared__ float4 slices[8][192];
  const int strips = (P + 2047) / 2048;
  const int batch = blockIdx.x / strips;
  const int strip = blockIdx.x - batch * strips;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int chunk = strip * 2048 + warp * 256;
  if (chunk >= P) return;
  const float* in = image + ((long long)batch * P + chunk) * 3;
  float* o0 = out + (long long)batch * 3 * P + chunk;
  float* o1 = o0 + P;
  float* o2 = o1 + P;

  if ((P & 3) == 0 && chunk + 256 <= P) {
    const float4* p = reinterpret_cast<const float4*>(in) + lane;
    float4 v[6];
#pragma unroll
    for (int k = 0; k < 6; ++k) v[k] = __ldcs(p + k * 32);
    const float c0 = __ldg(centre), c1 = __ldg(centre + 1), c2 = __ldg(centre + 2);
    const float i0 = 1.0f / __ldg(spread), i1 = 1.0f / __ldg(spread + 1), i2 = 1.0f / __ldg(spread + 2);
    float4* slice = slices[warp];
#pragma unroll
    for (int k = 0; k < 6; ++k) slice[k * 32 + lane] = v[k];
    __syncwarp();
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const float4 a = slice[s * 96 + lane * 3];
      const float4 b = slice[s * 96 + lane * 3 + 1];
      const float4 c = slice[s * 96 + lane * 3 + 2];
      const int at = s * 32 + lane;
      __stcs(reinterpret_cast<float4*>(o0) + at, intensities(a.x, a.w, b.z, c.y, c0, i0));
      __stcs(reinterpret_cast<float4*>(o1) + at, intensities(a.y, b.x, b.w, c.z, c1, i1));
      __stcs(reinterpret_cast<float4*>(o2) + at, intensities(a.z, b.y, c.x, c.w, c2, i2));
    }
  } else {
    const float c0 = centre[0], c1 = centre[1], c2 = centre[2];
    const float i0 = 1.0f / spread[0], i1 = 1.0f / spread[1], i2 = 1.0f / spread[2];
    const int count = min(256, P - chunk);
    for (int q = lane; q < count; q += 32) {
      o0[q] = intensity(in[q * 3], c0, i0);
      o1[q] = intensity(in[q * 3 + 1], c1, i1);
      o2[q] = intensity(in[q * 3 + 2], c2, i2);
    }
  }
}
