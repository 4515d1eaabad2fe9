// Mean of each pixel's neighbourhood, weighted by distance and by likeness; a block takes 32 x 32
// pixels, each thread 8 of one column.

//@ launch bilateral_filter<<<(ceil_div(W, 32), ceil_div(H, 32)), (32, 4)>>>(in, out, near, alike, H, W, R)

__device__ __forceinline__ float exp2_unit(float e) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(e));
  return r;
}

// the same by multiplications and additions, for e up to 127
__device__ __forceinline__ float exp2_polynomial(float e) {
  const float magic = 12582912.0f;
  e = fmaxf(e, -127.0f);
  float t = __fadd_rn(e, magic);
  float n = __fsub_rn(t, magic);
  float f = __fsub_rn(e, n);
  float p = 1.535336188319500e-4f;
  p = fmaf(p, f, 1.339887440266574e-3f);
  p = fmaf(p, f, 9.618437357674640e-3f);
  p = fmaf(p, f, 5.550332471162809e-2f);
  p = fmaf(p, f, 2.402264791363012e-1f);
  p = fmaf(p, f, 6.931472028550421e-1f);
  p = fmaf(p, f, 1.0f);
  return __uint_as_float(__float_as_uint(p) + (__float_as_uint(t) << 23));
}

template <bool BORDER>
__device__ __forceinline__ void filter_of_8(const float* tile, float* __restrict__ out, float near, float alike,
                                            int H, int W, int x0, int y0) {
  const float log2e = 1.4426950408889634f;
  const float kn = -near * log2e;
  const float ka = -alike * log2e;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const float* own = tile + ty * 8 * 48 + tx;

  float centre[8], sum[8], weights[8];
#pragma unroll
  for (int p = 0; p < 8; ++p) {
    centre[p] = own[(p + 8) * 48 + 8];
    sum[p] = 0.0f;
    weights[p] = 0.0f;
  }

#pragma unroll 1
  for (int i = 0; i < 17; ++i) {
    const float fx = (float)(i - 8);
    const float base = kn * (fx * fx);
    float dist[9];
#pragma unroll
    for (int d = 0; d < 9; ++d) dist[d] = fmaf(kn, (float)(d * d), base);
    const float* column = own + i;
    const bool column_inside = (unsigned)(x0 + tx + i - 8) < (unsigned)W;
#pragma unroll
    for (int r = 0; r < 24; ++r) {
      const float value = column[r * 48];
      bool inside = true;
      if (BORDER) inside = column_inside && (unsigned)(y0 + ty * 8 + r - 8) < (unsigned)H;
#pragma unroll
      for (int p = 0; p < 8; ++p) {
        const int dy = r - 8 - p;
        if (dy >= -8 && dy <= 8) {
          const float difference = value - centre[p];
          const float e = fmaf(difference * ka, difference, dist[dy < 0 ? -dy : dy]);
          float weight;
          if ((r * 8 + p) % 13 == 5)
            weight = exp2_polynomial(e);
          else
            weight = exp2_unit(e);
          if (BORDER) weight = inside ? weight : 0.0f;
          sum[p] = fmaf(weight, value, sum[p]);
          weights[p] += weight;
        }
      }
    }
  }

  const int x = x0 + tx;
#pragma unroll
  for (int p = 0; p < 8; ++p) {
    const int y = y0 + ty * 8 + p;
    if (!BORDER || (x < W && y < H)) out[y * W + x] = sum[p] / weights[p];
  }
}

__global__ void __launch_bounds__(128, 6)
bilateral_filter(const float* __restrict__ in, float* __restrict__ out, float near, float alike, int H, int W, int R) {
  __shared__ float tile[48 * 48];
  const int x0 = blockIdx.x * 32;
  const int y0 = blockIdx.y * 32;

  if (R == 8 && near >= 0.0f && alike >= 0.0f) {
    const int tid = threadIdx.y * 32 + threadIdx.x;
#pragma unroll 6
    for (int k = 0; k < 18; ++k) {
      const int index = k * 128 + tid;
      const int row = index / 48;
      const int gy = y0 - 8 + row;
      const int gx = x0 - 8 + (index - row * 48);
      float value = 0.0f;
      if (gy >= 0 && gy < H && gx >= 0 && gx < W) value = in[gy * W + gx];
      tile[index] = value;
    }
    __syncthreads();
    const bool border = x0 < 8 || y0 < 8 || x0 + 40 > W || y0 + 40 > H;
    if (border)
      filter_of_8<true>(tile, out, near, alike, H, W, x0, y0);
    else
      filter_of_8<false>(tile, out, near, alike, H, W, x0, y0);
  } else {
    const int x = x0 + threadIdx.x;
    for (int p = 0; p < 8; ++p) {
      const int y = y0 + p * 4 + threadIdx.y;
      if (x < W && y < H) {
        const float centre = in[y * W + x];
        float sum = 0.0f, weights = 0.0f;
        for (int dy = -R; dy <= R; ++dy) {
          for (int dx = -R; dx <= R; ++dx) {
            if (y + dy >= 0 && y + dy < H && x + dx >= 0 && x + dx < W) {
              float value = in[(y + dy) * W + x + dx];
              float difference = value - centre;
              float weight = expf(-near * (float)(dy * dy + dx * dx) - alike * difference * difference);
              sum += weight * value;
              weights += weight;
            }
          }
        }
        out[y * W + x] = sum / weights;
      }
    }
  }
}
