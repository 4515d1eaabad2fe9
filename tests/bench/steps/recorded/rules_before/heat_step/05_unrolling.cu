// Seven points of a grid in three dimensions, tiles of 55 x 32 x 64 points; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 64), ceil_div(Y, 32), ceil_div(X, 55)), (64, 4)>>>(u, out, k, X, Y, Z)
__global__ void __launch_bounds__(256, 4) heat_step(const float* u, float* out, float k, int X, int Y, int Z) {
  // row 0 and 33, column 0 and 65 are the halo of the plane
  __shared__ float tile[2][34][66];
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

  float before[8], centre[8], after[8];
  float halo = 0.0f;
#pragma unroll
  for (int q = 0; q < 8; ++q) {
    before[q] = q < rows && i0 > 0 ? u[at + q * Z - plane] : 0.0f;
    centre[q] = q < rows ? u[at + q * Z] : 0.0f;
  }
  if (has_halo) {
    halo = u[halo_at];
  }

  int b = 0;
  for (int i = i0; i < end; ++i) {
    // the next plane is on its way while this one is computed
    float halo_after = 0.0f;
    bool more = i + 1 < X;
    if (more && rows == 8) {
      const float* next = u + (at + plane);
      after[0] = next[0];
      after[1] = next[Z];
      after[2] = next[2 * Z];
      after[3] = next[3 * Z];
      after[4] = next[4 * Z];
      after[5] = next[5 * Z];
      after[6] = next[6 * Z];
      after[7] = next[7 * Z];
    } else {
#pragma unroll
      for (int q = 0; q < 8; ++q) {
        after[q] = more && q < rows ? u[at + q * Z + plane] : 0.0f;
      }
    }
    if (has_halo && i + 1 < end) {
      halo_after = u[halo_at + plane];
    }

#pragma unroll
    for (int q = 0; q < 8; ++q) {
      tile[b][ty * 8 + q + 1][tx + 1] = centre[q];
    }
    if (has_halo) {
      tile[b][halo_row][halo_col] = halo;
    }
    __syncthreads();

    bool edge = edge_l || i == 0 || i == X - 1;
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      if (q < rows) {
        float result = centre[q];
        if (!(edge || j + q == 0 || j + q == Y - 1)) {
          float up = q > 0 ? centre[q > 0 ? q - 1 : 0] : tile[b][ty * 8][tx + 1];
          float down = q < 7 ? centre[q < 7 ? q + 1 : 7] : tile[b][ty * 8 + 9][tx + 1];
          float left = tile[b][ty * 8 + q + 1][tx];
          float right = tile[b][ty * 8 + q + 1][tx + 2];
          result = centre[q] + k * (before[q] + after[q] + up + down + left + right - 6.0f * centre[q]);
        }
        out[at + q * Z] = result;
      }
    }

#pragma unroll
    for (int q = 0; q < 8; ++q) {
      before[q] = centre[q];
      centre[q] = after[q];
    }
    halo = halo_after;
    at += plane;
    halo_at += plane;
    b ^= 1;
  }
}
