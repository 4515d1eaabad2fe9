// Response normalization over five neighbouring channels; a block holds a tile of 32 channels (and their neighbours) at 64
// positions in shared memory, one thread for eight channels of a position.

#include <cstdint>

//@ launch local_response<<<(ceil_div(P, 64), ceil_div(C, 32), B), 256>>>(x, out, B, C, P)

#define TILE_P 64
#define TILE_C 32
#define TILE_ROWS (TILE_C + 4)

__global__ void __launch_bounds__(256, 8)
local_response(const float* __restrict__ x, float* __restrict__ out, int B, int C, int P) {
  __shared__ __align__(16) float tile[TILE_ROWS * TILE_P];
  const int t = threadIdx.x;
  const int p0 = blockIdx.x * TILE_P;
  const int c0 = blockIdx.y * TILE_C;
  const int first = blockIdx.z * C * P;  // element of channel 0, position 0

  if ((P & 3) == 0 && (reinterpret_cast<uintptr_t>(x) & 15) == 0) {
    const int quad = (t & 15) * 4;
    const int p = p0 + quad;
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile) + (unsigned)t * 16u;
    if (p < P) {
#pragma unroll
      for (int k = 0; k < (TILE_ROWS + 15) / 16; ++k) {
        const int row = (t >> 4) + 16 * k;
        if (row < TILE_ROWS) {
          const int channel = c0 - 2 + row;
          const bool inside = channel >= 0 && channel < C;
          const float* from = inside ? x + (first + channel * P + p) : x;
          const int bytes = inside ? 16 : 0;
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to + (unsigned)k * 4096u), "l"(from), "r"(bytes)
                       : "memory");
        }
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  } else {
    const int p = p0 + (t & 63);
    if (p < P) {
#pragma unroll
      for (int k = 0; k < TILE_ROWS / 4; ++k) {
        const int row = (t >> 6) + 4 * k;
        const int channel = c0 - 2 + row;
        tile[row * TILE_P + (t & 63)] = channel >= 0 && channel < C ? x[first + channel * P + p] : 0.0f;
      }
    }
  }
  __syncthreads();

  const int local = t & 63;
  const int group = t >> 6;
  const int p = p0 + local;
  const int c = c0 + group * 8;
  if (p < P && c < C) {
    const float* from = tile + group * 8 * TILE_P + local;
    float* to = out + (first + c * P + p);
    float v[12];
#pragma unroll
    for (int r = 0; r < 12; ++r) {
      v[r] = from[r * TILE_P];
    }
    float low = v[1] * v[1] + v[2] * v[2];
#pragma unroll
    for (int r = 0; r < 8; r += 2) {
      // Channels r and r + 1 share the squares of v[r + 1] to v[r + 4].
      const float high = v[r + 3] * v[r + 3] + v[r + 4] * v[r + 4];
      const float shared_squares = low + high;
      low = high;
      if (c + r < C) {
        const float squares = shared_squares + v[r] * v[r];
        to[r * P] = v[r + 2] / powf(2.0f + 0.0001f / 5.0f * squares, 0.75f);
      }
      if (c + r + 1 < C) {
        const float squares = shared_squares + v[r + 5] * v[r + 5];
        to[(r + 1) * P] = v[r + 3] / powf(2.0f + 0.0001f / 5.0f * squares, 0.75f);
      }
    }
  }
}
