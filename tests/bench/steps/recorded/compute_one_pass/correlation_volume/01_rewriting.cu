// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. One thread for 8 pixels of a row and all horizontal displacements to one row of the other image.

//@ launch correlation_volume<<<132, 256, 180192>>>(f, g, out, H, W, C, R)
__device__ __forceinline__ void copy16(unsigned to, const float* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__global__ void __launch_bounds__(256, 1) correlation_volume(const float* __restrict__ f, const float* __restrict__ g, float* __restrict__ out, int H, int W, int C, int R) {
  constexpr int RR = 8;                       // the radius of the fast path
  constexpr int SIDE = 2 * RR + 1;
  constexpr int X = 8;                        // pixels of a thread
  constexpr int TX = 32;                      // pixels of a tile along x
  constexpr int PAIRS = 64;                   // pairs of rows of a tile
  constexpr int CK = 16;                      // channels of a stage
  constexpr int GROWS = 5;
  constexpr int FROWS = GROWS + 2 * RR;       // 21
  constexpr int GGROUP = 8 * CK + 8;          // 8 pixels of g, padded
  constexpr int GROW = 6 * GGROUP + 20;       // 836, 4 more than a multiple of 32
  constexpr int FROW = TX * CK + 4;           // 516, 4 more than a multiple of 32
  constexpr int STAGE = GROWS * GROW + FROWS * FROW;   // 15016 floats
  constexpr int STAGES = 3;

  const int t = threadIdx.x;

  if (R != RR || C % CK != 0) {
    const int side = 2 * R + 1;
    const long long total = (long long)side * side * H * W;
    for (long long o = (long long)blockIdx.x * 256 + t; o < total; o += (long long)gridDim.x * 256) {
      const int x = (int)(o % W);
      const long long rest = o / W;
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
      out[o] = sum;
    }
    return;
  }

  extern __shared__ __align__(16) float memory[];
  const unsigned memory_at = (unsigned)__cvta_generic_to_shared(memory);

  // A pair of rows q: row q / SIDE - RR of g with the row of f that is q % SIDE - RR below it.
  const int x_tiles = (W + TX - 1) / TX;
  const int pair_tiles = ((H + 2 * RR) * SIDE + PAIRS - 1) / PAIRS;
  const int tiles = x_tiles * pair_tiles;
  const long long row_c = (long long)W * C;

  // What the thread copies: 16 bytes of a pixel of g (threads below 192) and of f.
  const int part = (t & 3) * 4;
  const int g_col = t >> 2;                   // 0..63, below 48 used
  const int f_col = (t >> 2) & 31;
  const int f_first = t >> 7;                 // 0 or 1
  const unsigned g_to = memory_at + 4u * ((g_col >> 3) * GGROUP + (g_col & 7) * CK + part);
  const unsigned f_to = memory_at + 4u * (GROWS * GROW + f_first * FROW + f_col * CK + part);

  int l_tile = blockIdx.x, l_c = 0, l_gy = 0;
  bool l_gx = false, l_fx = false;
  const float* l_g = g;
  const float* l_f = f;

  auto open_tile = [&]() {
    const int pt = l_tile / x_tiles;
    const int x0 = (l_tile - pt * x_tiles) * TX;
    l_gy = (pt * PAIRS) / SIDE - RR;
    const int gx = x0 - RR + g_col;
    const int fx = x0 + f_col;
    l_gx = gx >= 0 && gx < W;
    l_fx = fx < W;
    l_g = g + (long long)l_gy * row_c + (long long)gx * C + part;
    l_f = f + (long long)(l_gy - RR + f_first) * row_c + (long long)fx * C + part;
  };

  auto load = [&](int stage) {
    if (l_tile < tiles) {
      const unsigned shift = (unsigned)(stage * STAGE * 4);
      if (t < 192) {
        const float* from = l_g;
#pragma unroll
        for (int i = 0; i < GROWS; ++i) {
          const int y = l_gy + i;
          const bool ok = l_gx && y >= 0 && y < H;
          copy16(g_to + shift + 4u * (i * GROW), ok ? from : g, ok ? 16 : 0);
          from += row_c;
        }
      }
      {
        const float* from = l_f;
#pragma unroll
        for (int i = 0; i < (FROWS + 1) / 2; ++i) {
          const int r = f_first + 2 * i;
          if (r < FROWS) {
            const int y = l_gy - RR + r;
            const bool ok = l_fx && y >= 0 && y < H;
            copy16(f_to + shift + 4u * (2 * i * FROW), ok ? from : f, ok ? 16 : 0);
          }
          from += 2 * row_c;
        }
      }
      l_g += CK;
      l_f += CK;
      l_c += CK;
      if (l_c >= C) {
        l_c = 0;
        l_tile += gridDim.x;
        if (l_tile < tiles) open_tile();
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };

  if (l_tile < tiles) open_tile();
  load(0);
  load(1);

  const int lane = t & 31;
  const int xt = lane >> 3;
  const int local_pair = (t >> 5) * 8 + (lane & 7);
  int stage = 0;

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int pt = tile / x_tiles;
    const int x0 = (tile - pt * x_tiles) * TX;
    const int q = pt * PAIRS + local_pair;
    const int g_index = q / SIDE;
    const int k = q - g_index * SIDE;
    const int g_row = g_index - (pt * PAIRS) / SIDE;
    const int g_off = g_row * GROW + xt * GGROUP;
    const int f_off = GROWS * GROW + (g_row + k) * FROW + xt * (X * CK);

    float acc[X][SIDE];
#pragma unroll
    for (int p = 0; p < X; ++p) {
#pragma unroll
      for (int d = 0; d < SIDE; ++d) acc[p][d] = 0.0f;
    }

    for (int c = 0; c < C; c += CK) {
      asm volatile("cp.async.wait_group 1;\n" ::: "memory");
      __syncthreads();
      load(stage == 0 ? 2 : stage - 1);

      const float* gs = memory + stage * STAGE + g_off;
      const float* fs = memory + stage * STAGE + f_off;
#pragma unroll 1
      for (int cc = 0; cc < CK; cc += 4) {
        float4 fv[X];
#pragma unroll
        for (int p = 0; p < X; ++p) fv[p] = *reinterpret_cast<const float4*>(fs + p * CK + cc);
#pragma unroll
        for (int j = 0; j < X + 2 * RR; ++j) {
          const float4 gv = *reinterpret_cast<const float4*>(gs + (j >> 3) * GGROUP + (j & 7) * CK + cc);
#pragma unroll
          for (int p = 0; p < X; ++p) {
            if (j - p >= 0 && j - p < SIDE) acc[p][j - p] = fmaf(fv[p].x, gv.x, acc[p][j - p]);
          }
#pragma unroll
          for (int p = 0; p < X; ++p) {
            if (j - p >= 0 && j - p < SIDE) acc[p][j - p] = fmaf(fv[p].y, gv.y, acc[p][j - p]);
          }
#pragma unroll
          for (int p = 0; p < X; ++p) {
            if (j - p >= 0 && j - p < SIDE) acc[p][j - p] = fmaf(fv[p].z, gv.z, acc[p][j - p]);
          }
#pragma unroll
          for (int p = 0; p < X; ++p) {
            if (j - p >= 0 && j - p < SIDE) acc[p][j - p] = fmaf(fv[p].w, gv.w, acc[p][j - p]);
          }
        }
      }
      stage = stage == 2 ? 0 : stage + 1;
    }

    const int there_y = g_index - RR;
    const int y = there_y - RR + k;
    const int x = x0 + xt * X;

    // What lies outside is zero, whatever f holds.
    if (x0 < RR || x0 + TX + RR > W || there_y < 0 || there_y >= H) {
      const bool row_ok = there_y >= 0 && there_y < H;
#pragma unroll
      for (int p = 0; p < X; ++p) {
#pragma unroll
        for (int d = 0; d < SIDE; ++d) {
          const int there_x = x + p + d - RR;
          if (!(row_ok && there_x >= 0 && there_x < W)) acc[p][d] = 0.0f;
        }
      }
    }

    if (y >= 0 && y < H && x < W) {
      const long long plane = (long long)H * W;
      float* to = out + (long long)((2 * RR - k) * SIDE) * plane + (long long)y * W + x;
      if ((W & 3) == 0) {
        const bool second = x + 4 < W;
#pragma unroll
        for (int d = 0; d < SIDE; ++d) {
          __stcs(reinterpret_cast<float4*>(to), make_float4(acc[0][d], acc[1][d], acc[2][d], acc[3][d]));
          if (second) __stcs(reinterpret_cast<float4*>(to + 4), make_float4(acc[4][d], acc[5][d], acc[6][d], acc[7][d]));
          to += plane;
        }
      } else {
#pragma unroll
        for (int d = 0; d < SIDE; ++d) {
#pragma unroll
          for (int p = 0; p < X; ++p) {
            if (x + p < W) to[p] = acc[p][d];
          }
          to += plane;
        }
      }
    }
  }
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}
