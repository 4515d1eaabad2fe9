// Intensities in [0, 1] made linear, standardized, and moved to planes, in one launch; a warp for tiles of 128 pixels.

//@ launch image_input<<<B * ceil_div(P, 2048), 256>>>(image, centre, spread, out, P)

__device__ __forceinline__ float standard_value(float pixel, float centre, float scale) {
  float value = pixel * (1.0f / 255.0f);
  return (value * value - centre) * scale;
}

__global__ void __launch_bounds__(256) image_input(const float* __restrict__ image,
                                                   const float* __restrict__ centre,
                                                   const float* __restrict__ spread,
                                                   float* __restrict__ out, int P) {
  __shared__ float4 tile[8][2][96];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int parts = (P + 2047) / 2048;
  const int batch = blockIdx.x / parts;
  const int part = blockIdx.x - batch * parts;
  const int p0 = part * 2048 + warp * 256;

  const float* in = image + (size_t)batch * (size_t)P * 3;
  float* o0 = out + (size_t)batch * (size_t)P * 3;
  float* o1 = o0 + P;
  float* o2 = o1 + P;

  if ((P & 3) == 0 && p0 + 256 <= P) {
    const float4* in4 = reinterpret_cast<const float4*>(in + (size_t)p0 * 3) + lane;
    float4 v[6];
#pragma unroll
    for (int u = 0; u < 6; ++u) {
      v[u] = __ldcs(in4 + u * 32);
    }
    const float c0 = __ldg(centre + 0);
    const float c1 = __ldg(centre + 1);
    const float c2 = __ldg(centre + 2);
    const float s0 = 1.0f / __ldg(spread + 0);
    const float s1 = 1.0f / __ldg(spread + 1);
    const float s2 = 1.0f / __ldg(spread + 2);
#pragma unroll
    for (int u = 0; u < 3; ++u) {
      tile[warp][0][u * 32 + lane] = v[u];
      tile[warp][1][u * 32 + lane] = v[u + 3];
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      float4 a = tile[warp][k][3 * lane + 0];
      float4 b = tile[warp][k][3 * lane + 1];
      float4 c = tile[warp][k][3 * lane + 2];
      float4 r0 = make_float4(standard_value(a.x, c0, s0), standard_value(a.w, c0, s0),
                              standard_value(b.z, c0, s0), standard_value(c.y, c0, s0));
      float4 r1 = make_float4(standard_value(a.y, c1, s1), standard_value(b.x, c1, s1),
                              standard_value(b.w, c1, s1), standard_value(c.z, c1, s1));
      float4 r2 = make_float4(standard_value(a.z, c2, s2), standard_value(b.y, c2, s2),
                              standard_value(c.x, c2, s2), standard_value(c.w, c2, s2));
      const int p = p0 + k * 128 + lane * 4;
      __stcs(reinterpret_cast<float4*>(o0 + p), r0);
      __stcs(reinterpret_cast<float4*>(o1 + p), r1);
      __stcs(reinterpret_cast<float4*>(o2 + p), r2);
    }
  } else {
    const int end = min(P, p0 + 256);
    const float c0 = centre[0];
    const float c1 = centre[1];
    const float c2 = centre[2];
    const float s0 = 1.0f / spread[0];
    const float s1 = 1.0f / spread[1];
    const float s2 = 1.0f / spread[2];
    for (int p = p0 + lane; p < end; p += 32) {
      const float* q = in + (size_t)p * 3;
      o0[p] = standard_value(q[0], c0, s0);
      o1[p] = standard_value(q[1], c1, s1);
      o2[p] = standard_value(q[2], c2, s2);
    }
  }
}
