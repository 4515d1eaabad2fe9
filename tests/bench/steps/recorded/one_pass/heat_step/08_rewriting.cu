// Seven points of a grid in three dimensions; a thread makes four neighbouring points of four planes; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 8), ceil_div(X, 4)), (32, 8)>>>(u, out, k, X, Y, Z)
__global__ void __launch_bounds__(256) heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  constexpr int P = 4;
  const int lane = threadIdx.x;
  const int j = blockIdx.y * 8 + threadIdx.y;
  const int i0 = blockIdx.z * P;
  if (j >= Y) {
    return;
  }
  const int plane = Y * Z;
  const bool inner_row = j > 0 && j < Y - 1;

  if ((Z & 3) == 0) {
    const int l = (blockIdx.x * 32 + lane) * 4;
    const bool in = l < Z;
    const int at0 = (i0 * Y + j) * Z + l;
    const bool first = l == 0;
    const bool last = l + 4 >= Z;
    const bool need_edge = in && ((lane == 0 && !first) || (lane == 31 && !last));
    const int edge = lane == 0 ? -1 : 4;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    float4 c[P + 2];
#pragma unroll
    for (int p = 0; p < P + 2; ++p) {
      const int i = i0 + p - 1;
      c[p] = zero;
      if (in && i >= 0 && i < X) {
        c[p] = __ldg(reinterpret_cast<const float4*>(u + at0 + (p - 1) * plane));
      }
    }
    float4 n[P], s[P];
    float e[P];
#pragma unroll
    for (int p = 0; p < P; ++p) {
      n[p] = zero;
      s[p] = zero;
      e[p] = 0.0f;
      if (inner_row && in && i0 + p < X) {
        const float* q = u + at0 + p * plane;
        n[p] = __ldg(reinterpret_cast<const float4*>(q - Z));
        s[p] = __ldg(reinterpret_cast<const float4*>(q + Z));
        if (need_edge) {
          e[p] = __ldg(q + edge);
        }
      }
    }
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const int i = i0 + p;
      const float4 b = c[p + 1];
      float left = __shfl_up_sync(0xffffffffu, b.w, 1);
      float right = __shfl_down_sync(0xffffffffu, b.x, 1);
      if (lane == 0) left = e[p];
      if (lane == 31) right = e[p];
      float4 r = b;
      if (inner_row && i > 0 && i < X - 1) {
        const float4 lo = c[p];
        const float4 hi = c[p + 2];
        if (!first) {
          r.x = b.x + k * (lo.x + hi.x + n[p].x + s[p].x + left + b.y - 6.0f * b.x);
        }
        r.y = b.y + k * (lo.y + hi.y + n[p].y + s[p].y + b.x + b.z - 6.0f * b.y);
        r.z = b.z + k * (lo.z + hi.z + n[p].z + s[p].z + b.y + b.w - 6.0f * b.z);
        if (!last) {
          r.w = b.w + k * (lo.w + hi.w + n[p].w + s[p].w + b.z + right - 6.0f * b.w);
        }
      }
      if (in && i < X) {
        __stcs(reinterpret_cast<float4*>(out + at0 + p * plane), r);
      }
    }
  } else {
    for (int p = 0; p < P; ++p) {
      const int i = i0 + p;
      if (i >= X) {
        break;
      }
      const bool inner = inner_row && i > 0 && i < X - 1;
#pragma unroll
      for (int h = 0; h < 4; ++h) {
        const int l = blockIdx.x * 128 + h * 32 + lane;
        if (l < Z) {
          const int at = (i * Y + j) * Z + l;
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
