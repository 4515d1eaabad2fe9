// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. Fast path (R = 8): a tile is 15 rows x 8 columns of f; a thread has one row of f and one row of g of the tile,
// and computes 8 pixels x 17 horizontal displacements.

#include <cstdint>

constexpr int CV_ROWS = 15;                  // rows of f of a tile
constexpr int CV_GROWS = CV_ROWS + 16;       // rows of g of a tile
constexpr int CV_FPITCH = 8 * 8 + 1;         // float4 of a row of f (8 pixels, 32 channels), padded
constexpr int CV_GPITCH = 24 * 8 + 1;        // float4 of a row of g (24 pixels, 32 channels), padded
constexpr int CV_FSIZE = CV_ROWS * CV_FPITCH;
constexpr int CV_STAGE = CV_FSIZE + CV_GROWS * CV_GPITCH;  // 6958 float4, 111328 bytes

__device__ __forceinline__ void cv_copy(uint32_t dst, const float* src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

//@ launch correlation_volume<<<132, 256, 222656>>>(f, g, out, H, W, C, R)
__global__ void __launch_bounds__(256, 1)
correlation_volume(const float* __restrict__ f, const float* __restrict__ g, float* __restrict__ out, int H, int W, int C, int R) {
  extern __shared__ float4 cv_shared[];
  const int tid = threadIdx.x;

  if (R != 8 || (C & 3) != 0 || (W & 3) != 0) {
    // any radius and shape
    const int side = 2 * R + 1;
    const long long total = (long long)side * side * H * W;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long e = (long long)blockIdx.x * blockDim.x + tid; e < total; e += step) {
      const int x = (int)(e % W);
      const long long rest = e / W;
      const int y = (int)(rest % H);
      const int z = (int)(rest / H);
      const int there_x = x + z % side - R;
      const int there_y = y + z / side - R;
      float sum = 0.0f;
      if (there_x >= 0 && there_x < W && there_y >= 0 && there_y < H) {
        const float* a = f + ((long long)y * W + x) * C;
        const float* b = g + ((long long)there_y * W + there_x) * C;
        for (int c = 0; c < C; ++c) sum += a[c] * b[c];
      }
      out[e] = sum;
    }
    return;
  }

  const int chunks = (C + 31) / 32;
  const int tiles_x = (W + 7) / 8;
  const int tiles = tiles_x * ((H + CV_ROWS - 1) / CV_ROWS);

  // What this thread computes: row i of f with row rho of g. Neighbouring threads share a row of g where they can.
  int i, kappa;
  if (tid < 238) {
    const int p = tid >> 1;
    kappa = p / 7;
    i = 2 * (p - kappa * 7) + (tid & 1);
  } else {
    i = 14;
    kappa = min(tid - 238, 16);
  }
  const int rho = kappa >= i ? kappa : kappa + 17;
  const int dyi = rho - i;  // 0 .. 16
  const bool odd = (tid & 1) != 0;

  // What this thread copies: warps 0 to 5 bring g, warps 6 and 7 bring f, a row at a time.
  const bool for_g = tid < 192;
  const int copy_px = for_g ? (tid >> 3) : ((tid - 192) >> 3);
  const int copy_slot = tid & 7;
  const int copy_shift = for_g ? 8 : 0;
  const int copy_rows = for_g ? CV_GROWS : CV_ROWS;
  const uint32_t copy_pitch = (for_g ? CV_GPITCH : CV_FPITCH) * 16;
  const float* copy_base = for_g ? g : f;
  const uint32_t copy_to = (uint32_t)__cvta_generic_to_shared(cv_shared) +
                           ((for_g ? CV_FSIZE : 0) + copy_px * 8 + copy_slot) * 16;
  const long long row_step = (long long)W * C;

  int tile = blockIdx.x;
  if (tile >= tiles) return;

  // the first chunk of the first tile
  {
    const int ty = tile / tiles_x;
    const int x = (tile - ty * tiles_x) * 8 + copy_px - copy_shift;
    const int y = ty * CV_ROWS - copy_shift;
    const int c = copy_slot * 4;
    const bool ok = x >= 0 && x < W && c < C;
    const float* src = copy_base + (((long long)y * W + x) * C + c);
    uint32_t dst = copy_to;
    for (int n = 0; n < copy_rows; ++n) {
      cv_copy(dst, src, (ok && (unsigned)(y + n) < (unsigned)H) ? 16 : 0);
      src += row_step;
      dst += copy_pitch;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  int stage = 0;
  for (; tile < tiles; tile += gridDim.x) {
    const int tile_y = tile / tiles_x;
    const int y0 = tile_y * CV_ROWS;
    const int x0 = (tile - tile_y * tiles_x) * 8;

    float acc[8][17];
#pragma unroll
    for (int t = 0; t < 8; ++t)
#pragma unroll
      for (int d = 0; d < 17; ++d) acc[t][d] = 0.0f;

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncthreads();

      // where the next chunk comes from
      int next_tile = tile, next_chunk = chunk + 1;
      if (next_chunk == chunks) {
        next_chunk = 0;
        next_tile = tile + gridDim.x;
      }
      int copies = next_tile < tiles ? copy_rows : 0;
      const int next_ty = next_tile / tiles_x;
      const int next_x = (next_tile - next_ty * tiles_x) * 8 + copy_px - copy_shift;
      int next_y = next_ty * CV_ROWS - copy_shift;
      const int next_c = next_chunk * 32 + copy_slot * 4;
      const bool ok = next_x >= 0 && next_x < W && next_c < C;
      const float* src = copy_base + (((long long)next_y * W + next_x) * C + next_c);
      uint32_t dst = copy_to + (uint32_t)((stage ^ 1) * (CV_STAGE * 16));

      const float4* fs = cv_shared + stage * CV_STAGE + i * CV_FPITCH;
      const float4* gs = cv_shared + stage * CV_STAGE + CV_FSIZE + rho * CV_GPITCH;

#pragma unroll 1
      for (int c4 = 0; c4 < 8; ++c4) {
        // some rows of the next chunk
#pragma unroll
        for (int n = 0; n < 6; ++n) {
          if (n < copies) {
            cv_copy(dst, src, (ok && (unsigned)next_y < (unsigned)H) ? 16 : 0);
            src += row_step;
            dst += copy_pitch;
            ++next_y;
          }
        }
        copies -= 6;

        float4 fv[8];
#pragma unroll
        for (int t = 0; t < 8; ++t) fv[t] = fs[t * 8 + c4];
#pragma unroll
        for (int p = 0; p < 24; ++p) {
          const float4 gv = gs[p * 8 + c4];
#pragma unroll
          for (int t = 0; t < 8; ++t)
            if (p - t >= 0 && p - t < 17) acc[t][p - t] = fmaf(fv[t].x, gv.x, acc[t][p - t]);
#pragma unroll
          for (int t = 0; t < 8; ++t)
            if (p - t >= 0 && p - t < 17) acc[t][p - t] = fmaf(fv[t].y, gv.y, acc[t][p - t]);
#pragma unroll
          for (int t = 0; t < 8; ++t)
            if (p - t >= 0 && p - t < 17) acc[t][p - t] = fmaf(fv[t].z, gv.z, acc[t][p - t]);
#pragma unroll
          for (int t = 0; t < 8; ++t)
            if (p - t >= 0 && p - t < 17) acc[t][p - t] = fmaf(fv[t].w, gv.w, acc[t][p - t]);
        }
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
      stage ^= 1;
    }

    // what lies outside of g is zero, whatever f holds
    if (x0 < 8 || x0 + 15 >= W || y0 < 8 || y0 + CV_ROWS - 1 + 8 >= H) {
      const int there_y = y0 + rho - 8;
      const bool row_in = there_y >= 0 && there_y < H;
#pragma unroll
      for (int p = 0; p < 24; ++p) {
        const int there_x = x0 - 8 + p;
        const bool in = row_in && there_x >= 0 && there_x < W;
#pragma unroll
        for (int t = 0; t < 8; ++t)
          if (p - t >= 0 && p - t < 17) acc[t][p - t] = in ? acc[t][p - t] : 0.0f;
      }
    }

    // Two neighbouring threads write the 8 pixels of one of them together, then those of the other.
    const long long mine = (tid < 255 && y0 + i < H)
                               ? ((long long)(dyi * 17) * H + (y0 + i)) * W + x0
                               : -1ll;
    const long long theirs = __shfl_xor_sync(0xffffffffu, mine, 1);
    const long long first = odd ? theirs : mine;
    const long long second = odd ? mine : theirs;
    const int column = odd ? 4 : 0;
    const bool column_in = x0 + column < W;
    const bool write_first = column_in && first >= 0;
    const bool write_second = column_in && second >= 0;
    float* to_first = out + (write_first ? first + column : 0);
    float* to_second = out + (write_second ? second + column : 0);
    const long long plane = (long long)H * W;
#pragma unroll
    for (int d = 0; d < 17; ++d) {
      float4 got;
      got.x = __shfl_xor_sync(0xffffffffu, odd ? acc[0][d] : acc[4][d], 1);
      got.y = __shfl_xor_sync(0xffffffffu, odd ? acc[1][d] : acc[5][d], 1);
      got.z = __shfl_xor_sync(0xffffffffu, odd ? acc[2][d] : acc[6][d], 1);
      got.w = __shfl_xor_sync(0xffffffffu, odd ? acc[3][d] : acc[7][d], 1);
      if (write_first) {
        *reinterpret_cast<float4*>(to_first) =
            make_float4(odd ? got.x : acc[0][d], odd ? got.y : acc[1][d],
                        odd ? got.z : acc[2][d], odd ? got.w : acc[3][d]);
      }
      if (write_second) {
        *reinterpret_cast<float4*>(to_second) =
            make_float4(odd ? acc[4][d] : got.x, odd ? acc[5][d] : got.y,
                        odd ? acc[6][d] : got.z, odd ? acc[7][d] : got.w);
      }
      to_first += plane;
      to_second += plane;
    }
  }
}
