// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. A block takes 15 rows of 8 pixels, a thread one row of them and one vertical displacement.

//@ launch correlation_volume<<<132, 256, 168096>>>(f, g, out, H, W, C, R)
__device__ __forceinline__ void correlation_copy(unsigned to, const float* from, bool valid) {
  int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Brings 16 channels of 31 x 24 pixels of g (rows of 97 vectors) and of 15 x 8 pixels of f (rows of 33 vectors).
__device__ __forceinline__ void correlation_load(const float* __restrict__ f, const float* __restrict__ g, unsigned to,
                                                 int tile, int tiles_x, int chunk, int H, int W, int C) {
  const int t = threadIdx.x;
  const int y0 = (tile / tiles_x) * 15;
  const int x0 = (tile % tiles_x) * 8;
  const long long step = 2LL * W * C;
  if (t < 192) {
    const int rem = t % 96;
    const int sub = t / 96;
    const int x = x0 - 8 + (rem >> 2);
    const bool column = x >= 0 && x < W;
    int y = y0 - 8 + sub;
    long long at = ((long long)y * W + x) * C + chunk * 16 + (rem & 3) * 4;
    to += (sub * 97 + rem) * 16;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      if (sub + 2 * k < 31) {
        bool valid = column && y >= 0 && y < H;
        correlation_copy(to, valid ? g + at : g, valid);
      }
      y += 2;
      at += step;
      to += 2 * 97 * 16;
    }
  } else {
    const int rem = t & 31;
    const int sub = (t - 192) >> 5;
    const int x = x0 + (rem >> 2);
    const bool column = x < W;
    int y = y0 + sub;
    long long at = ((long long)y * W + x) * C + chunk * 16 + (rem & 3) * 4;
    to += (3007 + sub * 33 + rem) * 16;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (sub + 2 * k < 15) {
        bool valid = column && y < H;
        correlation_copy(to, valid ? f + at : f, valid);
      }
      y += 2;
      at += step;
      to += 2 * 33 * 16;
    }
  }
}

__global__ void __launch_bounds__(256, 1) correlation_volume(const float* __restrict__ f, const float* __restrict__ g, float* __restrict__ out, int H, int W, int C, int R) {
  extern __shared__ float4 correlation_shared[];

  if (R != 8 || C % 16 != 0 || C <= 0) {
    // Any radius, any number of channels.
    const int side = 2 * R + 1;
    const long long total = (long long)side * side * H * W;
    for (long long e = (long long)blockIdx.x * 256 + threadIdx.x; e < total; e += (long long)gridDim.x * 256) {
      int x = (int)(e % W);
      int y = (int)(e / W % H);
      int z = (int)(e / W / H);
      int there_x = x + z % side - R;
      int there_y = y + z / side - R;
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

  const int STAGE = 31 * 97 + 15 * 33;    // vectors of 16 bytes
  const int tiles_x = (W + 7) / 8;
  const int tiles = tiles_x * ((H + 14) / 15);
  const int chunks = C / 16;
  const unsigned base = (unsigned)__cvta_generic_to_shared(correlation_shared);

  const int dy = threadIdx.x % 17;
  const int row = min((int)threadIdx.x / 17, 14);    // the last thread only repeats another
  const bool active = threadIdx.x < 255;

  int load_tile = blockIdx.x;
  int load_chunk = 0;
#pragma unroll 1
  for (int s = 0; s < 2; ++s) {
    if (load_tile < tiles) {
      correlation_load(f, g, base + s * (STAGE * 16), load_tile, tiles_x, load_chunk, H, W, C);
      if (++load_chunk == chunks) {
        load_chunk = 0;
        load_tile += gridDim.x;
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  }

  int stage = 0;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float acc[8][17];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int d = 0; d < 17; ++d) acc[i][d] = 0.0f;
    }

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      asm volatile("cp.async.wait_group 1;\n" ::: "memory");
      __syncthreads();
      if (load_tile < tiles) {
        const int into = stage == 0 ? 2 : stage - 1;
        correlation_load(f, g, base + into * (STAGE * 16), load_tile, tiles_x, load_chunk, H, W, C);
        if (++load_chunk == chunks) {
          load_chunk = 0;
          load_tile += gridDim.x;
        }
      }
      asm volatile("cp.async.commit_group;\n" ::: "memory");

      const float4* pg = correlation_shared + stage * STAGE + (row + dy) * 97;
      const float4* pf = correlation_shared + stage * STAGE + 3007 + row * 33;
#pragma unroll 1
      for (int c = 0; c < 4; ++c) {
        float4 a[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) a[i] = pf[i * 4 + c];
#pragma unroll
        for (int j = 0; j < 24; ++j) {
          const float4 b = pg[j * 4 + c];
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            if (j - i >= 0 && j - i < 17) acc[i][j - i] = fmaf(a[i].x, b.x, acc[i][j - i]);
          }
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            if (j - i >= 0 && j - i < 17) acc[i][j - i] = fmaf(a[i].y, b.y, acc[i][j - i]);
          }
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            if (j - i >= 0 && j - i < 17) acc[i][j - i] = fmaf(a[i].z, b.z, acc[i][j - i]);
          }
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            if (j - i >= 0 && j - i < 17) acc[i][j - i] = fmaf(a[i].w, b.w, acc[i][j - i]);
          }
        }
      }
      stage = stage == 2 ? 0 : stage + 1;
    }

    const int x0 = (tile % tiles_x) * 8;
    const int y = (tile / tiles_x) * 15 + row;
    const int there_y = y + dy - 8;
    const bool row_inside = there_y >= 0 && there_y < H;
    if (!row_inside || x0 < 8 || x0 + 15 >= W) {
      // What lies outside is zero, whatever the features are.
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int d = 0; d < 17; ++d) {
          const int there_x = x0 + i + d - 8;
          if (!row_inside || there_x < 0 || there_x >= W) acc[i][d] = 0.0f;
        }
      }
    }
    if (active && y < H) {
      const size_t plane = (size_t)H * W;
      float* to = out + (size_t)dy * 17 * plane + (size_t)y * W + x0;
      if (W % 4 == 0) {
        const bool second = x0 + 4 < W;
#pragma unroll
        for (int d = 0; d < 17; ++d) {
          *reinterpret_cast<float4*>(to) = make_float4(acc[0][d], acc[1][d], acc[2][d], acc[3][d]);
          if (second) *reinterpret_cast<float4*>(to + 4) = make_float4(acc[4][d], acc[5][d], acc[6][d], acc[7][d]);
          to += plane;
        }
      } else {
#pragma unroll
        for (int d = 0; d < 17; ++d) {
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            if (x0 + i < W) to[i] = acc[i][d];
          }
          to += plane;
        }
      }
    }
  }
}
