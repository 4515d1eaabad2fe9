// Squared distances between two sets of points, 8 x 8 pairs for each thread, the coordinates in tiles of 16, copied ahead.

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), (16, 16)>>>(q, p, out, M, N, D)
#include <cstdint>

__device__ __forceinline__ void copy16(float* to, const float* from, bool inside) {
  int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"((unsigned)__cvta_generic_to_shared(to)),
               "l"(from), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void copy4(float* to, const float* from, bool inside) {
  int bytes = inside ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"((unsigned)__cvta_generic_to_shared(to)),
               "l"(from), "r"(bytes)
               : "memory");
}

__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p,
                                                            float* __restrict__ out, int M, int N, int D) {
  __shared__ __align__(16) float tile_q[2][128][20];
  __shared__ __align__(16) float tile_p[2][128][20];
  int tx = threadIdx.x;
  int ty = threadIdx.y;
  int t = ty * 16 + tx;
  int i0 = blockIdx.y * 128;
  int j0 = blockIdx.x * 128;
  bool wide = (D & 3) == 0 && ((reinterpret_cast<uintptr_t>(q) | reinterpret_cast<uintptr_t>(p)) & 15) == 0;

  // starts the copies of 16 coordinates from d0 on into a pair of buffers
  auto bring = [&](int d0, int slot) {
    if (wide) {
      int column = (t & 3) * 4;
      int row = t >> 2;
      int d = d0 + column;
      bool inside = d < D;
      int from = inside ? d : 0;
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        int at_q = min(i0 + row + 64 * m, M - 1) * D + from;
        int at_p = min(j0 + row + 64 * m, N - 1) * D + from;
        copy16(&tile_q[slot][row + 64 * m][column], q + at_q, inside);
        copy16(&tile_p[slot][row + 64 * m][column], p + at_p, inside);
      }
    } else {
      int column = t & 15;
      int row = t >> 4;
      int d = d0 + column;
      bool inside = d < D;
      int from = inside ? d : 0;
#pragma unroll 2
      for (int m = 0; m < 8; ++m) {
        int at_q = min(i0 + row + 16 * m, M - 1) * D + from;
        int at_p = min(j0 + row + 16 * m, N - 1) * D + from;
        copy4(&tile_q[slot][row + 16 * m][column], q + at_q, inside);
        copy4(&tile_p[slot][row + 16 * m][column], p + at_p, inside);
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };

  float sum[8][8];
#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      sum[r][c] = 0.0f;
    }
  }
  bring(0, 0);
  int now = 0;
#pragma unroll 1
  for (int d0 = 0; d0 < D; d0 += 16) {
    // the present tile has come, and all threads have left the other one
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();
    if (d0 + 16 < D) {
      bring(d0 + 16, now ^ 1);
    }
    const float* from_q = &tile_q[now][ty][0];
    const float* from_p = &tile_p[now][tx][0];
#pragma unroll 2
    for (int k = 0; k < 16; k += 4) {
      float4 b[8];
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        b[c] = *reinterpret_cast<const float4*>(from_p + 16 * 20 * c + k);
      }
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        float4 a = *reinterpret_cast<const float4*>(from_q + 16 * 20 * r + k);
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          float difference = a.x - b[c].x;
          sum[r][c] += difference * difference;
        }
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          float difference = a.y - b[c].y;
          sum[r][c] += difference * difference;
        }
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          float difference = a.z - b[c].z;
          sum[r][c] += difference * difference;
        }
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          float difference = a.w - b[c].w;
          sum[r][c] += difference * difference;
        }
      }
    }
    now ^= 1;
  }
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    int i = blockIdx.y * 128 + ty + 16 * r;
    if (i < M) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        int j = blockIdx.x * 128 + tx + 16 * c;
        if (j < N) {
          out[i * N + j] = sum[r][c];
        }
      }
    }
  }
}
