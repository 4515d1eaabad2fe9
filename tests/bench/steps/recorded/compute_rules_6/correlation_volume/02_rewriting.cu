// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. A thread holds 6 pixels of a row and all 17 horizontal displacements for one row of the other image.

//@ launch correlation_volume<<<132, 384, 171008>>>(f, g, out, H, W, C, R)

constexpr int RAD = 8;
constexpr int SIDE = 2 * RAD + 1;
constexpr int P = 6;                       // pixels of a thread
constexpr int TX = 48;                     // pixels of a tile in x: 8 groups of 6
constexpr int TY = 8;                      // rows of a tile
constexpr int CK = 16;                     // channels of a stage
constexpr int THREADS = 384;
constexpr int F_PITCH = 49;                // in units of 16 bytes
constexpr int F_PLANE = 394;               // 8 rows, = 2 mod 8
constexpr int G_PITCH = 65;
constexpr int G_PLANE = 786;               // 12 rows, = 2 mod 8
constexpr int STAGE = 4 * (F_PLANE + G_PLANE);
constexpr int OUT_PITCH = 52;              // floats of a staged row of results
constexpr int OUT_STAGE = 4 * OUT_PITCH;

__device__ __forceinline__ void copy16(unsigned target, const float* source, bool valid) {
  const int size = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(size) : "memory");
}

