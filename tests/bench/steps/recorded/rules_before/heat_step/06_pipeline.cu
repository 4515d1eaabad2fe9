// Seven points of a grid in three dimensions, tiles of 55 x 32 x 64 points; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 64), ceil_div(Y, 32), ceil_div(X, 55)), (64, 4)>>>(u, out, k, X, Y, Z)

// One plane: centre and after are in registers, plane i + 2 is loaded into ahead, before is in the buffer of plane i - 1.
__device__ __forceinline__ void plane_step(const float* u, float* out, float k, int X, int Y, int Z, int plane, int i,
                                           int end, int j, int rows, bool edge_l, bool has_halo, int at, int halo_at,
                                           float* now, const float* last, float* now_halo, const float (&centre)[8],
                                           const float (&after)[8], float (&ahead)[8], float halo, float& halo_ahead) {
  // the plane behind the next one is on its way while this one is computed
  bool more = i + 2 < X && i + 1 < end;
  if (more && rows == 8) {
    const float* next = u + (at + 2 * plane);
    ahead[0] = next[0];
    ahead[1] = next[Z];
    ahead[2] = next[2 * Z];
    ahead[3] = next[3 * Z];
    ahead[4] = next[4 * Z];
    ahead[5] = next[5 * Z];
    ahead[6] = next[6 * Z];
    ahead[7] = next[7 * Z];
  } else {
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      ahead[q] = more && q < rows ? u[at + q * Z + 2 * plane] : 0.0f;
    }
  }
  if (has_halo && i + 2 < end) {
    halo_ahead = u[halo_at + 2 * plane];
  }

#pragma unroll
  for (int q = 0; q < 8; ++q) {
    now[q * 66] = centre[q];
  }
  if (has_halo) {
    *now_halo = halo;
  }
  __syncthreads();

  bool edge = edge_l || i == 0 || i == X - 1;
#pragma unroll
  for (int q = 0; q < 8; ++q) {
    if (q < rows) {
      float result = centre[q];
      if (!(edge || j + q == 0 || j + q == Y - 1)) {
        float before = last[q * 66];
        float up = q > 0 ? centre[q > 0 ? q - 1 : 0] : now[-66];
        float down = q < 7 ? centre[q < 7 ? q + 1 : 7] : now[8 * 66];
        float left = now[q * 66 - 1];
        float right = now[q * 66 + 1];
        result = centre[q] + k * (before + after[q] + up + down + left + right - 6.0f * centre[q]);
      }
      out[at + q * Z] = result;
    }
  }
}

__global__ void __launch_bounds__(256, 4) heat_step(const float* u, float* out, float k, int X, int Y, int Z) {
  // row 0 and 33, column 0 and 65 are the halo of the plane
  __shared__ float tile[3][34][66];
  int tx = threadIdx.x;
  int ty = threadIdx.y;
  int l0 = blockIdx.x * 64;
  int j0 = blockIdx.y * 32;
  int l = l0 + tx;
  int j = j0 + ty * 8;
  int i0 = blockIdx.z * 55;
  int end = min(i0 + 55, X);
  int plane = Y * Z;

  // at most one point of the halo for each thread
  int halo_j = 0, halo_l = 0, halo_row = 0, halo_col = 0;
  bool has_halo = false;
  if (ty == 0) {
    halo_j = j0 - 1;
    halo_l = l;
    halo_row = 0;
    halo_col = tx + 1;
    has_halo = halo_j >= 0 && halo_l < Z;
  } else if (ty == 1) {
    halo_j = j0 + 32;
    halo_l = l;
    halo_row = 33;
    halo_col = tx + 1;
    has_halo = halo_j < Y && halo_l < Z;
  } else if (ty == 2) {
    int row = tx & 31;
    bool right = tx >= 32;
    halo_j = j0 + row;
    halo_l = right ? l0 + 64 : l0 - 1;
    halo_row = row + 1;
    halo_col = right ? 65 : 0;
    has_halo = halo_j < Y && halo_l >= 0 && halo_l < Z;
  }

  int rows = l < Z ? min(8, Y - j) : 0;
  bool edge_l = l == 0 || l == Z - 1;
  int at = (i0 * Y + j) * Z + l;
  int halo_at = (i0 * Y + halo_j) * Z + halo_l;

  const int slot = 34 * 66;
  float* mine = &tile[0][ty * 8 + 1][tx + 1];
  float* mine_halo = &tile[0][halo_row][halo_col];

  float p0[8], p1[8], p2[8];
  float halo0 = 0.0f, halo1 = 0.0f, halo2 = 0.0f;
#pragma unroll
  for (int q = 0; q < 8; ++q) {
    p2[q] = q < rows && i0 > 0 ? u[at + q * Z - plane] : 0.0f;
    p0[q] = q < rows ? u[at + q * Z] : 0.0f;
    p1[q] = q < rows && i0 + 1 < X ? u[at + q * Z + plane] : 0.0f;
  }
  if (has_halo) {
    halo0 = u[halo_at];
    if (i0 + 1 < end) {
      halo1 = u[halo_at + plane];
    }
  }
  // each thread reads the points before only where it has written them itself
#pragma unroll
  for (int q = 0; q < 8; ++q) {
    mine[2 * slot + q * 66] = p2[q];
  }

  int i = i0;
#pragma unroll 1
  while (true) {
    plane_step(u, out, k, X, Y, Z, plane, i, end, j, rows, edge_l, has_halo, at, halo_at, mine, mine + 2 * slot,
               mine_halo, p0, p1, p2, halo0, halo2);
    at += plane;
    halo_at += plane;
    if (++i >= end) {
      break;
    }
    plane_step(u, out, k, X, Y, Z, plane, i, end, j, rows, edge_l, has_halo, at, halo_at, mine + slot, mine,
               mine_halo + slot, p1, p2, p0, halo1, halo0);
    at += plane;
    halo_at += plane;
    if (++i >= end) {
      break;
    }
    plane_step(u, out, k, X, Y, Z, plane, i, end, j, rows, edge_l, has_halo, at, halo_at, mine + 2 * slot,
               mine + slot, mine_halo + 2 * slot, p2, p0, p1, halo2, halo1);
    at += plane;
    halo_at += plane;
    if (++i >= end) {
      break;
    }
  }
}
