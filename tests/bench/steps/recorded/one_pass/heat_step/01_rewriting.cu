// Seven points of a grid in three dimensions; a thread takes four neighbouring points of four planes; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 8), ceil_div(X, 4)), (32, 8)>>>(u, out, k, X, Y, Z)
__global__ void __launch_bounds__(256, 3) heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  constexpr int PLANES = 4;
  const int lane = threadIdx.x;
  const int j = blockIdx.y * 8 + threadIdx.y;
  const int i0 = blockIdx.z * PLANES;
  if (j >= Y) {
    return;
  }
  const size_t plane = (size_t)Y * Z;
  const bool jface = j == 0 || j == Y - 1;

  if ((Z & 3) == 0) {
    const int l = (blockIdx.x * 32 + lane) * 4;
    const bool active = l < Z;
    const size_t first = (size_t)i0 * plane + (size_t)j * Z + l;
    const float* p = u + first;
    float* o = out + first;
    const float4 none = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    float4 c[PLANES + 2];
#pragma unroll
    for (int q = 0; q < PLANES + 2; ++q) {
      const int i = i0 + q - 1;
      c[q] = none;
      if (active && i >= 0 && i < X) {
        c[q] = __ldg(reinterpret_cast<const float4*>(u + ((size_t)i * plane + (size_t)j * Z + l)));
      }
    }
    float4 a[PLANES], b[PLANES];
    float before[PLANES], behind[PLANES];
#pragma unroll
    for (int q = 0; q < PLANES; ++q) {
      const bool here = active && i0 + q < X;
      const float* r = p + q * plane;
      a[q] = none;
      b[q] = none;
      before[q] = 0.0f;
      behind[q] = 0.0f;
      if (here && !jface) {
        a[q] = __ldg(reinterpret_cast<const float4*>(r - Z));
        b[q] = __ldg(reinterpret_cast<const float4*>(r + Z));
      }
      if (here && lane == 0 && l > 0) {
        before[q] = __ldg(r - 1);
      }
      if (here && lane == 31 && l + 4 < Z) {
        behind[q] = __ldg(r + 4);
      }
    }
#pragma unroll
    for (int q = 0; q < PLANES; ++q) {
      const float4 m = c[q + 1];
      const float4 d = c[q];
      const float4 e = c[q + 2];
      float left = __shfl_up_sync(0xffffffffu, m.w, 1);
      float right = __shfl_down_sync(0xffffffffu, m.x, 1);
      if (lane == 0) left = before[q];
      if (lane == 31) right = behind[q];
      const int i = i0 + q;
      float4 n;
      n.x = m.x + k * (d.x + e.x + a[q].x + b[q].x + left + m.y - 6.0f * m.x);
      n.y = m.y + k * (d.y + e.y + a[q].y + b[q].y + m.x + m.z - 6.0f * m.y);
      n.z = m.z + k * (d.z + e.z + a[q].z + b[q].z + m.y + m.w - 6.0f * m.z);
      n.w = m.w + k * (d.w + e.w + a[q].w + b[q].w + m.z + right - 6.0f * m.w);
      if (l == 0) n.x = m.x;
      if (l + 4 == Z) n.w = m.w;
      if (jface || i == 0 || i == X - 1) n = m;
      if (active && i < X) {
        __stcs(reinterpret_cast<float4*>(o + q * plane), n);
      }
    }
    return;
  }

  for (int q = 0; q < PLANES; ++q) {
    const int i = i0 + q;
    if (i >= X) {
      break;
    }
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const int l = blockIdx.x * 128 + s * 32 + lane;
      if (l < Z) {
        const size_t at = (size_t)i * plane + (size_t)j * Z + l;
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
