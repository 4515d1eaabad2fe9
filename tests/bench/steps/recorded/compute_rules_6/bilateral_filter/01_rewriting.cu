// Mean of each pixel's neighbourhood, weighted by distance and by likeness; each pair of pixels is weighted once.

//@ scratch mass: f32[H, W]
//@ launch bilateral_filter<<<(ceil_div(W, 240), ceil_div(H, 144)), 128, 98304>>>(in, out, mass, near, alike, H, W, R)
#include <cfloat>

__device__ __forceinline__ float bilateral_ex2(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

// Adds a pair to both of its pixels.
__device__ __forceinline__ void bilateral_pair(float p, float q, float k, float& ps, float& pw, float& qs, float& qw) {
  float d = q - p;
  float w = bilateral_ex2(fmaf(-d, d, k));
  ps = fmaf(w, q, ps);
  pw += w;
  qs = fmaf(w, p, qs);
  qw += w;
}

// Adds a pair to its first pixel, and begins the sums of the second.
__device__ __forceinline__ void bilateral_first(float p, float q, float k, float& ps, float& pw, float& qs, float& qw) {
  float d = q - p;
  float w = bilateral_ex2(fmaf(-d, d, k));
  ps = fmaf(w, q, ps);
  pw += w;
  qs = w * p;
  qw = w;
}

// Eight neighbouring pixels; FLT_MAX (so far from all that it weighs nothing) outside of the image.
__device__ __forceinline__ void bilateral_load(const float* __restrict__ in, int y, int x, int H, int W, float (&v)[8]) {
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = FLT_MAX;
  if (y >= 0 && y < H) {
    const float* row = in + (size_t)y * W;
    if (W % 4 == 0) {
      if (x >= 0 && x < W) {
        float4 a = *reinterpret_cast<const float4*>(row + x);
        v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
      }
      if (x + 4 >= 0 && x + 4 < W) {
        float4 a = *reinterpret_cast<const float4*>(row + x + 4);
        v[4] = a.x; v[5] = a.y; v[6] = a.z; v[7] = a.w;
      }
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        if (x + k >= 0 && x + k < W) v[k] = row[x + k];
      }
    }
  }
}

__device__ __forceinline__ void bilateral_store(float* to, int y, int x, int W, const float (&v)[8]) {
  float* row = to + (size_t)y * W;
  if (W % 4 == 0) {
    if (x >= 0 && x < W) *reinterpret_cast<float4*>(row + x) = make_float4(v[0], v[1], v[2], v[3]);
    if (x + 4 >= 0 && x + 4 < W) *reinterpret_cast<float4*>(row + x + 4) = make_float4(v[4], v[5], v[6], v[7]);
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (x + k >= 0 && x + k < W) row[x + k] = v[k];
    }
  }
}

__device__ __forceinline__ void bilateral_get(const float4* a, const float4* b, float (&v)[8]) {
  float4 s = *a;
  float4 t = *b;
  v[0] = s.x; v[1] = s.y; v[2] = s.z; v[3] = s.w;
  v[4] = t.x; v[5] = t.y; v[6] = t.z; v[7] = t.w;
}

__device__ __forceinline__ void bilateral_put(float4* a, float4* b, const float (&v)[8], float scale) {
  *a = make_float4(v[0] * scale, v[1] * scale, v[2] * scale, v[3] * scale);
  *b = make_float4(v[4] * scale, v[5] * scale, v[6] * scale, v[7] * scale);
}

