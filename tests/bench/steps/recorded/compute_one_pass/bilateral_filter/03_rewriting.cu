// Mean of each pixel's neighbourhood, weighted by distance and by likeness; each pair of pixels is weighed once.

//@ launch bilateral_filter<<<ceil_div(ceil_div(H, 26) * (W + 8), 248), 256, 75264>>>(in, out, near, alike, H, W, R)
__device__ __forceinline__ float exp_of_two(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__global__ void __launch_bounds__(256, 2) bilateral_filter(const float* __restrict__ in, float* __restrict__ out, float near, float alike, int H, int W, int R) {
  constexpr int RR = 8;                 // the radius of the fast path
  constexpr int P = 26;                 // rows of a strip, pixels of a thread
  constexpr int T = 256;                // threads of a block
  constexpr int USE = T - RR;           // columns a block writes
  constexpr int TW = T + 2 * RR;        // columns of the tile
  constexpr int EW = T + RR;            // columns of an exchange row
  constexpr int CH = 7;                 // rows of one exchange
  constexpr int CHUNKS = 4;             // exchanges for each dx (even)
  constexpr int ROWS = P + 2 * RR;

  const int tx = threadIdx.x;

  if (R != RR || !(alike > 1e-20f && alike < 1e20f)) {
    const long long total = (long long)H * W;
    for (long long p = (long long)blockIdx.x * T + tx; p < total; p += (long long)gridDim.x * T) {
      const int y = (int)(p / W);
      const int x = (int)(p - (long long)y * W);
      const float centre = in[p];
      float sum = 0.0f, weights = 0.0f;
      for (int dy = -R; dy <= R; ++dy) {
        if (y + dy < 0 || y + dy >= H) continue;
        for (int dx = -R; dx <= R; ++dx) {
          if (x + dx >= 0 && x + dx < W) {
            const float value = in[(long long)(y + dy) * W + x + dx];
            const float difference = value - centre;
            const float weight = expf(-near * (float)(dy * dy + dx * dx) - alike * difference * difference);
            sum += weight * value;
            weights += weight;
          }
        }
      }
      out[p] = sum / weights;
    }
    return;
  }

  extern __shared__ float memory[];
  float* tile = memory;                       // [ROWS][TW]
  float* exchange = memory + ROWS * TW;       // [2 buffers][2 quantities][CH][EW]

  const float log2e = 1.4426950408889634f;
  const float scale = sqrtf(alike * log2e);
  const float outside = 3.0e38f;              // a value that nothing valid is alike to
  const float nl = -near * log2e;

  // Columns of all strips stand in one line, RR columns of nothing behind each strip.
  const int period = W + RR;
  const int strips = (H + P - 1) / P;
  const int base = blockIdx.x * USE;

  for (int cc = RR + tx; cc < TW; cc += T) {
    const int g = base + cc - 2 * RR;
    int strip = 0, x = W;
    if (g >= 0) {
      strip = g / period;
      x = g - strip * period;
    }
    const bool column = g >= 0 && x < W && strip < strips;
    const int y0 = strip * P - RR;
#pragma unroll 14
    for (int r = 0; r < ROWS; ++r) {
      const int y = y0 + r;
      float v = outside;
      if (column && y >= 0 && y < H) v = in[(long long)y * W + x] * scale;
      tile[r * TW + cc] = v;
    }
  }
  __syncthreads();

  float va[P], sa[P], wa[P];
  const float* own = tile + tx + RR;          // the thread's column, from row -RR on
#pragma unroll
  for (int i = 0; i < P; ++i) {
    va[i] = own[(i + RR) * TW];
    sa[i] = va[i];
    wa[i] = 1.0f;
  }

  float c[RR + 1];

  // dx = 0: pairs within the column
#pragma unroll
  for (int k = 0; k <= RR; ++k) c[k] = nl * (float)(k * k);
#pragma unroll
  for (int i = 0; i < P; ++i) {
#pragma unroll
    for (int k = 1; k <= RR; ++k) {
      const int j = i + k;
      if (j < P) {
        const float d = va[j] - va[i];
        const float w = exp_of_two(fmaf(-d, d, c[k]));
        sa[i] = fmaf(w, va[j], sa[i]);
        wa[i] += w;
        sa[j] = fmaf(w, va[i], sa[j]);
        wa[j] += w;
      }
    }
  }
#pragma unroll
  for (int h = 0; h < RR; ++h) {
    const float above = own[h * TW];                  // row h - RR
    const float below = own[(P + RR + h) * TW];       // row P + h
#pragma unroll
    for (int i = 0; i <= h; ++i) {
      const float d = above - va[i];
      const float w = exp_of_two(fmaf(-d, d, c[i + RR - h]));
      sa[i] = fmaf(w, above, sa[i]);
      wa[i] += w;
    }
#pragma unroll
    for (int i = P + h - RR; i < P; ++i) {
      const float d = below - va[i];
      const float w = exp_of_two(fmaf(-d, d, c[P + h - i]));
      sa[i] = fmaf(w, below, sa[i]);
      wa[i] += w;
    }
  }

  // dx > 0: the column dx to the right, both ways; rows outside the strip one way, on both sides
#pragma unroll 1
  for (int dx = 1; dx <= RR; ++dx) {
#pragma unroll
    for (int k = 0; k <= RR; ++k) c[k] = nl * (float)(dx * dx + k * k);

#pragma unroll 1
    for (int side = -1; side <= 1; side += 2) {
      const float* other = own + side * dx;
#pragma unroll
      for (int h = 0; h < RR; ++h) {
        const float above = other[h * TW];
        const float below = other[(P + RR + h) * TW];
#pragma unroll
        for (int i = 0; i <= h; ++i) {
          const float d = above - va[i];
          const float w = exp_of_two(fmaf(-d, d, c[i + RR - h]));
          sa[i] = fmaf(w, above, sa[i]);
          wa[i] += w;
        }
#pragma unroll
        for (int i = P + h - RR; i < P; ++i) {
          const float d = below - va[i];
          const float w = exp_of_two(fmaf(-d, d, c[P + h - i]));
          sa[i] = fmaf(w, below, sa[i]);
          wa[i] += w;
        }
      }
    }

    const float* right = own + dx;
    float* give = exchange + tx + dx;
    const float* take = exchange + tx;
#pragma unroll
    for (int q = 0; q < CHUNKS; ++q) {
#pragma unroll
      for (int jj = 0; jj < CH; ++jj) {
        const int j = q * CH + jj;
        if (j < P) {
          const float vb = right[(j + RR) * TW];
          float sb = 0.0f, wb = 0.0f;
#pragma unroll
          for (int k = -RR; k <= RR; ++k) {
            const int i = j + k;
            if (i >= 0 && i < P) {
              const float d = vb - va[i];
              const float w = exp_of_two(fmaf(-d, d, c[k < 0 ? -k : k]));
              sa[i] = fmaf(w, vb, sa[i]);
              wa[i] += w;
              sb = fmaf(w, va[i], sb);
              wb += w;
            }
          }
          give[(((q & 1) * 2 + 0) * CH + jj) * EW] = sb;
          give[(((q & 1) * 2 + 1) * CH + jj) * EW] = wb;
        }
      }
      __syncthreads();
#pragma unroll
      for (int jj = 0; jj < CH; ++jj) {
        const int j = q * CH + jj;
        if (j < P) {
          sa[j] += take[(((q & 1) * 2 + 0) * CH + jj) * EW];
          wa[j] += take[(((q & 1) * 2 + 1) * CH + jj) * EW];
        }
      }
    }
  }

  // The first RR threads only served their neighbours.
  if (tx >= RR) {
    const int g = base + tx - RR;
    const int strip = g / period;
    const int x = g - strip * period;
    if (x < W && strip < strips) {
      const int y0 = strip * P;
#pragma unroll
      for (int i = 0; i < P; ++i) {
        if (y0 + i < H) out[(long long)(y0 + i) * W + x] = sa[i] / (wa[i] * scale);
      }
    }
  }
}
