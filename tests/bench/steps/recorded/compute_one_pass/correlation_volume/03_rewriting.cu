// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. A tile is 7 groups of 4 columns (counted through the strips of 4 rows), with all its displacements.

//@ launch correlation_volume<<<132, 256, 178432>>>(f, g, out, H, W, C, R)

#define GROUPS 7
#define G_PITCH 255
#define F_PITCH 119
#define F_AT 5100
#define STAGE 5576

__device__ __forceinline__ void copy16(unsigned to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void copy16_or_zero(unsigned to, const float* from, bool valid) {
  int size = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
}

__global__ void __launch_bounds__(256, 1)
correlation_volume(const float* __restrict__ f, const float* __restrict__ g, float* __restrict__ out,
                   int H, int W, int C, int R) {
  extern __shared__ float4 shared4[];
  const int t = threadIdx.x;

  if (R != 8 || (C & 3) != 0 || W < 25) {
    const int side = 2 * R + 1;
    const long long count = (long long)side * side * H * W;
    for (long long p = (long long)blockIdx.x * blockDim.x + t; p < count; p += (long long)gridDim.x * blockDim.x) {
      int x = (int)(p % W);
      long long rest = p / W;
      int y = (int)(rest % H);
      int z = (int)(rest / H);
      int there_x = x + z % side - R;
      int there_y = y + z / side - R;
      float sum = 0.0f;
      if (there_x >= 0 && there_x < W && there_y >= 0 && there_y < H) {
        const float* a = f + ((long long)y * W + x) * C;
        const float* b = g + ((long long)there_y * W + there_x) * C;
        for (int c = 0; c < C; ++c) sum += a[c] * b[c];
      }
      out[p] = sum;
    }
    return;
  }

  const int G = (W + 3) / 4;
  const int strips = (H + 3) / 4;
  const int tiles = (strips * G + GROUPS - 1) / GROUPS;
  const int chunks = (C + 15) / 16;
  if ((int)blockIdx.x >= tiles) return;

  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared4);
  const long long row_step = (long long)W * C;

  // What this thread copies: 16 bytes of one pixel of a group, in all rows.
  const int unit = t & 15;
  const int slot = t >> 4;
  const int pixel = unit >> 2;
  const int part = unit & 3;
  const unsigned g_to = shared_at + (unsigned)(slot * 17 + unit) * 16u;
  const unsigned f_to = shared_at + (unsigned)(F_AT + (slot - 9) * 17 + unit) * 16u;
  const float* g_from = g;
  const float* f_from = f;
  int g_y = 0, f_y = 0;
  bool g_active = false, g_column = false, f_column = false;

  auto aim = [&](int tile) {
    const int first = tile * GROUPS;
    const int strip = first / G;
    const int gx0 = first - strip * G;
    const int n1 = min(GROUPS, G - gx0);
    {
      int s, gx;
      if (slot < n1 + 4) {
        s = strip;
        gx = gx0 - 2 + slot;
        g_active = true;
      } else {
        s = strip + 1;
        gx = slot - n1 - 6;
        g_active = n1 < GROUPS && slot < 15;
      }
      const int x = 4 * gx + pixel;
      g_y = 4 * s - 8;
      g_column = x >= 0 && x < W;
      g_from = g + ((long long)g_y * W + x) * C + 4 * part;
    }
    {
      const int k = slot - 9;
      int s, gx;
      if (k < n1) {
        s = strip;
        gx = gx0 + k;
      } else {
        s = strip + 1;
        gx = k - n1;
      }
      const int x = 4 * gx + pixel;
      f_y = 4 * s;
      f_column = x >= 0 && x < W;
      f_from = f + ((long long)f_y * W + x) * C + 4 * part;
    }
  };

  auto bring = [&](int buffer, int chunk) {
    const int c0 = chunk * 16;
    const bool channel = c0 + 4 * part < C;
    const unsigned shift = (unsigned)buffer * (STAGE * 16u);
    if (g_active) {
      const float* from = g_from + c0;
      const unsigned to = g_to + shift;
      if (channel && g_column && g_y >= 0 && g_y + 20 <= H) {
#pragma unroll
        for (int row = 0; row < 20; ++row) {
          copy16(to + row * (G_PITCH * 16), from);
          from += row_step;
        }
      } else {
#pragma unroll 4
        for (int row = 0; row < 20; ++row) {
          const int y = g_y + row;
          const bool valid = channel && g_column && y >= 0 && y < H;
          copy16_or_zero(to + row * (G_PITCH * 16), valid ? from : g, valid);
          from += row_step;
        }
      }
    }
    if (slot >= 9) {
      const float* from = f_from + c0;
      const unsigned to = f_to + shift;
#pragma unroll
      for (int row = 0; row < 4; ++row) {
        const bool valid = channel && f_column && f_y + row < H;
        copy16_or_zero(to + row * (F_PITCH * 16), valid ? from : f, valid);
        from += row_step;
      }
    }
  };

  // What this thread computes: rows 2 * pair and 2 * pair + 1 of the strip against row 2 * pair + j of g's 20 rows.
  const int worker = min(t, 251);
  const int pair = worker / 126;
  const int j = (worker - pair * 126) / 7;
  const int group = worker - pair * 126 - j * 7;
  const int f_read = F_AT + 2 * pair * F_PITCH + group * 17;
  const int g_read_row = (2 * pair + j) * G_PITCH;

  int next_tile = blockIdx.x;
  int next_chunk = 0;
  int buffer = 0;
  aim(next_tile);
  bring(0, 0);

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int first = tile * GROUPS;
    int strip = first / G;
    int gx = first - strip * G + group;
    int g_read = g_read_row + group * 17;
    if (gx >= G) {
      gx -= G;
      ++strip;
      g_read += 4 * 17;
    }

    float acc[2][4][17];
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int q = 0; q < 4; ++q)
#pragma unroll
        for (int d = 0; d < 17; ++d) acc[r][q][d] = 0.0f;

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncthreads();
      if (++next_chunk == chunks) {
        next_chunk = 0;
        next_tile += gridDim.x;
        if (next_tile < tiles) aim(next_tile);
      }
      if (next_tile < tiles) bring(buffer ^ 1, next_chunk);

      const float4* gp = shared4 + buffer * STAGE + g_read;
      const float4* fp = shared4 + buffer * STAGE + f_read;
