// Mean of each pixel's neighbourhood, weighted by distance and by likeness.
// R = 8: a block owns a strip of 128 columns (of which the first 8 only help, except in the first
// strip) and a range of groups of 8 rows; each pair of pixels is computed once and added to both.

constexpr int BF_P = 8;          // rows of a group, also the radius of the fast path
constexpr int BF_T = 128;        // threads of a block, columns of a strip
constexpr int BF_VS = 136;       // columns of the values kept
constexpr int BF_AW = 40;        // columns of the sums of one warp: its own 32 and 8 to the right
constexpr int BF_AS = 4 * BF_AW; // columns of the sums of the block
constexpr int BF_FULL = 0, BF_TOP = 1, BF_BOTTOM = 2;

__device__ __forceinline__ float bf_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// All pairs of the group's pixels (this thread's column) with those to the right of them, and below.
// v*: values of the groups before, of, and behind this one; a*: the sums of the same groups.
// BF_TOP: only what reaches the group behind; BF_BOTTOM: only what reaches the group before.
template <int MODE>
__device__ __forceinline__ void bf_pairs(const float* vm, const float* v0, const float* vp,
                                         float2* am, float2* a0, float2* ap, float nl) {
  float u[BF_P], s[BF_P], w[BF_P];
#pragma unroll
  for (int r = 0; r < BF_P; ++r) {
    u[r] = v0[r * BF_VS];
    s[r] = 0.0f;
    w[r] = 0.0f;
  }
#pragma unroll 1
  for (int dx = 1; dx <= 8; ++dx) {
    const float kx = -nl * (float)(dx * dx);
    float k[9];
#pragma unroll
    for (int d = 0; d <= 8; ++d) k[d] = fmaf(-nl, (float)(d * d), kx);
#pragma unroll
    for (int j = 0; j < 24; ++j) {
      if (MODE == BF_TOP && j < 16) continue;
      if (MODE == BF_BOTTOM && j >= 8) continue;
      const float* v = (j < 8) ? vm : (j < 16) ? v0 : vp;
      float2* a = (j < 8) ? am : (j < 16) ? a0 : ap;
      const float q = v[(j & 7) * BF_VS + dx];
      float2 t = a[(j & 7) * BF_AS + dx];
#pragma unroll
      for (int r = 0; r < BF_P; ++r) {
        const int d = j - 8 - r;
        if (d >= -8 && d <= 8) {
          const float diff = q - u[r];
          const float e = bf_exp2(fmaf(-diff, diff, k[d < 0 ? -d : d]));
          if (MODE == BF_FULL) {
            s[r] = fmaf(e, q, s[r]);
            w[r] += e;
          }
          t.x = fmaf(e, u[r], t.x);
          t.y += e;
        }
      }
      a[(j & 7) * BF_AS + dx] = t;
    }
    __syncwarp();
  }
  // dx = 0: the pixels below in the same column
  if (MODE != BF_BOTTOM) {
    float k[9];
#pragma unroll
    for (int d = 0; d <= 8; ++d) k[d] = -nl * (float)(d * d);
    if (MODE == BF_FULL) {
#pragma unroll
      for (int r = 0; r < BF_P; ++r) {
        const float zero = u[r] - u[r];
        s[r] += u[r];
        w[r] += 1.0f - zero * zero;
#pragma unroll
        for (int o = r + 1; o < BF_P; ++o) {
          const float diff = u[o] - u[r];
          const float e = bf_exp2(fmaf(-diff, diff, k[o - r]));
          s[r] = fmaf(e, u[o], s[r]);
          w[r] += e;
          s[o] = fmaf(e, u[r], s[o]);
          w[o] += e;
        }
      }
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float q = vp[j * BF_VS];
      float2 t = ap[j * BF_AS];
#pragma unroll
      for (int r = 0; r < BF_P; ++r) {
        const int d = j + 8 - r;
        if (d <= 8) {
          const float diff = q - u[r];
          const float e = bf_exp2(fmaf(-diff, diff, k[d & 15]));
          if (MODE == BF_FULL) {
            s[r] = fmaf(e, q, s[r]);
            w[r] += e;
          }
          t.x = fmaf(e, u[r], t.x);
          t.y += e;
        }
      }
      ap[j * BF_AS] = t;
    }
    if (MODE == BF_FULL) {
#pragma unroll
      for (int r = 0; r < BF_P; ++r) {
        float2 t = a0[r * BF_AS];
        t.x += s[r];
        t.y += w[r];
        a0[r * BF_AS] = t;
      }
    }
  }
}

