// Seven points of a grid in three dimensions, a float4 along Z and 4 planes of X for each thread; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 8), ceil_div(X, 4)), (32, 8)>>>(u, out, k, X, Y, Z)
#include <cstddef>

constexpr int PLANES = 4;

__global__ void __launch_bounds__(256)
heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  const int lane = threadIdx.x;
  const int j = blockIdx.y * 8 + threadIdx.y;
  const int i0 = blockIdx.z * PLANES;
  if (j >= Y) return;
  const bool inner_row = j > 0 && j < Y - 1;
  const size_t plane = (size_t)Y * Z;

  if ((Z & 3) == 0) {
    const int l = blockIdx.x * 128 + lane * 4;
    const bool in = l < Z;
    const size_t base = ((size_t)i0 * Y + j) * Z + l;
    const float* __restrict__ from = u + base;
    const float4 none = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    float4 c[PLANES + 2];
    float4 up[PLANES];
    float4 down[PLANES];
    float edge[PLANES];
    const bool need_edge = in && inner_row && ((lane == 0 && l > 0) || (lane == 31 && l + 4 < Z));
    const int edge_at = lane == 0 ? -1 : 4;

#pragma unroll
    for (int p = 0; p < PLANES + 2; ++p) {
      const int i = i0 + p - 1;
      c[p] = none;
      if (in && i >= 0 && i < X) {
        c[p] = __ldg(reinterpret_cast<const float4*>(from + (ptrdiff_t)(p - 1) * (ptrdiff_t)plane));
      }
    }
#pragma unroll
    for (int p = 0; p < PLANES; ++p) {
      const int i = i0 + p;
      up[p] = none;
      down[p] = none;
      edge[p] = 0.0f;
      if (i < X) {
        const float* at = from + p * plane;
        if (in && inner_row) {
          up[p] = __ldg(reinterpret_cast<const float4*>(at - Z));
          down[p] = __ldg(reinterpret_cast<const float4*>(at + Z));
        }
        if (need_edge) edge[p] = __ldg(at + edge_at);
      }
    }
#pragma unroll
    for (int p = 0; p < PLANES; ++p) {
      const int i = i0 + p;
      const float4 v = c[p + 1];
      float left = __shfl_up_sync(0xffffffffu, v.w, 1);
      float right = __shfl_down_sync(0xffffffffu, v.x, 1);
      if (lane == 0) left = edge[p];
      if (lane == 31) right = edge[p];
      if (in && i < X) {
        float4 r = v;
        if (inner_row && i > 0 && i < X - 1) {
          const float4 a = c[p];
          const float4 b = c[p + 2];
          const float4 n = up[p];
          const float4 s = down[p];
          if (l > 0) r.x = v.x + k * (a.x + b.x + n.x + s.x + left + v.y - 6.0f * v.x);
          r.y = v.y + k * (a.y + b.y + n.y + s.y + v.x + v.z - 6.0f * v.y);
          r.z = v.z + k * (a.z + b.z + n.z + s.z + v.y + v.w - 6.0f * v.z);
          if (l + 4 < Z) r.w = v.w + k * (a.w + b.w + n.w + s.w + v.z + right - 6.0f * v.w);
        }
        __stcs(reinterpret_cast<float4*>(out + base + p * plane), r);
      }
    }
  } else {
#pragma unroll 1
    for (int p = 0; p < PLANES; ++p) {
      const int i = i0 + p;
      if (i >= X) break;
      const bool inner = inner_row && i > 0 && i < X - 1;
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int l = blockIdx.x * 128 + q * 32 + lane;
        if (l < Z) {
          const size_t at = ((size_t)i * Y + j) * Z + l;
          const float centre = u[at];
          if (!inner || l == 0 || l == Z - 1) {
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
