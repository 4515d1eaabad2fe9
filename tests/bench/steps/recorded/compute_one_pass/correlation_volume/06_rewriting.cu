// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. A thread has 8 pixels of a row and 17 displacements along x; a block has 16 pixels along x and 64 pairs of
// a row of g and a displacement along y.

#include <cstdint>
#include <cstddef>

//@ launch correlation_volume<<<(ceil_div(W, 16), ceil_div(H * 17, 64), ceil_div(2 * R + 1, 17) * ceil_div(2 * R + 1, 17)), 128>>>(f, g, out, H, W, C, R)

constexpr int ND = 17;               // displacements of a chunk, along x and along y
constexpr int CK = 8;                // channels of a tile
constexpr int OCT = 8 * CK + 4;      // 8 pixels in shared memory, padded
constexpr int F_ROWS = 21;           // rows of f of a block, 2 octets each
constexpr int G_ROWS = 5;            // rows of g of a block, 4 octets each
constexpr int F_PIX = F_ROWS * 16;
constexpr int PIX = F_PIX + G_ROWS * 32;
constexpr int STAGE = (PIX / 8) * OCT;

__device__ __forceinline__ void cp16(uint32_t dst, const float* src, int n) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(n) : "memory");
}

__device__ __forceinline__ void cp4(uint32_t dst, const float* src, int n) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(n) : "memory");
}

__global__ void __launch_bounds__(128, 2) correlation_volume(const float* __restrict__ f, const float* __restrict__ g,
                                                             float* __restrict__ out, int H, int W, int C, int R) {
  __shared__ __align__(16) float sm[2 * STAGE];

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int side = 2 * R + 1;
  const int chunks = (side + ND - 1) / ND;
  const int dx0 = (int)(blockIdx.z % chunks) * ND;
  const int dy0 = (int)(blockIdx.z / chunks) * ND;
  const int x0 = blockIdx.x * 16;
  const int p0 = blockIdx.y * 64;
  const int gy0 = p0 / ND;               // first row of g
  const int fy0 = gy0 + R - dy0 - 16;    // first row of f
  const int gx0 = x0 - R + dx0;          // first pixel of g

  // What this thread copies: half of 8 channels of every 64th pixel. Pixels outside of the image are replaced by the
  // first one; what is computed from them is never kept.
  const int half = (tid & 1) * 4;
  const float* src[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int px = (tid >> 1) + 64 * i;
    const float* s = f;
    if (px < F_PIX) {
      const int y = fy0 + (px >> 4);
      const int x = x0 + (px & 15);
      if (y >= 0 && y < H && x < W) s = f + ((size_t)y * W + x) * C;
    } else if (px < PIX) {
      const int q = px - F_PIX;
      const int y = gy0 + (q >> 5);
      const int x = gx0 + (q & 31);
      if (y < H && x >= 0 && x < W) s = g + ((size_t)y * W + x) * C;
    }
    src[i] = s + half;
  }
  const bool vec = (C % 4 == 0) && (((reinterpret_cast<uintptr_t>(f) | reinterpret_cast<uintptr_t>(g)) & 15) == 0);
  const uint32_t dst0 = (uint32_t)__cvta_generic_to_shared(sm) +
                        (uint32_t)(((tid >> 4) * OCT + ((tid >> 1) & 7) * CK + half) * 4);

  auto load = [&](int t) {
    const int c0 = t * CK;
    const uint32_t dst = dst0 + (uint32_t)((t & 1) * (STAGE * 4));
    if (vec) {
      const int n = c0 + half < C ? 16 : 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (i < 7 || tid < 96) cp16(dst + i * (8 * OCT * 4), src[i] + c0, n);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (i < 7 || tid < 96) {
#pragma unroll
          for (int v = 0; v < 4; ++v)
            cp4(dst + i * (8 * OCT * 4) + v * 4, src[i] + c0 + v, c0 + half + v < C ? 4 : 0);
        }
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };

  // What this thread computes.
  const int oct = (lane >> 1) & 1;
  const int pair = (lane & 1) | ((lane >> 2) << 1);
  const int p = p0 + warp * 16 + pair;
  const int gi = p / ND - gy0;
  const int d = p % ND;
  const int f_off = (gi + 16 - d) * (2 * OCT) + oct * OCT;
  const int g_off = (F_PIX / 8) * OCT + gi * (4 * OCT) + oct * OCT;

  float acc[8][ND];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int k = 0; k < ND; ++k) acc[i][k] = 0.0f;
  }

  const int T = (C + CK - 1) / CK;
  load(0);
