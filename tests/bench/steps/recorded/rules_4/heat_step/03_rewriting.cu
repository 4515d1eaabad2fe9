// Seven points of a grid in three dimensions; a warp marches along X with 4 rows of 128 points
// of three planes in registers; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 16), ceil_div(X, 43)), 128>>>(u, out, k, X, Y, Z)
__device__ __forceinline__ float heat_point(float centre, float xm, float xp, float ym, float yp, float zm, float zp, float k) {
  return centre + k * (xm + xp + ym + yp + zm + zp - 6.0f * centre);
}

__global__ void __launch_bounds__(128, 5) heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X,
                                                    int Y, int Z) {
  constexpr int MARCH = 43;
  constexpr int R = 4;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int y0 = (blockIdx.y * 4 + warp) * R;
  const int x0 = blockIdx.z * MARCH;
  const int x1 = min(X, x0 + MARCH);
  if (y0 >= Y) return;
  const size_t plane = (size_t)Y * Z;

  if ((Z & 3) == 0) {
    const int z = blockIdx.x * 128 + lane * 4;
    const bool zok = z < Z;
    const size_t start = ((size_t)x0 * Y + y0) * Z + z;
    const float* p = u + start;
    float* q = out + start;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    bool rok[R];
#pragma unroll
    for (int r = 0; r < R; ++r) rok[r] = zok && y0 + r < Y;
    const bool above = zok && y0 > 0;
    const bool below = zok && y0 + R < Y;
    // the one scalar that a lane at the strip's end needs from beyond it
    const bool left_end = lane == 0 && z > 0;
    const bool right_end = lane == 31 && z + 4 < Z;
    const int end_off = lane == 0 ? -1 : 4;
    const bool at_end = left_end || right_end;
    const bool first = z == 0;
    const bool last = z + 4 == Z;

    float4 prev[R], cur[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      prev[r] = zero;
      if (rok[r] && x0 > 0) prev[r] = *reinterpret_cast<const float4*>(p - plane + (size_t)r * Z);
      cur[r] = zero;
      if (rok[r]) cur[r] = *reinterpret_cast<const float4*>(p + (size_t)r * Z);
    }

#pragma unroll 1
    for (int i = x0; i < x1; ++i) {
      float4 next[R];
      float ends[R];
      const bool more = i + 1 < X;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        next[r] = zero;
        if (rok[r] && more) next[r] = *reinterpret_cast<const float4*>(p + plane + (size_t)r * Z);
      }
      float4 up = zero, down = zero;
      if (above) up = *reinterpret_cast<const float4*>(p - Z);
      if (below) down = *reinterpret_cast<const float4*>(p + (size_t)R * Z);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        ends[r] = 0.0f;
        if (at_end && rok[r]) ends[r] = *(p + (size_t)r * Z + end_off);
      }

      const bool xface = i == 0 || i == X - 1;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const float4 c = cur[r];
        const float4 ym = r == 0 ? up : cur[r == 0 ? 0 : r - 1];
        const float4 yp = r == R - 1 ? down : cur[r == R - 1 ? r : r + 1];
        float zl = __shfl_up_sync(0xffffffffu, c.w, 1);
        float zr = __shfl_down_sync(0xffffffffu, c.x, 1);
        if (lane == 0) zl = ends[r];
        if (lane == 31) zr = ends[r];
        const bool face = xface || y0 + r == 0 || y0 + r == Y - 1;
        float4 v;
        v.x = heat_point(c.x, prev[r].x, next[r].x, ym.x, yp.x, zl, c.y, k);
        v.y = heat_point(c.y, prev[r].y, next[r].y, ym.y, yp.y, c.x, c.z, k);
        v.z = heat_point(c.z, prev[r].z, next[r].z, ym.z, yp.z, c.y, c.w, k);
        v.w = heat_point(c.w, prev[r].w, next[r].w, ym.w, yp.w, c.z, zr, k);
        if (face) v = c;
        if (first) v.x = c.x;
        if (last) v.w = c.w;
        if (rok[r]) __stcs(reinterpret_cast<float4*>(q + (size_t)r * Z), v);
      }
#pragma unroll
      for (int r = 0; r < R; ++r) {
        prev[r] = cur[r];
        cur[r] = next[r];
      }
      p += plane;
      q += plane;
    }
  } else {
    const int rows = min(R, Y - y0);
    for (int i = x0; i < x1; ++i) {
      for (int r = 0; r < rows; ++r) {
        const int j = y0 + r;
        for (int s = 0; s < 4; ++s) {
          const int l = blockIdx.x * 128 + s * 32 + lane;
          if (l < Z) {
            const size_t at = ((size_t)i * Y + j) * Z + l;
            const float centre = u[at];
            if (i == 0 || i == X - 1 || j == 0 || j == Y - 1 || l == 0 || l == Z - 1) {
              out[at] = centre;
            } else {
              out[at] = heat_point(centre, u[at - plane], u[at + plane], u[at - Z], u[at + Z], u[at - 1], u[at + 1], k);
            }
          }
        }
      }
    }
  }
}
