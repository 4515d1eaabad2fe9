// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. A block takes 8 x 7 pixels and all displacements; a thread takes 8 pixels of a row, one vertical and all
// horizontal displacements.

//@ launch correlation_volume<<<(ceil_div(W, 8), ceil_div(H, 7)), 128, 78784>>>(f, g, out, H, W, C, R)

#define CV_ROWS 7
#define CV_GROWS 23
#define CV_GPITCH 97   // 16-byte units of a row of g: 24 pixels x 4 + 1
#define CV_FPITCH 33   // 16-byte units of a row of f: 8 pixels x 4 + 1
#define CV_STAGE_UNITS (CV_GROWS * CV_GPITCH + CV_ROWS * CV_FPITCH)

__device__ __forceinline__ void cv_copy16(unsigned dst, const float* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cv_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
__device__ __forceinline__ void cv_wait_all() { asm volatile("cp.async.wait_group 0;\n" ::: "memory"); }

__global__ void __launch_bounds__(128, 2)
correlation_volume(const float* __restrict__ f, const float* __restrict__ g, float* __restrict__ out, int H, int W,
                   int C, int R) {
  extern __shared__ __align__(16) float4 cv_shared[];

  const int tid = threadIdx.x;
  const int x0 = blockIdx.x * 8;
  const int y0 = blockIdx.y * CV_ROWS;

  if (R != 8 || C % 16 != 0 || W % 8 != 0) {
    // any shape
    const int side = 2 * R + 1;
    const int total = side * side * (CV_ROWS * 8);
    for (int index = tid; index < total; index += 128) {
      const int x = x0 + (index & 7);
      const int rest = index >> 3;
      const int y = y0 + rest % CV_ROWS;
      const int d = rest / CV_ROWS;
      if (x < W && y < H) {
        const int there_x = x + d % side - R;
        const int there_y = y + d / side - R;
        float sum = 0.0f;
        if (there_x >= 0 && there_x < W && there_y >= 0 && there_y < H) {
          const float* a = f + ((size_t)y * W + x) * C;
          const float* b = g + ((size_t)there_y * W + there_x) * C;
          for (int c = 0; c < C; ++c) sum += a[c] * b[c];
        }
        out[((size_t)d * H + y) * W + x] = sum;
      }
    }
    return;
  }

  // ---- which row of f (0..6) and of g (0..22, image row y0 - 8 + grow) this thread multiplies
  const int lane = tid & 31;
  const int warp = tid >> 5;
  int frow, grow;
  bool active = true;
  if (warp < 3) {
    frow = 2 * warp + (lane & 1);
    grow = 2 * warp + 1 + (lane >> 1);
  } else {
    frow = lane < 6 ? lane : 6;
    grow = lane < 6 ? lane + ((lane & 1) ? 16 : 0) : (lane < 22 ? lane : 22);
    active = lane < 23;
  }

  // ---- what this thread copies
  const unsigned shared_base = (unsigned)__cvta_generic_to_shared(cv_shared);
  const size_t row_stride = (size_t)W * C;
  const bool copies_g = tid < 96;
  const float* src;
  unsigned dst;
  int row_first, row_last;  // rows that exist
  if (copies_g) {
    const int px = x0 - 8 + (tid >> 2);
    const bool there = px >= 0 && px < W;
    row_first = max(0, 8 - y0);
    row_last = there ? min(CV_GROWS, H - (y0 - 8)) : 0;
    // first row that exists
    src = g + (there ? ((size_t)(y0 - 8 + row_first) * W + px) * C + (tid & 3) * 4 : (size_t)0);
    dst = shared_base + (unsigned)tid * 16u;
  } else {
    const int l = tid - 96;
    const int px = x0 + (l >> 2);
    row_first = 0;
    row_last = min(CV_ROWS, H - y0);
    src = f + ((size_t)y0 * W + px) * C + (l & 3) * 4;
    dst = shared_base + (unsigned)(CV_GROWS * CV_GPITCH + l) * 16u;
  }
  const bool whole = copies_g ? (row_first == 0 && row_last == CV_GROWS) : false;

  float acc[8][17];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int d = 0; d < 17; ++d) acc[i][d] = 0.0f;
  }

  const int chunks = C / 16;

  auto issue = [&](int k) {
    const float* s = src + k * 16;
    const unsigned to = dst + (unsigned)(k & 1) * (unsigned)(CV_STAGE_UNITS * 16);
    if (copies_g) {
      if (whole) {
#pragma unroll
        for (int r = 0; r < CV_GROWS; ++r) {
          cv_copy16(to + (unsigned)(r * CV_GPITCH * 16), s);
          s += row_stride;
        }
      } else {
#pragma unroll 1
        for (int r = row_first; r < row_last; ++r) {
          cv_copy16(to + (unsigned)(r * CV_GPITCH * 16), s);
          s += row_stride;
        }
      }
    } else {
#pragma unroll
      for (int r = 0; r < CV_ROWS; ++r) {
        if (r < row_last) cv_copy16(to + (unsigned)(r * CV_FPITCH * 16), s);
        s += row_stride;
      }
    }
    cv_commit();
  };

  issue(0);

  for (int k = 0; k < chunks; ++k) {
    cv_wait_all();
    __syncthreads();
    if (k + 1 < chunks) issue(k + 1);

    const float4* stage = cv_shared + (k & 1) * CV_STAGE_UNITS;
    const float4* gs = stage + grow * CV_GPITCH;
    const float4* fs = stage + CV_GROWS * CV_GPITCH + frow * CV_FPITCH;
#pragma unroll 1
    for (int q = 0; q < 4; ++q) {
      float4 a[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) a[i] = fs[i * 4 + q];
#pragma unroll
      for (int m = 0; m < 24; ++m) {
        const float4 b = gs[m * 4 + q];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (m - i >= 0 && m - i < 17) acc[i][m - i] = fmaf(a[i].x, b.x, acc[i][m - i]);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (m - i >= 0 && m - i < 17) acc[i][m - i] = fmaf(a[i].y, b.y, acc[i][m - i]);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (m - i >= 0 && m - i < 17) acc[i][m - i] = fmaf(a[i].z, b.z, acc[i][m - i]);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (m - i >= 0 && m - i < 17) acc[i][m - i] = fmaf(a[i].w, b.w, acc[i][m - i]);
      }
    }
  }

  const int y = y0 + frow;
  if (!active || y >= H) return;

  const int there_y = y0 - 8 + grow;
  const bool row_there = there_y >= 0 && there_y < H;
  if (!row_there || x0 < 8 || x0 + 16 > W) {
#pragma unroll
    for (int m = 0; m < 24; ++m) {
      const int there_x = x0 - 8 + m;
      const bool there = row_there && there_x >= 0 && there_x < W;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (m - i >= 0 && m - i < 17) acc[i][m - i] = there ? acc[i][m - i] : 0.0f;
    }
  }

  const size_t plane = (size_t)H * W;
  float* to = out + (size_t)((grow - frow) * 17) * plane + (size_t)y * W + x0;
#pragma unroll
  for (int d = 0; d < 17; ++d) {
    float4* p = reinterpret_cast<float4*>(to);
    p[0] = make_float4(acc[0][d], acc[1][d], acc[2][d], acc[3][d]);
    p[1] = make_float4(acc[4][d], acc[5][d], acc[6][d], acc[7][d]);
    to += plane;
  }
}
