// Mean of each pixel's neighbourhood, weighted by distance and by likeness.
// The weight of two pixels is the same from both sides: it is computed once for each pair (R == 8).

#include <cfloat>

//@ launch bilateral_filter<<<ceil_div(ceil_div(H, 144) * (W + 8), 120), 128>>>(in, out, near, alike, H, W, R)

__device__ __forceinline__ float bf_exp2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

constexpr int BF_ROWS = 144;      // rows of a strip
constexpr int BF_TILES = 18;      // tiles of 8 rows in a strip
constexpr int BF_OUT = 120;       // columns a block writes
constexpr int BF_VCOLS = 136;     // columns of values a block sees
constexpr int BF_ACOLS = 40;      // columns of sums of a warp

// All pairs of the 8 rows in lv with the 8 rows of another column, V tiles below.
template <int V>
__device__ __forceinline__ void bf_pairs(const float (&lv)[8], float (&ls)[8], float (&lw)[8],
                                         const float4* val, float4* acc, const float (&k)[9]) {
  const float4 v0 = val[0];
  const float4 v1 = val[BF_VCOLS];
  float4 s0 = acc[0];
  float4 s1 = acc[BF_ACOLS];
  float4 w0 = acc[2 * BF_ACOLS];
  float4 w1 = acc[3 * BF_ACOLS];
  const float rv[8] = {v0.x, v0.y, v0.z, v0.w, v1.x, v1.y, v1.z, v1.w};
  float rs[8] = {s0.x, s0.y, s0.z, s0.w, s1.x, s1.y, s1.z, s1.w};
  float rw[8] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int dy = V * 8 + j - i;
      if (dy >= -8 && dy <= 8) {
        const float d = rv[j] - lv[i];
        const float w = bf_exp2(fmaf(-d, d, k[dy < 0 ? -dy : dy]));
        ls[i] = fmaf(w, rv[j], ls[i]);
        lw[i] += w;
        rs[j] = fmaf(w, lv[i], rs[j]);
        rw[j] += w;
      }
    }
  }
  acc[0] = make_float4(rs[0], rs[1], rs[2], rs[3]);
  acc[BF_ACOLS] = make_float4(rs[4], rs[5], rs[6], rs[7]);
  acc[2 * BF_ACOLS] = make_float4(rw[0], rw[1], rw[2], rw[3]);
  acc[3 * BF_ACOLS] = make_float4(rw[4], rw[5], rw[6], rw[7]);
}

