// Seven points of a grid in three dimensions, four points of a row for each thread, marching over planes; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 8), ceil_div(X, 24)), (32, 8)>>>(u, out, k, X, Y, Z)
__global__ void __launch_bounds__(256, 6) heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  constexpr int PLANES = 24;
  const int lane = threadIdx.x;
  const int j = blockIdx.y * 8 + threadIdx.y;
  if (j >= Y) {
    return;
  }
  const int i0 = blockIdx.z * PLANES;
  const int i1 = min(i0 + PLANES, X);
  const bool row_face = j == 0 || j == Y - 1;
  const int plane = Y * Z;

  if ((Z & 3) == 0) {
    const int l = blockIdx.x * 128 + lane * 4;
    const bool active = l < Z;
    const bool first_face = l == 0;
    const bool last_face = l + 4 == Z;
    const int base = (i0 * Y + j) * Z + l;
    const float* p = u + base;
    float* o = out + base;

    // the one neighbour along the row that no lane of the warp holds
    const int edge_off = lane == 0 ? -1 : 4;
    const bool has_edge = active && ((lane == 0 && !first_face) || (lane == 31 && !last_face));

    float4 prev = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 cur = prev;
    if (active) {
      if (i0 > 0) {
        prev = __ldg(reinterpret_cast<const float4*>(p - plane));
      }
      cur = __ldg(reinterpret_cast<const float4*>(p));
    }
#pragma unroll 2
    for (int i = i0; i < i1; ++i) {
      float4 next = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (active && i + 1 < X) {
        next = __ldg(reinterpret_cast<const float4*>(p + plane));
      }
      float4 r = cur;
      if (!(row_face || i == 0 || i == X - 1)) {
        float4 below = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float4 above = below;
        float edge = 0.0f;
        if (active) {
          below = __ldg(reinterpret_cast<const float4*>(p - Z));
          above = __ldg(reinterpret_cast<const float4*>(p + Z));
        }
        if (has_edge) {
          edge = __ldg(p + edge_off);
        }
        float left = __shfl_up_sync(0xffffffffu, cur.w, 1);
        float right = __shfl_down_sync(0xffffffffu, cur.x, 1);
        if (lane == 0) {
          left = edge;
        }
        if (lane == 31) {
          right = edge;
        }
        const float rx = cur.x + k * (prev.x + next.x + below.x + above.x + left + cur.y - 6.0f * cur.x);
        r.y = cur.y + k * (prev.y + next.y + below.y + above.y + cur.x + cur.z - 6.0f * cur.y);
        r.z = cur.z + k * (prev.z + next.z + below.z + above.z + cur.y + cur.w - 6.0f * cur.z);
        const float rw = cur.w + k * (prev.w + next.w + below.w + above.w + cur.z + right - 6.0f * cur.w);
        r.x = first_face ? cur.x : rx;
        r.w = last_face ? cur.w : rw;
      }
      if (active) {
        __stcs(reinterpret_cast<float4*>(o), r);
      }
      prev = cur;
      cur = next;
      p += plane;
      o += plane;
    }
  } else {
    for (int i = i0; i < i1; ++i) {
      for (int s = 0; s < 4; ++s) {
        const int l = blockIdx.x * 128 + s * 32 + lane;
        if (l < Z) {
          const int at = (i * Y + j) * Z + l;
          const float centre = u[at];
          if (row_face || i == 0 || i == X - 1 || l == 0 || l == Z - 1) {
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