__global__ void __launch_bounds__(384, 1)
correlation_volume(const float* f, const float* g, float* out, int H, int W, int C, int R) {
  extern __shared__ float4 shared_memory[];
  const int tid = threadIdx.x;

  const bool fast = R == RAD && C >= CK && C % CK == 0 &&
                    (long long)(H + 64) * (W + 64) * C < 2147483647LL;
  if (!fast) {
    const int side = 2 * R + 1;
    const long long area = (long long)H * W;
    const long long total = area * side * side;
    for (long long index = (long long)blockIdx.x * THREADS + tid; index < total;
         index += (long long)gridDim.x * THREADS) {
      const int z = (int)(index / area);
      const long long pixel = index - z * area;
      const int y = (int)(pixel / W);
      const int x = (int)(pixel - (long long)y * W);
      const int there_x = x + z % side - R;
      const int there_y = y + z / side - R;
      float sum = 0.0f;
      if (there_x >= 0 && there_x < W && there_y >= 0 && there_y < H) {
        const float* a = f + pixel * C;
        const float* b = g + ((long long)there_y * W + there_x) * C;
        for (int c = 0; c < C; ++c) sum += a[c] * b[c];
      }
      out[index] = sum;
    }
    return;
  }

  const int nx = (W + TX - 1) / TX;
  const int ny = (H + TY - 1) / TY;
  const int tiles = 3 * nx * ny;
  const int chunks = C / CK;

  // What the thread computes.
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int b0 = lane & 1;                 // row of f within the pair
  const int b1 = (lane >> 1) & 1;          // row of g within the pair
  const int group = lane >> 2;
  const int pair = warp & 3;               // pair of rows of f
  const int diagonal = warp >> 2;          // diagonal within the tile's three
  const int f_at = (2 * pair + b0) * F_PITCH + group * P;
  const int g_at = 4 * F_PLANE + (2 * (pair + diagonal) + b1) * G_PITCH + group * P;
  float* staged = reinterpret_cast<float*>(shared_memory + 2 * STAGE) + warp * (2 * OUT_STAGE);

  // What the thread copies: 4 times 16 bytes of f, 8 times of g.
  const int c4 = tid & 3;
  const int t4 = tid >> 2;
  const int f_row = t4 / TX;
  const int f_col = t4 - f_row * TX;
  const int g_row0 = t4 >> 6;
  const int g_col0 = t4 & 63;
  const int g_row1 = (t4 + 96) >> 6;
  const int g_col1 = (t4 + 96) & 63;
  const unsigned base = (unsigned)__cvta_generic_to_shared(shared_memory);
  const unsigned f_to = base + (c4 * F_PLANE + f_row * F_PITCH + f_col) * 16;
  const unsigned g_to0 = base + (4 * F_PLANE + c4 * G_PLANE + g_row0 * G_PITCH + g_col0) * 16;
  const unsigned g_to1 = base + (4 * F_PLANE + c4 * G_PLANE + g_row1 * G_PITCH + g_col1) * 16;

  int f_from = 0, g_from0 = 0, g_from1 = 0;
  unsigned mask = 0;

  auto prepare = [&](int tile) {
    const int mt = tile % 3;
    const int rest = tile / 3;
    const int xt = rest % nx;
    const int yt = rest / nx;
    const int fy = yt * TY + f_row;
    const int fx = xt * TX + f_col;
    const int gy = yt * TY - 8 + 6 * mt;
    const int gx0 = xt * TX - RAD + g_col0;
    const int gx1 = xt * TX - RAD + g_col1;
    f_from = (fy * W + fx) * C + 4 * c4;
    g_from0 = ((gy + g_row0) * W + gx0) * C + 4 * c4;
    g_from1 = ((gy + g_row1) * W + gx1) * C + 4 * c4;
    mask = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (fx < W && fy + 2 * i < H) mask |= 1u << i;
      const int y0 = gy + g_row0 + 3 * i;
      const int y1 = gy + g_row1 + 3 * i;
      if (gx0 >= 0 && gx0 < W && y0 >= 0 && y0 < H) mask |= 16u << i;
      if (gx1 >= 0 && gx1 < W && y1 >= 0 && y1 < H) mask |= 256u << i;
    }
  };

  const int line = W * C;
  auto issue = [&](int stage, int chunk) {
    const unsigned shift = stage * (STAGE * 16);
    const int channel = chunk * CK;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool valid = (mask >> i) & 1u;
      copy16(f_to + shift + i * (2 * F_PITCH * 16), valid ? f + (f_from + channel + 2 * i * line) : f, valid);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool valid = (mask >> (4 + i)) & 1u;
      copy16(g_to0 + shift + i * (3 * G_PITCH * 16), valid ? g + (g_from0 + channel + 3 * i * line) : g, valid);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool valid = (mask >> (8 + i)) & 1u;
      copy16(g_to1 + shift + i * (3 * G_PITCH * 16), valid ? g + (g_from1 + channel + 3 * i * line) : g, valid);
    }
  };

  int tile = blockIdx.x;
  if (tile >= tiles) return;
  int stage = 0;
  prepare(tile);
  issue(0, 0);
  asm volatile("cp.async.commit_group;" ::: "memory");

  const bool vector = (W & 3) == 0;
  const size_t area = (size_t)H * W;

  for (; tile < tiles; tile += gridDim.x) {
    float acc[P][SIDE];
#pragma unroll
    for (int p = 0; p < P; ++p) {
#pragma unroll
      for (int d = 0; d < SIDE; ++d) acc[p][d] = 0.0f;
    }

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      __syncthreads();
      if (chunk + 1 < chunks) {
        issue(stage ^ 1, chunk + 1);
      } else if (tile + (int)gridDim.x < tiles) {
        prepare(tile + gridDim.x);
        issue(stage ^ 1, 0);
      }
      asm volatile("cp.async.commit_group;" ::: "memory");

      const float4* fp = shared_memory + stage * STAGE + f_at;
      const float4* gp = shared_memory + stage * STAGE + g_at;
#pragma unroll 1
      for (int plane = 0; plane < CK / 4; ++plane) {
        float4 a[P];
#pragma unroll
        for (int p = 0; p < P; ++p) a[p] = fp[p];
#pragma unroll
        for (int j = 0; j < P + SIDE - 1; ++j) {
          const float4 b = gp[j];
#pragma unroll
          for (int p = 0; p < P; ++p) {
            const int d = j - p;
            if (d >= 0 && d < SIDE) acc[p][d] = fmaf(a[p].x, b.x, acc[p][d]);
          }
#pragma unroll
          for (int p = 0; p < P; ++p) {
            const int d = j - p;
            if (d >= 0 && d < SIDE) acc[p][d] = fmaf(a[p].y, b.y, acc[p][d]);
          }
#pragma unroll
          for (int p = 0; p < P; ++p) {
            const int d = j - p;
            if (d >= 0 && d < SIDE) acc[p][d] = fmaf(a[p].z, b.z, acc[p][d]);
          }
#pragma unroll
          for (int p = 0; p < P; ++p) {
            const int d = j - p;
            if (d >= 0 && d < SIDE) acc[p][d] = fmaf(a[p].w, b.w, acc[p][d]);
          }
        }
        fp += F_PLANE;
        gp += G_PLANE;
      }
      stage ^= 1;
    }

    // Results: each warp turns 4 rows of 48 pixels for one displacement into whole lines.
    const int mt = tile % 3;
    const int rest = tile / 3;
    const int x_tile = (rest % nx) * TX;
    const int y_tile = (rest / nx) * TY;
    const int m = 3 * mt + diagonal - 4;

    const int row_a = lane / 12;
    const int col_a = (lane - row_a * 12) * 4;
    const int index_b = lane + 32;
    const int row_b = index_b / 12;
    const int col_b = (index_b - row_b * 12) * 4;

    const int y_a = y_tile + 2 * pair + (row_a & 1);
    const int dy_a = 2 * m + (row_a >> 1) - (row_a & 1);
    const int x_a = x_tile + col_a;
    const bool ok_a = dy_a >= -RAD && dy_a <= RAD && y_a < H && x_a < W;
    const bool in_a = y_a + dy_a >= 0 && y_a + dy_a < H;

    const int y_b = y_tile + 2 * pair + (row_b & 1);
    const int dy_b = 2 * m + (row_b >> 1) - (row_b & 1);
    const int x_b = x_tile + col_b;
    const bool ok_b = lane < 16 && dy_b >= -RAD && dy_b <= RAD && y_b < H && x_b < W;
    const bool in_b = y_b + dy_b >= 0 && y_b + dy_b < H;

    float* out_a = out;
    float* out_b = out;
    if (ok_a) out_a = out + (size_t)((dy_a + RAD) * SIDE) * area + (size_t)y_a * W + x_a;
    if (ok_b) out_b = out + (size_t)((dy_b + RAD) * SIDE) * area + (size_t)y_b * W + x_b;

    auto put = [&](const float* from, float* to, int there, bool row_in, int x) {
      float4 v = *reinterpret_cast<const float4*>(from);
      if (!(row_in && there >= 0 && there < W)) v.x = 0.0f;
      if (!(row_in && there + 1 >= 0 && there + 1 < W)) v.y = 0.0f;
      if (!(row_in && there + 2 >= 0 && there + 2 < W)) v.z = 0.0f;
      if (!(row_in && there + 3 >= 0 && there + 3 < W)) v.w = 0.0f;
      if (vector) {
        *reinterpret_cast<float4*>(to) = v;
      } else {
        to[0] = v.x;
        if (x + 1 < W) to[1] = v.y;
        if (x + 2 < W) to[2] = v.z;
        if (x + 3 < W) to[3] = v.w;
      }
    };

    __syncwarp();
#pragma unroll
    for (int d = 0; d < SIDE; ++d) {
      float* buffer = staged + (d & 1) * OUT_STAGE;
      float* mine = buffer + (lane & 3) * OUT_PITCH + group * P;
#pragma unroll
      for (int p = 0; p < P; p += 2) {
        *reinterpret_cast<float2*>(mine + p) = make_float2(acc[p][d], acc[p + 1][d]);
      }
      __syncwarp();
      if (ok_a) put(buffer + row_a * OUT_PITCH + col_a, out_a, x_a + d - RAD, in_a, x_a);
      if (ok_b) put(buffer + row_b * OUT_PITCH + col_b, out_b, x_b + d - RAD, in_b, x_b);
      out_a += area;
      out_b += area;
    }
    __syncwarp();
  }
}
