// Mean of each pixel's neighbourhood, weighted by distance and by likeness.
// R == 8: every pair of pixels is evaluated once and serves both of them; strips of 128 columns and 128 rows a block.

//@ scratch edge: f32[ceil_div(W, 128), H, 32]
//@ launch bilateral_filter<<<(ceil_div(W, 128), ceil_div(H, 128)), 128>>>(in, out, edge, near, alike, H, W, R)
//@ launch bilateral_edges<<<ceil_div(ceil_div(W, 128) * H * 8, 256), 256>>>(edge, out, alike, H, W, R)

#define BF_TW 128
#define BF_SEG 128
#define BF_PITCH 136
#define BF_WIN 24
#define BF_LOG2E 1.4426950408889634f
#define BF_FAR 1e30f

__device__ __forceinline__ bool bf_fast(float alike, int R) {
  return R == 8 && alike > 1e-12f && alike < 1e12f;
}

__device__ __forceinline__ float bf_exp2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// Own rows are window rows AR .. AR+7; partner rows R0 .. R1-1 of the column that in and acc point to.
template <int AR, int R0, int R1>
__device__ __forceinline__ void bf_pairs(const float (&a)[8], float (&as)[8], float (&aw)[8],
                                         const float* in, float2* acc, const float (&S)[9]) {
#pragma unroll
  for (int r = R0; r < R1; ++r) {
    const float b = in[r * BF_PITCH];
    float2 t = acc[r * BF_PITCH];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int d = r - AR - i;
      if (d >= -8 && d <= 8) {
        const float diff = b - a[i];
        const float w = bf_exp2(fmaf(-diff, diff, S[d < 0 ? -d : d]));
        as[i] = fmaf(w, b, as[i]);
        aw[i] += w;
        t.x = fmaf(w, a[i], t.x);
        t.y += w;
      }
    }
    acc[r * BF_PITCH] = t;
  }
}

__device__ __forceinline__ void bf_distance(float (&S)[9], int dx, float nl) {
  const float d2 = (float)(dx * dx);
#pragma unroll
  for (int k = 0; k < 9; ++k) S[k] = nl * (d2 + (float)(k * k));
}

__device__ __forceinline__ float bf_load(const float* __restrict__ in, int gy, int gx, int H, int W, float s) {
  float v = BF_FAR;
  if (gy >= 0 && gy < H && gx < W) v = __ldg(in + (size_t)gy * W + gx) * s;
  return v;
}

__device__ __forceinline__ void bf_emit(float* __restrict__ out, float2* __restrict__ edge2, float2 t, int strip,
                                        int c, int gy, int gx, int yEnd, int H, int W, float s) {
  if (gy >= yEnd || gx >= W) return;
  if (c >= BF_TW) {
    edge2[((size_t)((strip + 1) * 2) * H + gy) * 8 + (c - BF_TW)] = t;
  } else if (c < 8 && strip > 0) {
    edge2[((size_t)(strip * 2 + 1) * H + gy) * 8 + c] = t;
  } else {
    out[(size_t)gy * W + gx] = t.x / (t.y * s);
  }
}

__global__ void __launch_bounds__(128, 4)
bilateral_filter(const float* __restrict__ in, float* __restrict__ out, float* __restrict__ edge,
                 float near, float alike, int H, int W, int R) {
  __shared__ float sIn[BF_WIN * BF_PITCH];
  __shared__ float2 sAcc[BF_WIN * BF_PITCH];

  const int tid = threadIdx.x;
  const int strip = blockIdx.x;
  const int x0 = strip * BF_TW;
  const int y0 = blockIdx.y * BF_SEG;
  const int yEnd = min(y0 + BF_SEG, H);

  if (!bf_fast(alike, R)) {
    const int x = x0 + tid;
    if (x < W) {
      for (int y = y0; y < yEnd; ++y) {
        const float centre = in[(size_t)y * W + x];
        float sum = 0.0f, weights = 0.0f;
        const int top = max(-R, -y), bottom = min(R, H - 1 - y);
        const int left = max(-R, -x), right = min(R, W - 1 - x);
        for (int dy = top; dy <= bottom; ++dy) {
          for (int dx = left; dx <= right; ++dx) {
            const float value = in[(size_t)(y + dy) * W + x + dx];
            const float difference = value - centre;
            const float weight = expf(-near * (float)(dy * dy + dx * dx) - alike * difference * difference);
            sum += weight * value;
            weights += weight;
          }
        }
        out[(size_t)y * W + x] = sum / weights;
      }
    }
    return;
  }

  float2* edge2 = reinterpret_cast<float2*>(edge);
  const float s = sqrtf(alike * BF_LOG2E);
  const float nl = -near * BF_LOG2E;

  // window row r holds image row y - 8 + r
  for (int c = tid; c < BF_PITCH; c += BF_TW) {
#pragma unroll 8
    for (int r = 0; r < BF_WIN; ++r) {
      sIn[r * BF_PITCH + c] = bf_load(in, y0 - 8 + r, x0 + c, H, W, s);
      sAcc[r * BF_PITCH + c] = make_float2(0.0f, 0.0f);
    }
  }
  __syncthreads();

  float a[8], as[8], aw[8], S[9];

  // rows above the segment act on its first rows
  if (y0 > 0) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      a[i] = sIn[i * BF_PITCH + tid];
      as[i] = 0.0f;
      aw[i] = 0.0f;
    }