//@ launch bilateral_filter<<<(ceil_div(max(W - 8, 1), 120), 31), 128>>>(in, out, near, alike, H, W, R)
__global__ void __launch_bounds__(128, 4)
bilateral_filter(const float* __restrict__ in, float* __restrict__ out, float near, float alike, int H, int W, int R) {
  __shared__ float values[4 * BF_P * BF_VS];
  __shared__ float2 sums[3 * BF_P * BF_AS];

  const int tid = threadIdx.x;

  if (R != 8 || !(alike >= 1e-4f && alike <= 0.69f)) {
    // any radius, any likeness
    const int step = gridDim.x * gridDim.y * blockDim.x;
    for (int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + tid; i < H * W; i += step) {
      const int y = i / W, x = i - y * W;
      const float centre = in[i];
      float sum = 0.0f, weights = 0.0f;
      const int dy0 = max(-R, -y), dy1 = min(R, H - 1 - y);
      const int dx0 = max(-R, -x), dx1 = min(R, W - 1 - x);
      for (int dy = dy0; dy <= dy1; ++dy) {
        for (int dx = dx0; dx <= dx1; ++dx) {
          const float value = in[(y + dy) * W + x + dx];
          const float difference = value - centre;
          const float weight = expf(-near * (float)(dy * dy + dx * dx) - alike * difference * difference);
          sum += weight * value;
          weights += weight;
        }
      }
      out[i] = sum / weights;
    }
    return;
  }

  const int G = (H + BF_P - 1) / BF_P;
  const int ga = (int)((long long)G * blockIdx.y / gridDim.y);
  const int gb = (int)((long long)G * (blockIdx.y + 1) / gridDim.y);
  if (ga >= gb) return;

  const float LOG2E = 1.4426950408889634f;
  const float PAD = 3e38f;  // so far from every value that its weight is 0
  const float scale = sqrtf(alike * LOG2E);
  const float nl = near * LOG2E;

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int x0 = blockIdx.x * 120;
  const int x = x0 + tid;
  const bool inside = x < W;
  // the 8 further columns of a group, one element for each of the first 64 threads
  const int xr = tid >> 3;
  const int xc = BF_T + (tid & 7);
  const bool extra_inside = tid < 64 && x0 + xc < W;

  for (int i = tid; i < 3 * BF_P * BF_AS; i += BF_T) sums[i] = make_float2(0.0f, 0.0f);

  // the first two groups of values
#pragma unroll 1
  for (int g = ga - 1; g <= ga; ++g) {
    float* v = values + ((g + 4) & 3) * (BF_P * BF_VS);
#pragma unroll
    for (int r = 0; r < BF_P; ++r) {
      const int y = g * BF_P + r;
      v[r * BF_VS + tid] = (inside && y >= 0 && y < H) ? in[y * W + x] * scale : PAD;
    }
    if (tid < 64) {
      const int y = g * BF_P + xr;
      v[xr * BF_VS + xc] = (extra_inside && y >= 0 && y < H) ? in[y * W + x0 + xc] * scale : PAD;
    }
  }
  __syncthreads();

#pragma unroll 1
  for (int g = ga - 1; g <= gb; ++g) {
    // values of the group after the next one
    const bool more = g + 2 <= gb;
    float ahead[BF_P];
    float ahead_extra = PAD;
#pragma unroll
    for (int r = 0; r < BF_P; ++r) ahead[r] = PAD;
    if (more) {
#pragma unroll
      for (int r = 0; r < BF_P; ++r) {
        const int y = (g + 2) * BF_P + r;
        if (inside && y < H) ahead[r] = in[y * W + x];
      }
      const int y = (g + 2) * BF_P + xr;
      if (extra_inside && y < H) ahead_extra = in[y * W + x0 + xc];
    }

    const float* vm = values + ((g + 3) & 3) * (BF_P * BF_VS) + tid;
    const float* v0 = values + ((g + 4) & 3) * (BF_P * BF_VS) + tid;
    const float* vp = values + ((g + 5) & 3) * (BF_P * BF_VS) + tid;
    float2* am = sums + ((g + 2) % 3) * (BF_P * BF_AS) + warp * BF_AW + lane;
    float2* a0 = sums + ((g + 3) % 3) * (BF_P * BF_AS) + warp * BF_AW + lane;
    float2* ap = sums + ((g + 4) % 3) * (BF_P * BF_AS) + warp * BF_AW + lane;

    if (g < ga) {
      if (ga > 0) bf_pairs<BF_TOP>(vm, v0, vp, am, a0, ap, nl);
    } else if (g < gb) {
      bf_pairs<BF_FULL>(vm, v0, vp, am, a0, ap, nl);
    } else if (gb * BF_P < H) {
      bf_pairs<BF_BOTTOM>(vm, v0, vp, am, a0, ap, nl);
    }

    if (more) {
      float* v = values + ((g + 6) & 3) * (BF_P * BF_VS);
#pragma unroll
      for (int r = 0; r < BF_P; ++r) {
        const int y = (g + 2) * BF_P + r;
        v[r * BF_VS + tid] = (inside && y < H) ? ahead[r] * scale : PAD;
      }
      if (tid < 64) {
        const int y = (g + 2) * BF_P + xr;
        v[xr * BF_VS + xc] = (extra_inside && y < H) ? ahead_extra * scale : PAD;
      }
    }
    __syncthreads();

    // the group before this one has all its sums now
    if (g - 1 >= ga) {
      const bool write = inside && (blockIdx.x == 0 || tid >= 8);
#pragma unroll
      for (int r = 0; r < BF_P; ++r) {
        float2 t = am[r * BF_AS];
        am[r * BF_AS] = make_float2(0.0f, 0.0f);
        if (warp > 0 && lane < 8) {
          // what the warp to the left has added beyond its own columns
          float2* left = am + r * BF_AS - BF_AW + 32;
          const float2 o = *left;
          *left = make_float2(0.0f, 0.0f);
          t.x += o.x;
          t.y += o.y;
        }
        const int y = (g - 1) * BF_P + r;
        if (write && y < H) out[y * W + x] = t.x / (t.y * scale);
      }
    }
    __syncthreads();
  }
}