#pragma unroll 1
      for (int c4 = 0; c4 < 4; ++c4) {
        float4 a[2][4];
#pragma unroll
        for (int r = 0; r < 2; ++r)
#pragma unroll
          for (int q = 0; q < 4; ++q) a[r][q] = fp[r * F_PITCH + q * 4];
#pragma unroll
        for (int i = 0; i < 20; ++i) {
          const float4 b = gp[(i >> 2) * 17 + (i & 3) * 4];
#pragma unroll
          for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int q = 0; q < 4; ++q) {
              const int d = i - q;
              if (d >= 0 && d < 17) acc[r][q][d] = fmaf(a[r][q].x, b.x, acc[r][q][d]);
            }
#pragma unroll
          for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int q = 0; q < 4; ++q) {
              const int d = i - q;
              if (d >= 0 && d < 17) acc[r][q][d] = fmaf(a[r][q].y, b.y, acc[r][q][d]);
            }
#pragma unroll
          for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int q = 0; q < 4; ++q) {
              const int d = i - q;
              if (d >= 0 && d < 17) acc[r][q][d] = fmaf(a[r][q].z, b.z, acc[r][q][d]);
            }
#pragma unroll
          for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int q = 0; q < 4; ++q) {
              const int d = i - q;
              if (d >= 0 && d < 17) acc[r][q][d] = fmaf(a[r][q].w, b.w, acc[r][q][d]);
            }
        }
        ++gp;
        ++fp;
      }
      buffer ^= 1;
    }

    // Results: what lies outside of the other image is zero whatever f holds.
    const int x = 4 * gx;
    const int there_y = 4 * strip - 8 + 2 * pair + j;
    const bool row_inside = there_y >= 0 && there_y < H;
    if (!row_inside || x < 8 || x + 11 >= W) {
#pragma unroll
      for (int q = 0; q < 4; ++q)
#pragma unroll
        for (int d = 0; d < 17; ++d) {
          const int there_x = x + q + d - 8;
          if (!row_inside || there_x < 0 || there_x >= W) {
            acc[0][q][d] = 0.0f;
            acc[1][q][d] = 0.0f;
          }
        }
    }
    if (t < 252) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int y = 4 * strip + 2 * pair + r;
        const int dy = j - r;
        if (y < H && dy >= 0 && dy < 17) {
          float* to = out + ((long long)(dy * 17) * H + y) * W + x;
          const long long plane = (long long)H * W;
          if ((W & 3) == 0) {
#pragma unroll
            for (int d = 0; d < 17; ++d) {
              *reinterpret_cast<float4*>(to) =
                  make_float4(acc[r][0][d], acc[r][1][d], acc[r][2][d], acc[r][3][d]);
              to += plane;
            }
          } else {
#pragma unroll
            for (int d = 0; d < 17; ++d) {
#pragma unroll
              for (int q = 0; q < 4; ++q)
                if (x + q < W) to[q] = acc[r][q][d];
              to += plane;
            }
          }
        }
      }
    }
  }
}
