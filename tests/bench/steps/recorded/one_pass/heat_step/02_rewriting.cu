// Seven points of a grid in three dimensions; a warp takes 128 points along z and walks some planes along x.

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 16), ceil_div(X, 6)), (32, 16)>>>(u, out, k, X, Y, Z)
constexpr int PLANES = 6;

__device__ __forceinline__ float4 load4(const float* p) {
  return __ldg(reinterpret_cast<const float4*>(p));
}

__global__ void __launch_bounds__(512, 3) heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  const int lane = threadIdx.x;
  const int j = blockIdx.y * 16 + threadIdx.y;
  const int i0 = blockIdx.z * PLANES;
  if (j >= Y) {
    return;
  }
  const int plane = Y * Z;
  if ((Z & 3) == 0) {
    const int z0 = blockIdx.x * 128 + lane * 4;
    const bool act = z0 < Z;
    const bool jface = j == 0 || j == Y - 1;
    const size_t at0 = (size_t)i0 * plane + (size_t)j * Z + z0;
    const float* p = u + at0;
    float* o = out + at0;
    // the first lane needs the point before its vector, the last lane the one behind it
    const int edge = lane == 0 ? -1 : 4;
    const bool has_edge = (lane == 0 && z0 > 0 && act) || (lane == 31 && z0 + 4 < Z);
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 prev = zero, cur = zero, next = zero;
    if (act) {
      cur = load4(p);
      if (i0 + 1 < X) next = load4(p + plane);
      if (i0 > 0) prev = load4(p - plane);
    }
#pragma unroll
    for (int s = 0; s < PLANES; ++s) {
      const int i = i0 + s;
      if (i < X) {
        float4 after = zero;
        if (s + 1 < PLANES && act && i + 2 < X) {
          after = load4(p + 2 * (size_t)plane);
        }
        float4 r = cur;
        if (!(jface || i == 0 || i == X - 1)) {
          float4 up = zero, down = zero;
          float e = 0.0f;
          if (act) {
            up = load4(p - Z);
            down = load4(p + Z);
          }
          if (has_edge) {
            e = __ldg(p + edge);
          }
          float left = __shfl_up_sync(0xffffffffu, cur.w, 1);
          float right = __shfl_down_sync(0xffffffffu, cur.x, 1);
          if (lane == 0) left = e;
          if (lane == 31) right = e;
          r.x = cur.x + k * (prev.x + next.x + up.x + down.x + left + cur.y - 6.0f * cur.x);
          r.y = cur.y + k * (prev.y + next.y + up.y + down.y + cur.x + cur.z - 6.0f * cur.y);
          r.z = cur.z + k * (prev.z + next.z + up.z + down.z + cur.y + cur.w - 6.0f * cur.z);
          r.w = cur.w + k * (prev.w + next.w + up.w + down.w + cur.z + right - 6.0f * cur.w);
          if (z0 == 0) r.x = cur.x;
          if (z0 + 4 >= Z) r.w = cur.w;
        }
        if (act) {
          __stcs(reinterpret_cast<float4*>(o), r);
        }
        prev = cur;
        cur = next;
        next = after;
        p += plane;
        o += plane;
      }
    }
  } else {
    for (int s = 0; s < PLANES; ++s) {
      const int i = i0 + s;
      if (i >= X) {
        break;
      }
      for (int q = 0; q < 4; ++q) {
        const int l = blockIdx.x * 128 + q * 32 + lane;
        if (l < Z) {
          const size_t at = (size_t)i * plane + (size_t)j * Z + l;
          const float centre = u[at];
          if (i == 0 || i == X - 1 || j == 0 || j == Y - 1 || l == 0 || l == Z - 1) {
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
