// Seven points of a grid in three dimensions; each thread holds a brick of 4 planes, 2 rows and 4 points in registers.

//@ launch heat_step<<<(ceil_div(ceil_div(Z, 128) * ceil_div(Y, 2), 12), ceil_div(X, 4)), 384>>>(u, out, k, X, Y, Z)

#define PLANES 4
#define ROWS 2
#define WARPS 12

__device__ __forceinline__ float step_of(float centre, float xm, float xp, float ym, float yp, float zm, float zp,
                                         float k) {
  return centre + k * (xm + xp + ym + yp + zm + zp - 6.0f * centre);
}

__global__ void __launch_bounds__(384, 2)
heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  const int lane = threadIdx.x & 31;
  const int chunks = (Z + 127) / 128;
  const int column = blockIdx.x * WARPS + (threadIdx.x >> 5);
  const int group = column / chunks;
  const int chunk = column - group * chunks;
  const int j0 = group * ROWS;
  const int i0 = blockIdx.y * PLANES;
  if (j0 >= Y) return;
  const long long plane = (long long)Y * Z;

  if ((Z & 3) == 0) {
    const int z = chunk * 128 + lane * 4;
    const bool active = z < Z;
    const int zl = active ? z : 0;
    int off[ROWS + 2];
#pragma unroll
    for (int q = 0; q < ROWS + 2; ++q) {
      off[q] = min(max(j0 - 1 + q, 0), Y - 1) * Z + zl;
    }
    // the neighbours outside of the warp's 128 points
    const bool has_edge = active && ((lane == 0 && z > 0) || (lane == 31 && z + 4 < Z));
    const int edge = lane == 0 ? -1 : 4;

    float4 prev[ROWS], cur[ROWS + 2], nxt[ROWS + 2];
    {
      const float* before = u + (long long)max(i0 - 1, 0) * plane;
      const float* here = u + (long long)i0 * plane;
#pragma unroll
      for (int q = 0; q < ROWS; ++q) prev[q] = __ldg(reinterpret_cast<const float4*>(before + off[q + 1]));
#pragma unroll
      for (int q = 0; q < ROWS + 2; ++q) cur[q] = __ldg(reinterpret_cast<const float4*>(here + off[q]));
    }

#pragma unroll
    for (int c = 0; c < PLANES; ++c) {
      const int i = i0 + c;
      const float* here = u + (long long)min(i, X - 1) * plane;
      const float* after = u + (long long)min(i + 1, X - 1) * plane;
#pragma unroll
      for (int q = 0; q < ROWS + 2; ++q) {
        if (c + 1 < PLANES || (q >= 1 && q <= ROWS)) {
          nxt[q] = __ldg(reinterpret_cast<const float4*>(after + off[q]));
        }
      }
      float side[ROWS];
#pragma unroll
      for (int q = 0; q < ROWS; ++q) {
        side[q] = 0.0f;
        if (has_edge) side[q] = __ldg(here + off[q + 1] + edge);
      }
#pragma unroll
      for (int q = 0; q < ROWS; ++q) {
        const float4 m = cur[q + 1];
        const float4 a = prev[q];
        const float4 b = nxt[q + 1];
        const float4 s = cur[q];
        const float4 n = cur[q + 2];
        float left = __shfl_up_sync(0xffffffffu, m.w, 1);
        float right = __shfl_down_sync(0xffffffffu, m.x, 1);
        if (lane == 0) left = side[q];
        if (lane == 31) right = side[q];
        const int j = j0 + q;
        float4 o;
        o.x = step_of(m.x, a.x, b.x, s.x, n.x, left, m.y, k);
        o.y = step_of(m.y, a.y, b.y, s.y, n.y, m.x, m.z, k);
        o.z = step_of(m.z, a.z, b.z, s.z, n.z, m.y, m.w, k);
        o.w = step_of(m.w, a.w, b.w, s.w, n.w, m.z, right, k);
        if (i == 0 || i == X - 1 || j == 0 || j == Y - 1) o = m;
        if (z == 0) o.x = m.x;
        if (z + 4 == Z) o.w = m.w;
        if (active && i < X && j < Y) {
          __stcs(reinterpret_cast<float4*>(out + (long long)i * plane + (long long)j * Z + z), o);
        }
      }
#pragma unroll
      for (int q = 0; q < ROWS; ++q) prev[q] = cur[q + 1];
      if (c + 1 < PLANES) {
#pragma unroll
        for (int q = 0; q < ROWS + 2; ++q) cur[q] = nxt[q];
      }
    }
  } else {
    for (int c = 0; c < PLANES; ++c) {
      const int i = i0 + c;
      if (i >= X) break;
      for (int q = 0; q < ROWS; ++q) {
        const int j = j0 + q;
        if (j >= Y) break;
        for (int e = 0; e < 4; ++e) {
          const int l = chunk * 128 + e * 32 + lane;
          if (l >= Z) break;
          const long long at = (long long)i * plane + (long long)j * Z + l;
          const float centre = u[at];
          if (i == 0 || i == X - 1 || j == 0 || j == Y - 1 || l == 0 || l == Z - 1) {
            out[at] = centre;
          } else {
            out[at] = step_of(centre, u[at - plane], u[at + plane], u[at - Z], u[at + Z], u[at - 1], u[at + 1], k);
          }
        }
      }
    }
  }
}
