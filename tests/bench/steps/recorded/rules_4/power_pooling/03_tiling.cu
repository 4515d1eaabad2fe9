// Pooling by effective value, one block for each tile of 8 x 127 windows.

#include <cuda_pipeline.h>

//@ launch power_pooling<<<P * ceil_div(H, 8) * ceil_div(W, 127), 256>>>(x, out, P, H, W)
__global__ void __launch_bounds__(256, 8) power_pooling(const float* x, float* out, int P, int H, int W) {
  // A row of the tile: its even columns from 0, its odd columns from 144.
  __shared__ float tile[17][272];
  int t = threadIdx.x;
  int across = (W + 126) / 127;
  int down = (H + 7) / 8;
  int block = blockIdx.x;
  int j0 = block % across * 127;
  block /= across;
  int i0 = block % down * 8;
  int plane = block / down;
  int rows = min(8, H - i0);
  int columns = min(127, W - j0);
  int pitch = 2 * W + 1;

  if (t < 2 * columns + 1) {
    const float* from = x + (plane * (2 * H + 1) + 2 * i0) * pitch + 2 * j0 + t;
    float* to = &tile[0][(t & 1) * 144 + (t >> 1)];
    if (rows == 8) {
#pragma unroll
      for (int a = 0; a < 17; ++a) {
        __pipeline_memcpy_async(to + a * 272, from, 4);
        from += pitch;
      }
    } else {
      int count = 2 * rows + 1;
      for (int a = 0; a < count; ++a) {
        __pipeline_memcpy_async(to + a * 272, from, 4);
        from += pitch;
      }
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  int j = t & 127;
  if (j < columns) {
    float* to = out + (plane * H + i0) * W + j0 + j;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      int i = 2 * k + (t >> 7);
      if (i < rows) {
        float squares = 0.0f;
#pragma unroll
        for (int a = 0; a < 3; ++a) {
#pragma unroll
          for (int b = 0; b < 3; ++b) {
            float value = tile[2 * i + a][(b & 1) * 144 + j + (b >> 1)];
            squares += value * value;
          }
        }
        to[i * W] = sqrtf(squares);
      }
    }
  }
}
