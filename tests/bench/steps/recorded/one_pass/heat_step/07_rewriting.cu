// Seven points of a grid in three dimensions, a thread for four points along z in eight planes; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 8), ceil_div(X, 8)), (32, 8)>>>(u, out, k, X, Y, Z)
__global__ void __launch_bounds__(256, 4) heat_step(const float* __restrict__ u, float* __restrict__ out, float k,
                                                    int X, int Y, int Z) {
  constexpr int PLANES = 8;
  const int lane = threadIdx.x;
  const int j = blockIdx.y * 8 + threadIdx.y;
  const int i0 = blockIdx.z * PLANES;
  if (j >= Y) return;
  const int plane = Y * Z;
  const bool jface = j == 0 || j == Y - 1;

  if ((Z & 3) == 0) {
    const int l = blockIdx.x * 128 + lane * 4;
    const bool inside = l < Z;
    const bool rows = inside && !jface;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    // neighbour along z that no lane of this warp holds
    const bool left = lane == 0 && l > 0;
    const bool right = lane == 31 && l + 4 < Z;
    const bool edge = rows && (left || right);
    const int eoff = left ? -1 : 4;

    const float* p = u + (i0 * Y + j) * Z + l;
    float* o = out + (i0 * Y + j) * Z + l;

    float4 prev = zero, cur = zero, next = zero, ym = zero, yp = zero;
    float e = 0.0f;
    if (inside) {
      cur = __ldg(reinterpret_cast<const float4*>(p));
      if (i0 > 0) prev = __ldg(reinterpret_cast<const float4*>(p - plane));
      if (i0 + 1 < X) next = __ldg(reinterpret_cast<const float4*>(p + plane));
    }
    if (rows) {
      ym = __ldg(reinterpret_cast<const float4*>(p - Z));
      yp = __ldg(reinterpret_cast<const float4*>(p + Z));
    }
    if (edge) e = __ldg(p + eoff);

#pragma unroll
    for (int s = 0; s < PLANES; ++s) {
      const int i = i0 + s;
      if (i >= X) break;

      float4 after = zero, ymn = zero, ypn = zero;
      float en = 0.0f;
      if (s + 1 < PLANES) {
        const float* q = p + plane;
        if (inside && i + 2 < X) after = __ldg(reinterpret_cast<const float4*>(q + plane));
        if (i + 1 < X) {
          if (rows) {
            ymn = __ldg(reinterpret_cast<const float4*>(q - Z));
            ypn = __ldg(reinterpret_cast<const float4*>(q + Z));
          }
          if (edge) en = __ldg(q + eoff);
        }
      }

      float before = __shfl_up_sync(0xffffffffu, cur.w, 1);
      float behind = __shfl_down_sync(0xffffffffu, cur.x, 1);
      if (lane == 0) before = e;
      if (lane == 31) behind = e;

      float4 r = cur;
      if (!jface && i > 0 && i < X - 1) {
        if (l > 0)
          r.x = cur.x + k * (prev.x + next.x + ym.x + yp.x + before + cur.y - 6.0f * cur.x);
        r.y = cur.y + k * (prev.y + next.y + ym.y + yp.y + cur.x + cur.z - 6.0f * cur.y);
        r.z = cur.z + k * (prev.z + next.z + ym.z + yp.z + cur.y + cur.w - 6.0f * cur.z);
        if (l + 4 < Z)
          r.w = cur.w + k * (prev.w + next.w + ym.w + yp.w + cur.z + behind - 6.0f * cur.w);
      }
      if (inside) __stcs(reinterpret_cast<float4*>(o), r);

      prev = cur;
      cur = next;
      next = after;
      ym = ymn;
      yp = ypn;
      e = en;
      p += plane;
      o += plane;
    }
  } else {
    for (int s = 0; s < PLANES; ++s) {
      const int i = i0 + s;
      if (i >= X) break;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int l = blockIdx.x * 128 + c * 32 + lane;
        if (l < Z) {
          const int at = (i * Y + j) * Z + l;
          const float centre = u[at];
          if (i == 0 || i == X - 1 || jface || l == 0 || l == Z - 1) {
            out[at] = centre;
          } else {
            out[at] = centre + k * (u[at - plane] + u[at + plane] + u[at - Z] + u[at + Z] + u[at - 1] + u[at + 1] -
                                    6.0f * centre);
          }
        }
      }
    }
  }
}