#pragma unroll 1
  for (int t = 0; t < T; ++t) {
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();
    if (t + 1 < T) load(t + 1);
    const float* fs = sm + (t & 1) * STAGE + f_off;
    const float* gs = sm + (t & 1) * STAGE + g_off;
#pragma unroll 1
    for (int cc = 0; cc < CK; cc += 4) {
      float4 fv[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) fv[i] = *reinterpret_cast<const float4*>(fs + cc + i * CK);
#pragma unroll
      for (int j = 0; j < 8 + ND - 1; ++j) {
        const float4 gv = *reinterpret_cast<const float4*>(gs + cc + j * CK + (j >> 3) * 4);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (j - i >= 0 && j - i < ND) acc[i][j - i] = fmaf(fv[i].x, gv.x, acc[i][j - i]);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (j - i >= 0 && j - i < ND) acc[i][j - i] = fmaf(fv[i].y, gv.y, acc[i][j - i]);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (j - i >= 0 && j - i < ND) acc[i][j - i] = fmaf(fv[i].z, gv.z, acc[i][j - i]);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (j - i >= 0 && j - i < ND) acc[i][j - i] = fmaf(fv[i].w, gv.w, acc[i][j - i]);
      }
    }
  }

  // Products with what lies outside are zero. A pair whose row of f lies outside of the image stands for the pair of
  // the row H away, whose row of g lies outside.
  {
    unsigned inside = 0;
    const int y = gy0 + gi + R - dy0 - d;
    if (y >= 0 && y < H) {
#pragma unroll
      for (int j = 0; j < 8 + ND - 1; ++j) {
        const int x = gx0 + oct * 8 + j;
        if (x >= 0 && x < W) inside |= 1u << j;
      }
    }
    if (inside != (1u << (8 + ND - 1)) - 1u) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int k = 0; k < ND; ++k)
          if (!((inside >> (i + k)) & 1u)) acc[i][k] = 0.0f;
      }
    }
  }

  // Regroup within the warp: 4 threads write the 16 pixels of a pair.
  __syncthreads();
  float* stage = sm + warp * 2048;
  const int quad = (lane & 3) * 4;
  const int xq = x0 + quad;
  const bool vec_out = (W % 4 == 0) && ((reinterpret_cast<uintptr_t>(out) & 15) == 0);
  const size_t plane = (size_t)H * W;
  const int nk = min(ND, side - dx0);
  float* o[2];
  bool ok[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int pp = p0 + warp * 16 + (lane >> 2) + 8 * h;
    const int gy = pp / ND;
    const int dy = dy0 + pp % ND;
    int y = (gy + R - dy) % H;
    if (y < 0) y += H;
    ok[h] = gy < H && dy < side && xq < W;
    o[h] = out + ((size_t)(dy * side + dx0) * H + y) * W + xq;
  }

#pragma unroll
  for (int kb = 0; kb < ND; kb += 8) {
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      if (kb + s < ND) {
        const int k = kb + s < ND ? kb + s : 0;
        float4* q = reinterpret_cast<float4*>(stage + s * 256 + pair * 16 + oct * 8);
        q[0] = make_float4(acc[0][k], acc[1][k], acc[2][k], acc[3][k]);
        q[1] = make_float4(acc[4][k], acc[5][k], acc[6][k], acc[7][k]);
      }
    }
    __syncwarp();
    const int cnt = min(8, nk - kb);
    for (int s = 0; s < cnt; ++s) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float4 v = *reinterpret_cast<const float4*>(stage + s * 256 + ((lane >> 2) + 8 * h) * 16 + quad);
        if (ok[h]) {
          float* to = o[h] + (size_t)(kb + s) * plane;
          if (vec_out) {
            __stcs(reinterpret_cast<float4*>(to), v);
          } else {
            to[0] = v.x;
            if (xq + 1 < W) to[1] = v.y;
            if (xq + 2 < W) to[2] = v.z;
            if (xq + 3 < W) to[3] = v.w;
          }
        }
      }
    }
    __syncwarp();
  }
}
