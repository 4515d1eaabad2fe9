// Seven points of a grid in three dimensions, four neighbours along z for each thread, which marches along x; faces stay as they are.

#define PLANES 12

__device__ __forceinline__ float stepped(float c, float xm, float xp, float ym, float yp, float zm, float zp, float k) {
  return c + k * (xm + xp + ym + yp + zm + zp - 6.0f * c);
}

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 8), ceil_div(X, 12)), (32, 8)>>>(u, out, k, X, Y, Z)
__global__ void __launch_bounds__(256, 5) heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  const int lane = threadIdx.x;
  const int j = blockIdx.y * 8 + threadIdx.y;
  if (j >= Y) return;  // the same for a whole warp
  const int l = (blockIdx.x * 32 + lane) * 4;
  const int i0 = blockIdx.z * PLANES;
  const int i1 = min(i0 + PLANES, X);
  const size_t plane = (size_t)Y * Z;
  const bool face_j = j == 0 || j == Y - 1;

  if ((Z & 3) == 0) {
    const bool inside = l < Z;
    const int lc = inside ? l : Z - 4;
    const bool first_l = lc == 0;
    const bool last_l = lc + 4 == Z;
    const float* p = u + (size_t)j * Z + lc;
    const int down = j > 0 ? -Z : 0;
    const int up = j < Y - 1 ? Z : 0;
    const bool forth = (blockIdx.z & 1) == 0;
    const int s = forth ? 1 : -1;
    int i = forth ? i0 : i1 - 1;

    float4 prev = __ldg(reinterpret_cast<const float4*>(p + plane * min(max(i - s, 0), X - 1)));
    float4 cur = __ldg(reinterpret_cast<const float4*>(p + plane * i));
    float4 next = __ldg(reinterpret_cast<const float4*>(p + plane * min(max(i + s, 0), X - 1)));

    const int n = i1 - i0;
#pragma unroll 2
    for (int t = 0; t < n; ++t) {
      float4 ahead = next;
      if (t + 1 < n) ahead = __ldg(reinterpret_cast<const float4*>(p + plane * min(max(i + 2 * s, 0), X - 1)));
      const float* q = p + plane * i;
      const float4 ym = __ldg(reinterpret_cast<const float4*>(q + down));
      const float4 yp = __ldg(reinterpret_cast<const float4*>(q + up));
      float edge = 0.0f;
      if (lane == 0 && !first_l) edge = __ldg(q - 1);
      if (lane == 31 && !last_l) edge = __ldg(q + 4);
      float zm = __shfl_up_sync(0xffffffffu, cur.w, 1);
      float zp = __shfl_down_sync(0xffffffffu, cur.x, 1);
      if (lane == 0) zm = edge;
      if (lane == 31) zp = edge;

      float4 r;
      r.x = stepped(cur.x, prev.x, next.x, ym.x, yp.x, zm, cur.y, k);
      r.y = stepped(cur.y, prev.y, next.y, ym.y, yp.y, cur.x, cur.z, k);
      r.z = stepped(cur.z, prev.z, next.z, ym.z, yp.z, cur.y, cur.w, k);
      r.w = stepped(cur.w, prev.w, next.w, ym.w, yp.w, cur.z, zp, k);
      if (first_l) r.x = cur.x;
      if (last_l) r.w = cur.w;
      if (face_j || i == 0 || i == X - 1) r = cur;
      if (inside) __stcs(reinterpret_cast<float4*>(out + plane * i + (size_t)j * Z + l), r);

      prev = cur;
      cur = next;
      next = ahead;
      i += s;
    }
  } else {
    const int base = blockIdx.x * 128 + lane;
    for (int i = i0; i < i1; ++i) {
      const bool face = face_j || i == 0 || i == X - 1;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int z = base + e * 32;
        if (z < Z) {
          const size_t at = plane * i + (size_t)j * Z + z;
          const float centre = u[at];
          if (face || z == 0 || z == Z - 1) {
            out[at] = centre;
          } else {
            out[at] = stepped(centre, u[at - plane], u[at + plane], u[at - Z], u[at + Z], u[at - 1], u[at + 1], k);
          }
        }
      }
    }
  }
}