__global__ void __launch_bounds__(128, 2) bilateral_filter(const float* __restrict__ in, float* out, float* mass, float near, float alike, int H, int W, int R) {
  extern __shared__ float4 bilateral_shared[];
  const int Y0 = blockIdx.y * 144;
  const float squared = alike * 1.4426950408889634f;

  if (!(R == 8 && squared >= 1e-6f && squared <= 1.0f)) {
    // Any radius, any scalars.
    const int X0 = blockIdx.x * 240;
    for (int t = threadIdx.x; t < 240 * 144; t += 128) {
      int x = X0 + t % 240;
      int y = Y0 + t / 240;
      if (x < W && y < H) {
        float centre = in[(size_t)y * W + x];
        float sum = 0.0f, weights = 0.0f;
        for (int dy = -R; dy <= R; ++dy) {
          for (int dx = -R; dx <= R; ++dx) {
            if (y + dy >= 0 && y + dy < H && x + dx >= 0 && x + dx < W) {
              float value = in[(size_t)(y + dy) * W + x + dx];
              float difference = value - centre;
              float weight = expf(-near * (float)(dy * dy + dx * dx) - alike * difference * difference);
              sum += weight * value;
              weights += weight;
            }
          }
        }
        out[(size_t)y * W + x] = sum / weights;
      }
    }
    return;
  }

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int left = (lane + 31) & 31;
  const int right = (lane + 1) & 31;
  const int x0 = (int)blockIdx.x * 240 - 8 + lane * 8;    // lanes 0 and 31 are the rim
  const bool inner = lane >= 1 && lane <= 30;
  const float scale = sqrtf(squared);
  const float unscale = 1.0f / scale;
  const float nk = -near * 1.4426950408889634f;

  // Of each warp: 8 rows of sums (sums 0-3, sums 4-7, weights 0-3, weights 4-7), 8 rows of values.
  float4* ring = bilateral_shared + warp * (8 * 128);
  float4* vals = bilateral_shared + 4 * (8 * 128) + warp * (8 * 64);

  const int ys = warp == 0 ? Y0 : Y0 + 33 + 37 * (warp - 1);
  const int ye = min(ys + (warp == 0 ? 33 : 37), H);
  const int start = (warp == 0 && Y0 > 0) ? Y0 - 8 : ys;

  const float4 zero4 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int t = 0; t < 32; ++t) ring[t * 32 + lane] = zero4;

  float next[8];
#pragma unroll 1
  for (int r = 0; r < 8; ++r) {
    float v[8];
    bilateral_load(in, start + r, x0, H, W, v);
    float4* row = vals + ((start + r) & 7) * 64;
    bilateral_put(row + lane, row + 32 + lane, v, scale);
  }
  bilateral_load(in, start + 8, x0, H, W, next);
  __syncwarp();

#pragma unroll 1
  for (int y = start; y < ye; ++y) {
    float p[8], ps[8], pw[8], side[8];
    float4* row = vals + (y & 7) * 64;
    float4* acc = ring + (y & 7) * 128;
    bilateral_get(row + lane, row + 32 + lane, p);
    bilateral_get(row + right, row + 32 + right, side);
    bilateral_get(acc + lane, acc + 32 + lane, ps);
    bilateral_get(acc + 64 + lane, acc + 96 + lane, pw);
    acc[lane] = zero4;
    acc[32 + lane] = zero4;
    acc[64 + lane] = zero4;
    acc[96 + lane] = zero4;
    __syncwarp();
    bilateral_put(row + lane, row + 32 + lane, next, scale);    // row y + 8
    __syncwarp();
    bilateral_load(in, y + 9, x0, H, W, next);

    if (y >= ys) {
      // The row itself: the pixel, and those to its right.
      float K[9];
#pragma unroll
      for (int t = 0; t < 9; ++t) K[t] = nk * (float)(t * t);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float w = 1.0f + (p[i] - p[i]);
        ps[i] = fmaf(w, p[i], ps[i]);
        pw[i] += w;
      }
#pragma unroll
      for (int a = 1; a < 8; ++a) {
#pragma unroll
        for (int i = 0; i < a; ++i) bilateral_pair(p[i], p[a], K[a - i], ps[i], pw[i], ps[a], pw[a]);
      }
#pragma unroll
      for (int a = 0; a < 8; ++a) {
        float ts, tw;
        bilateral_first(p[a], side[a], K[8], ps[a], pw[a], ts, tw);
#pragma unroll
        for (int i = a + 1; i < 8; ++i) bilateral_pair(p[i], side[a], K[8 + a - i], ps[i], pw[i], ts, tw);
        ps[a] += __shfl_up_sync(0xffffffffu, ts, 1);
        pw[a] += __shfl_up_sync(0xffffffffu, tw, 1);
      }
    }

    // The eight rows below.
