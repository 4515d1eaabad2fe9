// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. A block takes 32 pixels along x and 4 rows of g; a warp one row of g and 9 or 8 rows of f.

//@ launch correlation_volume<<<(ceil_div(W, 32), ceil_div(H + 2 * R, 4)), 256, 199680>>>(f, g, out, H, W, C, R)

// floats of a stage: 20 rows of f with 32 pixels, 4 rows of g with 48 pixels, 16 channels padded to 20
#define F_FLOATS (20 * 32 * 20)
#define G_FLOATS (4 * 48 * 20)
#define STAGE_FLOATS (F_FLOATS + G_FLOATS)

__device__ __forceinline__ void copy_16(float* to, const float* from, bool inside) {
  unsigned address = (unsigned)__cvta_generic_to_shared(to);
  int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void block_barrier() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

__device__ __forceinline__ void bring(float* stage, const float* __restrict__ f, const float* __restrict__ g, int c0,
                                      int x0, int r0, int H, int W, int C) {
  const int tid = threadIdx.x;
  const int q = (tid & 3) * 4;
  const bool channel_inside = c0 + q < C;
  {
    const int px = (tid >> 2) & 31;
    const int x = x0 + px;
    const bool column_inside = channel_inside && x < W;
#pragma unroll
    for (int k = 0; k < 10; ++k) {
      const int row = 2 * k + (tid >> 7);
      const int y = r0 - 8 + row;
      const bool inside = column_inside && y >= 0 && y < H;
      const float* from = inside ? f + ((size_t)(y * W + x) * C + c0 + q) : f;
      copy_16(stage + (row * 32 + px) * 20 + q, from, inside);
    }
  }
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    const int p = k * 64 + (tid >> 2);
    const int row = p / 48;
    const int column = p - row * 48;
    const int y = r0 + row;
    const int x = x0 - 8 + column;
    const bool inside = channel_inside && x >= 0 && x < W && y >= 0 && y < H;
    const float* from = inside ? g + ((size_t)(y * W + x) * C + c0 + q) : g;
    copy_16(stage + F_FLOATS + p * 20 + q, from, inside);
  }
}

// displacements J0 .. J0 + Y - 1 along y, all 17 along x
template <int J0, int Y>
__device__ __forceinline__ void correlate(float* shared, const float* __restrict__ f, const float* __restrict__ g,
                                          float* __restrict__ out, int x0, int r0, int H, int W, int C) {
  const int lane = threadIdx.x & 31;
  const int gr = (threadIdx.x >> 5) & 3;
  const int r = r0 + gr;

  float acc[Y][17];
#pragma unroll
  for (int k = 0; k < Y; ++k) {
#pragma unroll
    for (int d = 0; d < 17; ++d) acc[k][d] = 0.0f;
  }

  if (r0 + 3 >= 0 && r0 < H) {
    const int chunks = (C + 15) / 16;
    bring(shared, f, g, 0, x0, r0, H, W, C);
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (chunks > 1) bring(shared + STAGE_FLOATS, f, g, 16, x0, r0, H, W, C);
    asm volatile("cp.async.commit_group;" ::: "memory");
    int present = 0;
    int next = 2;
#pragma unroll 1
    for (int i = 0; i < chunks; ++i) {
      asm volatile("cp.async.wait_group 1;" ::: "memory");
      block_barrier();
      if (i + 2 < chunks) bring(shared + next * STAGE_FLOATS, f, g, (i + 2) * 16, x0, r0, H, W, C);
      asm volatile("cp.async.commit_group;" ::: "memory");
      const float* fs = shared + present * STAGE_FLOATS + ((gr + 16 - J0) * 32 + lane) * 20;
      const float* gs = shared + present * STAGE_FLOATS + F_FLOATS + (gr * 48 + lane) * 20;
#pragma unroll 1
      for (int c = 0; c < 16; c += 4) {
        float4 fv[Y];
#pragma unroll
        for (int k = 0; k < Y; ++k) fv[k] = *reinterpret_cast<const float4*>(fs + c - k * (32 * 20));
#pragma unroll
        for (int d = 0; d < 17; ++d) {
          const float4 gv = *reinterpret_cast<const float4*>(gs + c + d * 20);
#pragma unroll
          for (int k = 0; k < Y; ++k) acc[k][d] = fmaf(fv[k].x, gv.x, acc[k][d]);
#pragma unroll
          for (int k = 0; k < Y; ++k) acc[k][d] = fmaf(fv[k].y, gv.y, acc[k][d]);
#pragma unroll
          for (int k = 0; k < Y; ++k) acc[k][d] = fmaf(fv[k].z, gv.z, acc[k][d]);
#pragma unroll
          for (int k = 0; k < Y; ++k) acc[k][d] = fmaf(fv[k].w, gv.w, acc[k][d]);
        }
      }
      present = present == 2 ? 0 : present + 1;
      next = next == 2 ? 0 : next + 1;
    }
  }

  const int x = x0 + lane;
  const bool row_inside = r >= 0 && r < H;
  if (x < W) {
#pragma unroll
    for (int k = 0; k < Y; ++k) {
      const int j = J0 + k;
      const int y = r + 8 - j;
      if (y >= 0 && y < H) {
        float* to = out + ((size_t)(j * 17) * H + y) * W + x;
        const size_t plane = (size_t)H * W;
#pragma unroll
        for (int d = 0; d < 17; ++d) {
          const int there_x = x + d - 8;
          const bool inside = row_inside && there_x >= 0 && there_x < W;
          __stcs(to + d * plane, inside ? acc[k][d] : 0.0f);
        }
      }
    }
  }
}

__global__ void __launch_bounds__(256, 1)
correlation_volume(const float* __restrict__ f, const float* __restrict__ g, float* __restrict__ out, int H, int W,
                   int C, int R) {
  extern __shared__ __align__(16) float shared[];
  if (R == 8 && C % 4 == 0) {
    const int x0 = (int)blockIdx.x * 32;
    const int r0 = (int)blockIdx.y * 4 - 8;
    if (threadIdx.x < 128)
      correlate<0, 9>(shared, f, g, out, x0, r0, H, W, C);
    else
      correlate<9, 8>(shared, f, g, out, x0, r0, H, W, C);
  } else {
    const int side = 2 * R + 1;
    const long long total = (long long)side * side * H * W;
    const long long step = (long long)gridDim.x * gridDim.y * blockDim.x;
    for (long long i = ((long long)blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x; i < total;
         i += step) {
      const int x = (int)(i % W);
      const long long rest = i / W;
      const int y = (int)(rest % H);
      const int displacement = (int)(rest / H);
      const int there_x = x + displacement % side - R;
      const int there_y = y + displacement / side - R;
      float sum = 0.0f;
      if (there_x >= 0 && there_x < W && there_y >= 0 && there_y < H) {
        const float* a = f + (size_t)(y * W + x) * C;
        const float* b = g + (size_t)(there_y * W + there_x) * C;
        for (int c = 0; c < C; ++c) sum += a[c] * b[c];
      }
      out[i] = sum;
    }
  }
}
