// Seven points of a grid in three dimensions; a thread holds four neighbouring points and marches through planes; faces stay as they are.

#define HS_PLANES 8

__device__ __forceinline__ float hs_point(float c, float im, float ip, float jm, float jp, float lm, float lp, float k) {
  return c + k * (im + ip + jm + jp + lm + lp - 6.0f * c);
}

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 8), ceil_div(X, 8)), (32, 8)>>>(u, out, k, X, Y, Z)
__global__ void __launch_bounds__(256) heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  const int lane = threadIdx.x;
  const int j = blockIdx.y * 8 + threadIdx.y;
  const int i0 = blockIdx.z * HS_PLANES;
  const size_t plane = (size_t)Y * (size_t)Z;

  if ((Z & 3) == 0) {
    const int l = (blockIdx.x * 32 + lane) * 4;
    const bool active = j < Y && l < Z;
    const bool inner = active && j > 0 && j < Y - 1;
    const bool edgeLeft = inner && lane == 0 && l > 0;
    const bool edgeRight = inner && lane == 31 && l + 4 < Z;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    size_t at = (size_t)i0 * plane + (size_t)j * (size_t)Z + (size_t)l;
    float4 prev = zero, cur = zero, next = zero;
    if (active) {
      if (i0 > 0) prev = __ldg(reinterpret_cast<const float4*>(u + (at - plane)));
      cur = __ldg(reinterpret_cast<const float4*>(u + at));
      if (i0 + 1 < X) next = __ldg(reinterpret_cast<const float4*>(u + (at + plane)));
    }

#pragma unroll
    for (int s = 0; s < HS_PLANES; ++s) {
      const int i = i0 + s;
      if (i < X) {
        const bool deep = i > 0 && i < X - 1;

        float4 after = zero;
        if (s + 1 < HS_PLANES && active && i + 2 < X) {
          after = __ldg(reinterpret_cast<const float4*>(u + (at + 2 * plane)));
        }
        float4 jm = zero, jp = zero;
        if (inner && deep) {
          jm = __ldg(reinterpret_cast<const float4*>(u + (at - Z)));
          jp = __ldg(reinterpret_cast<const float4*>(u + (at + Z)));
        }
        float lm = __shfl_up_sync(0xffffffffu, cur.w, 1);
        float lp = __shfl_down_sync(0xffffffffu, cur.x, 1);
        if (edgeLeft) lm = __ldg(u + (at - 1));
        if (edgeRight) lp = __ldg(u + (at + 4));

        float4 r = cur;
        if (inner && deep) {
          if (l > 0) r.x = hs_point(cur.x, prev.x, next.x, jm.x, jp.x, lm, cur.y, k);
          r.y = hs_point(cur.y, prev.y, next.y, jm.y, jp.y, cur.x, cur.z, k);
          r.z = hs_point(cur.z, prev.z, next.z, jm.z, jp.z, cur.y, cur.w, k);
          if (l + 4 < Z) r.w = hs_point(cur.w, prev.w, next.w, jm.w, jp.w, cur.z, lp, k);
        }
        if (active) __stcs(reinterpret_cast<float4*>(out + at), r);

        prev = cur;
        cur = next;
        next = after;
        at += plane;
      }
    }
  } else if (j < Y) {
    for (int s = 0; s < HS_PLANES; ++s) {
      const int i = i0 + s;
      if (i >= X) break;
      for (int e = 0; e < 4; ++e) {
        const int l = blockIdx.x * 128 + e * 32 + lane;
        if (l < Z) {
          const size_t at = (size_t)i * plane + (size_t)j * (size_t)Z + (size_t)l;
          const float centre = u[at];
          if (i == 0 || i == X - 1 || j == 0 || j == Y - 1 || l == 0 || l == Z - 1) {
            out[at] = centre;
          } else {
            out[at] = hs_point(centre, u[at - plane], u[at + plane], u[at - Z], u[at + Z], u[at - 1], u[at + 1], k);
          }
        }
      }
    }
  }
}
