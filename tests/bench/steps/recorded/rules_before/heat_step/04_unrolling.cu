// Seven points of a grid in three dimensions, tiles of 48 x 16 x 128 points, 4 x 4 points of a plane for each thread; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 16), ceil_div(X, 48)), (32, 4)>>>(u, out, k, X, Y, Z)

// four neighbouring points, of which the first count exist (all of them if WIDE)
template <bool WIDE>
__device__ __forceinline__ float4 take(const float* p, int count) {
  if (WIDE) {
    return *reinterpret_cast<const float4*>(p);
  }
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (count > 0) v.x = p[0];
  if (count > 1) v.y = p[1];
  if (count > 2) v.z = p[2];
  if (count > 3) v.w = p[3];
  return v;
}

template <bool WIDE>
__device__ __forceinline__ void put(float* p, float4 v, int count) {
  if (WIDE) {
    *reinterpret_cast<float4*>(p) = v;
  } else {
    if (count > 0) p[0] = v.x;
    if (count > 1) p[1] = v.y;
    if (count > 2) p[2] = v.z;
    if (count > 3) p[3] = v.w;
  }
}

template <bool WIDE>
__device__ __forceinline__ void march(const float* u, float* out, float k, int X, int Y, int Z,
                                      float (&border)[2][10][128], float (&side)[2][2][16]) {
  int tx = threadIdx.x;
  int ty = threadIdx.y;
  int l0 = blockIdx.x * 128;
  int j0 = blockIdx.y * 16;
  int l = l0 + tx * 4;
  int j = j0 + ty * 4;
  int i0 = blockIdx.z * 48;
  int end = min(i0 + 48, X);
  int plane = Y * Z;
  int count = Z - l;

  // at most four neighbouring points or one point of the halo for each thread
  int halo_j = 0, halo_l = 0;
  bool has_halo = false;
  if (ty == 0) {
    halo_j = j0 - 1;
    halo_l = l;
    has_halo = halo_j >= 0 && halo_l < Z;
  } else if (ty == 1) {
    halo_j = j0 + 16;
    halo_l = l;
    has_halo = halo_j < Y && halo_l < Z;
  } else if (ty == 2) {
    halo_j = j0 + (tx & 15);
    halo_l = tx >= 16 ? l0 + 128 : l0 - 1;
    has_halo = halo_j < Y && halo_l >= 0 && halo_l < Z;
  }

  int rows = l < Z ? min(4, Y - j) : 0;
  int at = (i0 * Y + j) * Z + l;
  int halo_at = (i0 * Y + halo_j) * Z + halo_l;
  const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

  float4 before[4], centre[4], after[4];
  float4 halo = zero;
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    before[q] = zero;
    centre[q] = zero;
    if (q < rows && i0 > 0) {
      before[q] = take<WIDE>(u + (at + q * Z - plane), count);
    }
    if (q < rows) {
      centre[q] = take<WIDE>(u + (at + q * Z), count);
    }
  }
  if (has_halo) {
    if (ty == 2) {
      halo.x = u[halo_at];
    } else {
      halo = take<WIDE>(u + halo_at, count);
    }
  }

  int b = 0;
#pragma unroll 1
  for (int i = i0; i < end; ++i) {
    // the next plane is on its way while this one is computed
    float4 halo_after = zero;
    bool more = i + 1 < X;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      after[q] = zero;
      if (more && q < rows) {
        after[q] = take<WIDE>(u + (at + q * Z + plane), count);
      }
    }
    if (has_halo && i + 1 < end) {
      if (ty == 2) {
        halo_after.x = u[halo_at + plane];
      } else {
        halo_after = take<WIDE>(u + (halo_at + plane), count);
      }
    }

    // row 0 and 9 are the halo, 2 ty + 1 and 2 ty + 2 the first and last row of a warp
    *reinterpret_cast<float4*>(&border[b][2 * ty + 1][tx * 4]) = centre[0];
    *reinterpret_cast<float4*>(&border[b][2 * ty + 2][tx * 4]) = centre[3];
    if (ty == 0) {
      *reinterpret_cast<float4*>(&border[b][0][tx * 4]) = halo;
    } else if (ty == 1) {
      *reinterpret_cast<float4*>(&border[b][9][tx * 4]) = halo;
    } else if (ty == 2) {
      side[b][tx >> 4][tx & 15] = halo.x;
    }
    __syncthreads();

    float4 above = *reinterpret_cast<const float4*>(&border[b][2 * ty][tx * 4]);
    float4 below = *reinterpret_cast<const float4*>(&border[b][2 * ty + 3][tx * 4]);
    float4 beside = *reinterpret_cast<const float4*>(&side[b][tx >> 4][ty * 4]);
    bool edge_i = i == 0 || i == X - 1;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      float4 c = centre[q];
      float s = q == 0 ? beside.x : q == 1 ? beside.y : q == 2 ? beside.z : beside.w;
      float left = __shfl_up_sync(0xffffffffu, c.w, 1);
      float right = __shfl_down_sync(0xffffffffu, c.x, 1);
      left = tx == 0 ? s : left;
      right = tx == 31 ? s : right;
      if (q < rows) {
        float4 up = q > 0 ? centre[q > 0 ? q - 1 : 0] : above;
        float4 down = q < 3 ? centre[q < 3 ? q + 1 : 3] : below;
        bool edge = edge_i || j + q == 0 || j + q == Y - 1;
        float4 result = c;
        if (!edge) {
          float r0 = c.x + k * (before[q].x + after[q].x + up.x + down.x + left + c.y - 6.0f * c.x);
          float r1 = c.y + k * (before[q].y + after[q].y + up.y + down.y + c.x + c.z - 6.0f * c.y);
          float r2 = c.z + k * (before[q].z + after[q].z + up.z + down.z + c.y + c.w - 6.0f * c.z);
          float r3 = c.w + k * (before[q].w + after[q].w + up.w + down.w + c.z + right - 6.0f * c.w);
          result.x = l == 0 || l == Z - 1 ? c.x : r0;
          result.y = l + 1 == Z - 1 ? c.y : r1;
          result.z = l + 2 == Z - 1 ? c.z : r2;
          result.w = l + 3 == Z - 1 ? c.w : r3;
        }
        put<WIDE>(out + (at + q * Z), result, count);
      }
    }

#pragma unroll
    for (int q = 0; q < 4; ++q) {
      before[q] = centre[q];
      centre[q] = after[q];
    }
    halo = halo_after;
    at += plane;
    halo_at += plane;
    b ^= 1;
  }
}

__global__ void __launch_bounds__(128, 5) heat_step(const float* u, float* out, float k, int X, int Y, int Z) {
  __shared__ __align__(16) float border[2][10][128];
  __shared__ __align__(16) float side[2][2][16];
  bool wide = (Z & 3) == 0 && ((reinterpret_cast<size_t>(u) | reinterpret_cast<size_t>(out)) & 15) == 0;
  if (wide) {
    march<true>(u, out, k, X, Y, Z, border, side);
  } else {
    march<false>(u, out, k, X, Y, Z, border, side);
  }
}