#pragma unroll 1
    for (int dy = max(1, ys - y); dy <= 8; ++dy) {
      const float4* qrow = vals + ((y + dy) & 7) * 64;
      float4* qacc = ring + ((y + dy) & 7) * 128;
      float K[9];
      const float base = nk * (float)(dy * dy);
#pragma unroll
      for (int t = 0; t < 9; ++t) K[t] = fmaf(nk, (float)(t * t), base);

      float qs[8], qw[8];
      bilateral_get(qacc + lane, qacc + 32 + lane, qs);
      bilateral_get(qacc + 64 + lane, qacc + 96 + lane, qw);
      {
        float q[8];
        bilateral_get(qrow + left, qrow + 32 + left, q);
#pragma unroll
        for (int a = 0; a < 8; ++a) {
          float ts, tw;
          bilateral_first(p[0], q[a], K[8 - a], ps[0], pw[0], ts, tw);
#pragma unroll
          for (int i = 1; i <= a; ++i) bilateral_pair(p[i], q[a], K[i + 8 - a], ps[i], pw[i], ts, tw);
          qs[a] += __shfl_down_sync(0xffffffffu, ts, 1);
          qw[a] += __shfl_down_sync(0xffffffffu, tw, 1);
        }
      }
      {
        float q[8];
        bilateral_get(qrow + lane, qrow + 32 + lane, q);
#pragma unroll
        for (int a = 0; a < 8; ++a) {
#pragma unroll
          for (int i = 0; i < 8; ++i) bilateral_pair(p[i], q[a], K[a > i ? a - i : i - a], ps[i], pw[i], qs[a], qw[a]);
        }
      }
      {
        float q[8];
        bilateral_get(qrow + right, qrow + 32 + right, q);
#pragma unroll
        for (int a = 0; a < 8; ++a) {
          float ts, tw;
          bilateral_first(p[a], q[a], K[8], ps[a], pw[a], ts, tw);
#pragma unroll
          for (int i = a + 1; i < 8; ++i) bilateral_pair(p[i], q[a], K[8 + a - i], ps[i], pw[i], ts, tw);
          qs[a] += __shfl_up_sync(0xffffffffu, ts, 1);
          qw[a] += __shfl_up_sync(0xffffffffu, tw, 1);
        }
      }
      bilateral_put(qacc + lane, qacc + 32 + lane, qs, 1.0f);
      bilateral_put(qacc + 64 + lane, qacc + 96 + lane, qw, 1.0f);
    }

    if (y >= ys && inner) {
      if (warp > 0 && y < ys + 8) {
        // The warp above still has to add its part.
        bilateral_store(out, y, x0, W, ps);
        bilateral_store(mass, y, x0, W, pw);
      } else {
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = ps[i] / pw[i] * unscale;
        bilateral_store(out, y, x0, W, v);
      }
    }
  }

  __syncthreads();
  if (warp > 0 && inner) {
    const float4* above = bilateral_shared + (warp - 1) * (8 * 128);
    const int last = min(ys + 8, ye);
#pragma unroll 1
    for (int y = ys; y < last; ++y) {
      const float4* acc = above + (y & 7) * 128;
      float qs[8], qw[8], ps[8], pw[8];
      bilateral_get(acc + lane, acc + 32 + lane, qs);
      bilateral_get(acc + 64 + lane, acc + 96 + lane, qw);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        ps[i] = 0.0f;
        pw[i] = 1.0f;
        if (x0 + i >= 0 && x0 + i < W) {
          ps[i] = out[(size_t)y * W + x0 + i];
          pw[i] = mass[(size_t)y * W + x0 + i];
        }
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) ps[i] = (ps[i] + qs[i]) / (pw[i] + qw[i]) * unscale;
      bilateral_store(out, y, x0, W, ps);
    }
  }
}