__global__ void __launch_bounds__(128, 4)
bilateral_filter(const float* __restrict__ in, float* __restrict__ out, float near, float alike, int H, int W, int R) {
  __shared__ float4 vals[3][2][BF_VCOLS];        // tile of the ring, half of the rows, column
  __shared__ float4 accs[4][3][4][BF_ACOLS];     // warp, tile of the ring, sums and weights, column

  const int tid = (int)threadIdx.x;

  if (!(R == 8 && alike > 1e-30f && alike < 1e30f)) {
    const int total = H * W;
    for (int p = (int)blockIdx.x * 128 + tid; p < total; p += (int)gridDim.x * 128) {
      const int y = p / W;
      const int x = p - y * W;
      const float centre = in[p];
      float sum = 0.0f, weights = 0.0f;
      for (int dy = -R; dy <= R; ++dy) {
        for (int dx = -R; dx <= R; ++dx) {
          if (y + dy >= 0 && y + dy < H && x + dx >= 0 && x + dx < W) {
            const float value = in[(y + dy) * W + x + dx];
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

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int pitch = W + 8;                        // strips side by side, 8 empty columns between them
  const int strips = (H + BF_ROWS - 1) / BF_ROWS;
  const float log2e = 1.4426950408889634f;
  const float scale = sqrtf(alike * log2e);
  const float nl = -near * log2e;

  const int first = (int)blockIdx.x * BF_OUT - 8;

  // column of this thread
  const int g = first + tid;
  const int strip = g >= 0 ? g / pitch : 0;
  const int x = g - strip * pitch;
  const bool columnOk = g >= 0 && x < W && strip < strips;
  const int ys = strip * BF_ROWS;

  // one element of the 8 columns behind the block's last one, for the first 64 threads
  const int ec = 128 + (tid & 7);
  const int er = (tid >> 3) & 7;
  const int eg = first + ec;                      // never negative
  const int estrip = eg / pitch;
  const int ex = eg - estrip * pitch;
  const bool extraOk = tid < 64 && ex < W && estrip < strips;
  const int eys = estrip * BF_ROWS;

  // tiles this block needs: those of its uppermost strip
  const int firstStrip = (first > 0 ? first : 0) / pitch;
  int tiles = (H - firstStrip * BF_ROWS + 7) / 8;
  if (tiles > BF_TILES) tiles = BF_TILES;

  float pf[8];
  float pe;

  auto fetch = [&](int tile) {
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int y = ys + tile * 8 + r;
      pf[r] = 0.0f;
      if (columnOk && y >= 0 && y < H) pf[r] = in[y * W + x];
    }
    const int y = eys + tile * 8 + er;
    pe = 0.0f;
    if (extraOk && y >= 0 && y < H) pe = in[y * W + ex];
  };
  auto put = [&](int tile, int slot) {
    float v[8];
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int y = ys + tile * 8 + r;
      v[r] = (columnOk && y >= 0 && y < H) ? pf[r] * scale : FLT_MAX;
    }
    vals[slot][0][tid] = make_float4(v[0], v[1], v[2], v[3]);
    vals[slot][1][tid] = make_float4(v[4], v[5], v[6], v[7]);
    if (tid < 64) {
      const int y = eys + tile * 8 + er;
      const float e = (extraOk && y >= 0 && y < H) ? pe * scale : FLT_MAX;
      float* to = reinterpret_cast<float*>(&vals[slot][er >> 2][ec]);
      to[er & 3] = e;
    }
  };
  auto clear = [&](int slot) {
    float4* to = &accs[warp][slot][0][0];
#pragma unroll
    for (int q = 0; q < 4 * BF_ACOLS / 32; ++q) to[q * 32 + lane] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  };

  int before = 2, here = 0, after = 1;            // slots of the tiles t - 1, t, t + 1
  fetch(-1);
  put(-1, here);
  fetch(0);
  put(0, after);
  clear(0);
  clear(1);
  clear(2);
  __syncthreads();

#pragma unroll 1
  for (int t = -1; t <= tiles; ++t) {
    const bool more = t + 2 <= tiles;
    if (more) fetch(t + 2);

    float lv[8], ls[8], lw[8];
    {
      const float4 a = vals[here][0][tid];
      const float4 b = vals[here][1][tid];
      lv[0] = a.x; lv[1] = a.y; lv[2] = a.z; lv[3] = a.w;
      lv[4] = b.x; lv[5] = b.y; lv[6] = b.z; lv[7] = b.w;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      ls[i] = 0.0f;
      lw[i] = 0.0f;
    }
    const bool up = t >= 0;                       // meets the tiles above
    const bool down = t < tiles;                  // meets the tiles below
    float k[9];

    // its own column
#pragma unroll
    for (int m = 0; m < 9; ++m) k[m] = nl * (float)(m * m);
    if (down) {
      if (up) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float self = 1.0f + (lv[i] - lv[i]);
          ls[i] = fmaf(self, lv[i], ls[i]);
          lw[i] += self;
#pragma unroll
          for (int j = i + 1; j < 8; ++j) {
            const float d = lv[j] - lv[i];
            const float w = bf_exp2(fmaf(-d, d, k[j - i]));
            ls[i] = fmaf(w, lv[j], ls[i]);
            lw[i] += w;
            ls[j] = fmaf(w, lv[i], ls[j]);
            lw[j] += w;
          }
        }
      }
      bf_pairs<1>(lv, ls, lw, &vals[after][0][tid], &accs[warp][after][0][lane], k);
    }

    // the 8 columns to the right
#pragma unroll 1
    for (int dx = 1; dx <= 8; ++dx) {
      __syncwarp();
      const float base = nl * (float)(dx * dx);
#pragma unroll
      for (int m = 0; m < 9; ++m) k[m] = fmaf(nl, (float)(m * m), base);
      if (up) bf_pairs<-1>(lv, ls, lw, &vals[before][0][tid + dx], &accs[warp][before][0][lane + dx], k);
      if (up && down) bf_pairs<0>(lv, ls, lw, &vals[here][0][tid + dx], &accs[warp][here][0][lane + dx], k);
      if (down) bf_pairs<1>(lv, ls, lw, &vals[after][0][tid + dx], &accs[warp][after][0][lane + dx], k);
    }
    __syncwarp();

    // the sums of this thread's own pixels
    {
      float4* to = &accs[warp][here][0][lane];
      float4 a = to[0];
      a.x += ls[0]; a.y += ls[1]; a.z += ls[2]; a.w += ls[3];
      to[0] = a;
      float4 b = to[BF_ACOLS];
      b.x += ls[4]; b.y += ls[5]; b.z += ls[6]; b.w += ls[7];
      to[BF_ACOLS] = b;
      float4 c = to[2 * BF_ACOLS];
      c.x += lw[0]; c.y += lw[1]; c.z += lw[2]; c.w += lw[3];
      to[2 * BF_ACOLS] = c;
      float4 e = to[3 * BF_ACOLS];
      e.x += lw[4]; e.y += lw[5]; e.z += lw[6]; e.w += lw[7];
      to[3 * BF_ACOLS] = e;
    }
    __syncthreads();

    // tile t - 1 is complete
    if (t >= 1 && tid >= 8 && columnOk) {
      const float4* from = &accs[warp][before][0][lane];
      float4 q[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) q[c] = from[c * BF_ACOLS];
      if (lane < 8) {
        // what the warp to the left has for these columns (tid >= 8, so warp >= 1)
        const float4* left = &accs[warp - 1][before][0][32 + lane];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const float4 l = left[c * BF_ACOLS];
          q[c].x += l.x; q[c].y += l.y; q[c].z += l.z; q[c].w += l.w;
        }
      }
      const float sums[8] = {q[0].x, q[0].y, q[0].z, q[0].w, q[1].x, q[1].y, q[1].z, q[1].w};
      const float weights[8] = {q[2].x, q[2].y, q[2].z, q[2].w, q[3].x, q[3].y, q[3].z, q[3].w};
      const int y0 = ys + (t - 1) * 8;
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        const int y = y0 + r;
        if (y < H) out[y * W + x] = sums[r] / (weights[r] * scale);
      }
    }
    if (more) put(t + 2, before);
    __syncthreads();
    clear(before);
    __syncwarp();

    const int free = before;
    before = here;
    here = after;
    after = free;
  }
}