#pragma unroll 1
    for (int dx = 0; dx <= 8; ++dx) {
      bf_distance(S, dx, nl);
      bf_pairs<0, 8, 16>(a, as, aw, sIn + tid + dx, sAcc + tid + dx, S);
      __syncthreads();
    }
  }

  for (int y = y0;; y += 8) {
    const bool last = y + 8 >= yEnd;

#pragma unroll
    for (int i = 0; i < 8; ++i) {
      a[i] = sIn[(8 + i) * BF_PITCH + tid];
      as[i] = a[i];
      aw[i] = 1.0f;
    }

    // own column: pairs inside the 8 rows, then with the 8 rows below
    bf_distance(S, 0, nl);
#pragma unroll
    for (int j = 1; j < 8; ++j) {
#pragma unroll
      for (int i = 0; i < j; ++i) {
        const float diff = a[j] - a[i];
        const float w = bf_exp2(fmaf(-diff, diff, S[j - i]));
        as[i] = fmaf(w, a[j], as[i]);
        aw[i] += w;
        as[j] = fmaf(w, a[i], as[j]);
        aw[j] += w;
      }
    }
    bf_pairs<8, 16, 24>(a, as, aw, sIn + tid, sAcc + tid, S);
    __syncthreads();

    // columns to the right
#pragma unroll 1
    for (int dx = 1; dx <= 8; ++dx) {
      bf_distance(S, dx, nl);
      bf_pairs<8, 0, 24>(a, as, aw, sIn + tid + dx, sAcc + tid + dx, S);
      __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float2 t = sAcc[(8 + i) * BF_PITCH + tid];
      t.x += as[i];
      t.y += aw[i];
      sAcc[(8 + i) * BF_PITCH + tid] = t;
    }

    // rows below the segment act on its last rows
    if (last && y + 8 < H) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        a[i] = sIn[(16 + i) * BF_PITCH + tid];
        as[i] = 0.0f;
        aw[i] = 0.0f;
      }
      __syncthreads();
#pragma unroll 1
      for (int dx = 1; dx <= 8; ++dx) {
        bf_distance(S, dx, nl);
        bf_pairs<16, 8, 16>(a, as, aw, sIn + tid + dx, sAcc + tid + dx, S);
        __syncthreads();
      }
    }

    // finished rows go out, the window moves down by 8 rows
    for (int c = tid; c < BF_PITCH; c += BF_TW) {
      const int gx = x0 + c;
      if (y > y0) {
#pragma unroll
        for (int r = 0; r < 8; ++r)
          bf_emit(out, edge2, sAcc[r * BF_PITCH + c], strip, c, y - 8 + r, gx, yEnd, H, W, s);
      }
      if (last) {
#pragma unroll
        for (int r = 8; r < 16; ++r)
          bf_emit(out, edge2, sAcc[r * BF_PITCH + c], strip, c, y - 8 + r, gx, yEnd, H, W, s);
      } else {
        float fresh[8];
#pragma unroll
        for (int r = 0; r < 8; ++r) fresh[r] = bf_load(in, y + 16 + r, gx, H, W, s);
#pragma unroll
        for (int r = 0; r < 16; ++r) {
          sAcc[r * BF_PITCH + c] = sAcc[(r + 8) * BF_PITCH + c];
          sIn[r * BF_PITCH + c] = sIn[(r + 8) * BF_PITCH + c];
        }
#pragma unroll
        for (int r = 0; r < 8; ++r) {
          sAcc[(16 + r) * BF_PITCH + c] = make_float2(0.0f, 0.0f);
          sIn[(16 + r) * BF_PITCH + c] = fresh[r];
        }
      }
    }
    if (last) break;
    __syncthreads();
  }
}

// The first 8 columns of every strip but the first: the parts of both strips come together.
__global__ void bilateral_edges(const float* __restrict__ edge, float* __restrict__ out, float alike, int H, int W,
                                int R) {
  if (!bf_fast(alike, R)) return;
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  const int c = index & 7;
  const int line = index >> 3;
  const int strip = line / H;
  const int y = line - strip * H;
  const int x = strip * BF_TW + c;
  if (strip < 1 || x >= W) return;
  const float2* edge2 = reinterpret_cast<const float2*>(edge);
  const float2 p = edge2[((size_t)(strip * 2) * H + y) * 8 + c];
  const float2 q = edge2[((size_t)(strip * 2 + 1) * H + y) * 8 + c];
  const float s = sqrtf(alike * BF_LOG2E);
  out[(size_t)y * W + x] = (p.x + q.x) / ((p.y + q.y) * s);
}
