// Seven points of a grid in three dimensions, tiles of 24 x 16 x 64 points; faces stay as they are.

//@ launch heat_step<<<(ceil_div(Z, 64), ceil_div(Y, 16), ceil_div(X, 24)), (64, 4)>>>(u, out, k, X, Y, Z)
#include <cstdint>

__device__ __forceinline__ void copy16(float* to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
               : "memory");
}

__device__ __forceinline__ void copy4(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
               : "memory");
}

__device__ __forceinline__ void copy_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

__global__ void __launch_bounds__(256, 6) heat_step(const float* u, float* out, float k, int X, int Y, int Z) {
  // a ring of four planes; row 0 and 17, column 3 and 68 are the halo of a plane, its points begin at row 1, column 4
  __shared__ __align__(16) float tile[4][18][72];
  int tx = threadIdx.x;
  int ty = threadIdx.y;
  int t = ty * 64 + tx;
  int l0 = blockIdx.x * 64;
  int j0 = blockIdx.y * 16;
  int l = l0 + tx;
  int j = j0 + ty * 4;
  int i0 = blockIdx.z * 24;
  int end = min(i0 + 24, X);
  int last = min(end, X - 1);
  int plane = Y * Z;

  int rows = l < Z ? min(4, Y - j) : 0;
  bool edge_l = l == 0 || l == Z - 1;

  // what this thread copies of each plane: one part of the points, and at most one part of the halo
  bool wide = (Z & 3) == 0 && (reinterpret_cast<uintptr_t>(u) & 15) == 0;
  int main_at, main_to;
  int halo_j = 0, halo_l = 0, halo_row = 0, halo_col = 0;
  int halo_size = 0;
  bool has_main;
  if (wide) {
    int main_j = j0 + (t >> 4);
    int main_l = l0 + 4 * (t & 15);
    has_main = main_j < Y && main_l < Z;
    main_at = main_j * Z + main_l;
    main_to = ((t >> 4) + 1) * 72 + 4 + 4 * (t & 15);
    if (t < 32) {
      halo_j = t < 16 ? j0 - 1 : j0 + 16;
      halo_l = main_l;
      halo_row = t < 16 ? 0 : 17;
      halo_col = 4 + 4 * (t & 15);
      halo_size = halo_j >= 0 && halo_j < Y && halo_l < Z ? 16 : 0;
    } else if (t < 64) {
      int row = t & 15;
      bool right = t >= 48;
      halo_j = j0 + row;
      halo_l = right ? l0 + 64 : l0 - 1;
      halo_row = row + 1;
      halo_col = right ? 68 : 3;
      halo_size = halo_j < Y && halo_l >= 0 && halo_l < Z ? 4 : 0;
    }
  } else {
    has_main = rows > 0;
    main_at = j * Z + l;
    main_to = (ty * 4 + 1) * 72 + 4 + tx;
    bool has_halo = false;
    if (ty == 0) {
      halo_j = j0 - 1;
      halo_l = l;
      halo_row = 0;
      halo_col = tx + 4;
      has_halo = halo_j >= 0 && halo_l < Z;
    } else if (ty == 1) {
      halo_j = j0 + 16;
      halo_l = l;
      halo_row = 17;
      halo_col = tx + 4;
      has_halo = halo_j < Y && halo_l < Z;
    } else if (ty == 2 && tx < 32) {
      int row = tx & 15;
      bool right = tx >= 16;
      halo_j = j0 + row;
      halo_l = right ? l0 + 64 : l0 - 1;
      halo_row = row + 1;
      halo_col = right ? 68 : 3;
      has_halo = halo_j < Y && halo_l >= 0 && halo_l < Z;
    }
    halo_size = has_halo ? 4 : 0;
  }
  int halo_at = halo_j * Z + halo_l;
  int halo_to = halo_row * 72 + halo_col;

  // starts the copy of plane p into a buffer; one group, empty behind the last plane
  auto bring = [&](int p, int slot) {
    if (p <= last) {
      float* to = &tile[slot][0][0];
      const float* from = u + p * plane;
      if (has_main) {
        if (wide) {
          copy16(to + main_to, from + main_at);
        } else {
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            if (q < rows) {
              copy4(to + main_to + q * 72, from + main_at + q * Z);
            }
          }
        }
      }
      // the plane behind the tile is needed without its halo
      if (halo_size != 0 && p < end) {
        if (halo_size == 16) {
          copy16(to + halo_to, from + halo_at);
        } else {
          copy4(to + halo_to, from + halo_at);
        }
      }
    }
    copy_commit();
  };

  bring(i0, 0);
  bring(i0 + 1, 1);
  bring(i0 + 2, 2);

  int at = (i0 * Y + j) * Z + l;
  float before[4], centre[4], after[4];
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    before[q] = q < rows && i0 > 0 ? u[at + q * Z - plane] : 0.0f;
  }
  copy_wait<2>();
  __syncthreads();
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    centre[q] = tile[0][ty * 4 + q + 1][tx + 4];
  }

  int b = 0;
  for (int i = i0; i < end; ++i) {
    // plane i + 1 has come, and all threads have left plane i - 1, so that its buffer takes plane i + 3
    copy_wait<1>();
    __syncthreads();
    bring(i + 3, (b + 3) & 3);

    int next = (b + 1) & 3;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      after[q] = tile[next][ty * 4 + q + 1][tx + 4];
    }

    bool edge = edge_l || i == 0 || i == X - 1;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      if (q < rows) {
        float result = centre[q];
        if (!(edge || j + q == 0 || j + q == Y - 1)) {
          float up = q > 0 ? centre[q > 0 ? q - 1 : 0] : tile[b][ty * 4][tx + 4];
          float down = q < 3 ? centre[q < 3 ? q + 1 : 3] : tile[b][ty * 4 + 5][tx + 4];
          float left = tile[b][ty * 4 + q + 1][tx + 3];
          float right = tile[b][ty * 4 + q + 1][tx + 5];
          result = centre[q] + k * (before[q] + after[q] + up + down + left + right - 6.0f * centre[q]);
        }
        out[at + q * Z] = result;
      }
    }

#pragma unroll
    for (int q = 0; q < 4; ++q) {
      before[q] = centre[q];
      centre[q] = after[q];
    }
    at += plane;
    b = next;
  }
  copy_wait<0>();
}
