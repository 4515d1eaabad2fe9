// Pooling by effective value, a tile of 8 x 128 windows for each block.

//@ launch power_pooling<<<P * ceil_div(H, 8) * ceil_div(W, 128), 256>>>(x, out, P, H, W)
#include <cuda_pipeline.h>

__global__ void __launch_bounds__(256, 8) power_pooling(const float* __restrict__ x, float* __restrict__ out, int P, int H, int W) {
  // 17 rows of at most 257 elements, and up to 3 more before and behind them
  __shared__ __align__(16) float tile[17 * 257 + 7];
  int t = threadIdx.x;
  int tiles_w = (W + 127) / 128;
  int tiles_h = (H + 7) / 8;
  int block = blockIdx.x;
  int j0 = 0;
  if (tiles_w > 1) {
    j0 = block % tiles_w * 128;
    block /= tiles_w;
  }
  int plane = block / tiles_h;
  int i0 = (block - plane * tiles_h) * 8;
  int rows = min(8, H - i0);
  int in_rows = 2 * rows + 1;
  int width = 2 * W + 1;
  int start = (plane * (2 * H + 1) + 2 * i0) * width + 2 * j0;
  int pitch;
  int offset;

  if (tiles_w == 1) {
    // the rows of the tile are one piece of memory
    pitch = width;
    offset = start & 3;
    int base = start - offset;
    int pieces = (offset + in_rows * width + 3) / 4;
    int all = P * (2 * H + 1) * width;
    for (int c = t; c < pieces; c += 256) {
      int from = base + 4 * c;
      if (from + 3 < all) {
        __pipeline_memcpy_async(tile + 4 * c, x + from, 16);
      } else {
        for (int e = 0; from + e < all; ++e) {
          tile[4 * c + e] = x[from + e];
        }
      }
    }
  } else {
    pitch = 257;
    offset = 0;
    int columns = 2 * min(128, W - j0) + 1;
    for (int r = t >> 5; r < in_rows; r += 8) {
      for (int c = t & 31; c < columns; c += 32) {
        __pipeline_memcpy_async(tile + r * pitch + c, x + start + r * width + c, 4);
      }
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  int tj = t & 127;
  int first = (t >> 7) * 4;
  if (j0 + tj < W && first < rows) {
    const float* row = tile + offset + 2 * first * pitch + 2 * tj;
    float* to = out + (plane * H + i0 + first) * W + j0 + tj;
    float v0 = row[0];
    float v1 = row[1];
    float v2 = row[2];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (first + k < rows) {
        float squares = 0.0f;
        squares += v0 * v0;
        squares += v1 * v1;
        squares += v2 * v2;
        row += pitch;
        v0 = row[0];
        v1 = row[1];
        v2 = row[2];
        squares += v0 * v0;
        squares += v1 * v1;
        squares += v2 * v2;
        row += pitch;
        v0 = row[0];
        v1 = row[1];
        v2 = row[2];
        squares += v0 * v0;
        squares += v1 * v1;
        squares += v2 * v2;
        *to = sqrtf(squares);
        to += W;
      }
    }
  }
}
