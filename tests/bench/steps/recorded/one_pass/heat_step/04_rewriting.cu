// Seven points of a grid in three dimensions, four neighbouring points and a run of planes for each thread; faces stay as they are.

#define HEAT_CHUNK 12

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 8), ceil_div(X, 12)), (32, 8)>>>(u, out, k, X, Y, Z)
__global__ void __launch_bounds__(256, 5) heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  const int lane = threadIdx.x;
  const int l = blockIdx.x * 128 + lane * 4;
  const int j = blockIdx.y * 8 + threadIdx.y;
  if (j >= Y) return;  // a warp is one row: uniform
  const int i0 = blockIdx.z * HEAT_CHUNK;
  const int count = min(HEAT_CHUNK, X - i0);
  const int plane = Y * Z;
  const bool jface = j == 0 || j == Y - 1;

  if ((Z & 3) == 0) {
    const bool valid = l < Z;
    const int step = (blockIdx.z & 1) ? -1 : 1;
    int i = (blockIdx.z & 1) ? i0 + count - 1 : i0;
    const int hop = step * plane;
    int at = (i * Y + j) * Z + l;
    const bool zfirst = l == 0;
    const bool zlast = l + 4 == Z;
    const bool edge_left = lane == 0 && valid && !zfirst;
    const bool edge_right = lane == 31 && valid && !zlast;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    float4 prev = zero, cur = zero, next = zero;
    if (valid) {
      cur = *reinterpret_cast<const float4*>(u + at);
      if (i - step >= 0 && i - step < X) prev = *reinterpret_cast<const float4*>(u + (at - hop));
      if (i + step >= 0 && i + step < X) next = *reinterpret_cast<const float4*>(u + (at + hop));
    }
#pragma unroll 2
    for (int n = 0; n < count; ++n) {
      float4 after = zero;
      const int i2 = i + 2 * step;
      if (valid && n + 1 < count && i2 >= 0 && i2 < X) {
        after = *reinterpret_cast<const float4*>(u + (at + 2 * hop));
      }
      float4 r = cur;
      // uniform over the warp
      if (!jface && i > 0 && i < X - 1) {
        float4 lo = zero, hi = zero;
        if (valid) {
          lo = *reinterpret_cast<const float4*>(u + (at - Z));
          hi = *reinterpret_cast<const float4*>(u + (at + Z));
        }
        float left = __shfl_up_sync(0xffffffffu, cur.w, 1);
        float right = __shfl_down_sync(0xffffffffu, cur.x, 1);
        if (edge_left) left = u[at - 1];
        if (edge_right) right = u[at + 4];
        if (!zfirst) {
          r.x = cur.x + k * (prev.x + next.x + lo.x + hi.x + left + cur.y - 6.0f * cur.x);
        }
        r.y = cur.y + k * (prev.y + next.y + lo.y + hi.y + cur.x + cur.z - 6.0f * cur.y);
        r.z = cur.z + k * (prev.z + next.z + lo.z + hi.z + cur.y + cur.w - 6.0f * cur.z);
        if (!zlast) {
          r.w = cur.w + k * (prev.w + next.w + lo.w + hi.w + cur.z + right - 6.0f * cur.w);
        }
      }
      if (valid) __stcs(reinterpret_cast<float4*>(out + at), r);
      prev = cur;
      cur = next;
      next = after;
      at += hop;
      i += step;
    }
  } else {
    for (int n = 0; n < count; ++n) {
      const int i = i0 + n;
      const int row = (i * Y + j) * Z;
#pragma unroll 1
      for (int q = 0; q < 4; ++q) {
        const int z = blockIdx.x * 128 + q * 32 + lane;
        if (z < Z) {
          const int at = row + z;
          const float centre = u[at];
          if (i == 0 || i == X - 1 || jface || z == 0 || z == Z - 1) {
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
