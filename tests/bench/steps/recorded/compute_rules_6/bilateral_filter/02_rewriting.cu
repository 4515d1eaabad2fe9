// Mean of each pixel's neighbourhood, weighted by distance and by likeness; each pair of pixels is weighed once.

//@ scratch part: f32[ceil_div(H, 32) * 32 * W]
//@ launch bilateral_filter<<<(ceil_div(max(W - 2048, 0), 2032) + 1, ceil_div(H, 32)), 512, 219776>>>(in, out, part, near, alike, H, W, R)
//@ launch join_bands<<<(ceil_div(W, 256), ceil_div(H, 32)), 256>>>(part, out, alike, H, W, R)

#define SPAN 2048
#define STEP 2032
#define VROW 2064
#define BAND 32
#define LOG2E 1.4426950408889634f

__device__ __forceinline__ bool fast_case(float alike, int R) {
  return R == 8 && alike > 1e-30f && alike < 1e30f;
}

__device__ __forceinline__ float power_of_two(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

// Adds what the neighbouring warps found for the outer lanes' pixels of a row.
__device__ __forceinline__ void add_edge(float* acc_s, float* acc_w, const float4* e) {
  float4 s = *reinterpret_cast<float4*>(acc_s);
  float4 w = *reinterpret_cast<float4*>(acc_w);
  float4 es = e[0];
  float4 ew = e[1];
  s.x += es.x; s.y += es.y; s.z += es.z; s.w += es.w;
  w.x += ew.x; w.y += ew.y; w.z += ew.z; w.w += ew.w;
  *reinterpret_cast<float4*>(acc_s) = s;
  *reinterpret_cast<float4*>(acc_w) = w;
}

__device__ __forceinline__ void add_edges(float* acc_s, float* acc_w, const float4* edge, int row,
                                          int t, int lane, int warp) {
  float* as = acc_s + (row & 7) * SPAN + 4 * t;
  float* aw = acc_w + (row & 7) * SPAN + 4 * t;
  const float4* e = edge + (row & 1) * 192;
  if (warp > 0) {
    if (lane == 0) {
      add_edge(as, aw, e + ((warp - 1) * 6 + 3) * 2);
      add_edge(as, aw, e + ((warp - 1) * 6 + 5) * 2);
    }
    if (lane == 1) add_edge(as, aw, e + ((warp - 1) * 6 + 4) * 2);
  }
  if (warp < 15) {
    if (lane == 30) add_edge(as, aw, e + ((warp + 1) * 6 + 0) * 2);
    if (lane == 31) {
      add_edge(as, aw, e + ((warp + 1) * 6 + 1) * 2);
      add_edge(as, aw, e + ((warp + 1) * 6 + 2) * 2);
    }
  }
}

__device__ __forceinline__ void store4(float* row, int x, int low, int high, bool aligned, float4 v) {
  if (aligned && x >= low && x + 3 < high) {
    *reinterpret_cast<float4*>(row + x) = v;
  } else {
    if (x >= low && x < high) row[x] = v.x;
    if (x + 1 >= low && x + 1 < high) row[x + 1] = v.y;
    if (x + 2 >= low && x + 2 < high) row[x + 2] = v.z;
    if (x + 3 >= low && x + 3 < high) row[x + 3] = v.w;
  }
}

// A row to which this block adds no more: to out, or to what the bands share.
__device__ __forceinline__ void finish_row(const float* acc_s, const float* acc_w, int row, int t, float* out,
                                           float* part, float inverse, int x, int low, int high, int band,
                                           int y0, int y1, int W) {
  float4 s = *reinterpret_cast<const float4*>(acc_s + (row & 7) * SPAN + 4 * t);
  float4 w = *reinterpret_cast<const float4*>(acc_w + (row & 7) * SPAN + 4 * t);
  bool aligned = (W & 3) == 0;
  if (row >= y1) {
    float* to = part + (size_t)(((band + 1) * 8 + (row - y1)) * 4 + 2) * W;
    store4(to, x, low, high, aligned, s);
    store4(to + W, x, low, high, aligned, w);
  } else if (band > 0 && row < y0 + 8) {
    float* to = part + (size_t)((band * 8 + (row - y0)) * 4) * W;
    store4(to, x, low, high, aligned, s);
    store4(to + W, x, low, high, aligned, w);
  } else {
    float4 o;
    o.x = s.x / w.x * inverse;
    o.y = s.y / w.y * inverse;
    o.z = s.z / w.z * inverse;
    o.w = s.w / w.w * inverse;
    store4(out + (size_t)row * W, x, low, high, aligned, o);
  }
}

__global__ void __launch_bounds__(512, 1)
bilateral_filter(const float* __restrict__ in, float* out, float* part, float near, float alike,
                 int H, int W, int R) {
  extern __shared__ float4 shared4[];
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int band = blockIdx.y;
  const int y0 = band * BAND;
  const int y1 = min(H, y0 + BAND);
  const int start = blockIdx.x * STEP;
  const int low = blockIdx.x == 0 ? 0 : start + 8;
  const int high = blockIdx.x == gridDim.x - 1 ? W : start + SPAN - 8;

  if (!fast_case(alike, R)) {
    const int width = high - low;
    const int count = width * (y1 - y0);
    for (int p = t; p < count; p += 512) {
      int y = y0 + p / width;
      int x = low + p % width;
      float centre = in[(size_t)y * W + x];
      float sum = 0.0f, weights = 0.0f;
      for (int dy = max(-R, -y); dy <= min(R, H - 1 - y); ++dy) {
        for (int dx = max(-R, -x); dx <= min(R, W - 1 - x); ++dx) {
          float value = in[(size_t)(y + dy) * W + x + dx];
          float difference = value - centre;
          float weight = expf(-near * (float)(dy * dy + dx * dx) - alike * difference * difference);
          sum += weight * value;
          weights += weight;
        }
      }
      out[(size_t)y * W + x] = sum / weights;
    }
    return;
  }

  float* acc_s = reinterpret_cast<float*>(shared4);
  float* acc_w = acc_s + 8 * SPAN;
  float* vals = acc_w + 8 * SPAN;
  float4* edge = reinterpret_cast<float4*>(vals + 10 * VROW);

  const float scale = sqrtf(alike * LOG2E);
  const float inverse = 1.0f / scale;
  const float nl = -near * LOG2E;
  const float beyond = 3.0e38f;  // weighs nothing against any pixel
  const int yend = min(H, y1 + 8);
  const int x = start + 4 * t;

  {
    const float* row = in + (size_t)y0 * W;
#pragma unroll
    for (int k = 0; k < 5; ++k) {
      int c = t + 512 * k;
      int xc = start - 8 + c;
      if (c < VROW) vals[c] = (xc >= 0 && xc < W) ? __ldg(row + xc) * scale : beyond;
    }
  }
  __syncthreads();

  int slot = 0;
  for (int yw = y0; yw < yend; ++yw) {
    // The next row is on its way while this one is computed.
    const bool more = yw + 1 < yend;
    float f[5];
#pragma unroll
    for (int k = 0; k < 5; ++k) {
      int c = t + 512 * k;
      int xc = start - 8 + c;
      f[k] = beyond;
      if (more && c < VROW && xc >= 0 && xc < W) f[k] = __ldg(in + (size_t)(yw + 1) * W + xc);
    }

    if (yw > y0) add_edges(acc_s, acc_w, edge, yw - 1, t, lane, warp);

    float v[20], ws[20], ww[20];
    {
      const float4* from = reinterpret_cast<const float4*>(vals + slot * VROW + 4 * t);
#pragma unroll
      for (int g = 0; g < 5; ++g) {
        float4 q = from[g];
        v[4 * g] = q.x;
        v[4 * g + 1] = q.y;
        v[4 * g + 2] = q.z;
        v[4 * g + 3] = q.w;
      }
    }
#pragma unroll
    for (int i = 0; i < 20; ++i) {
      ws[i] = 0.0f;
      ww[i] = 0.0f;
    }

    if (yw < y1) {
      // The pixel itself, and the pairs within the row.
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        float d = v[q + 8] - v[q + 8];
        float w = power_of_two(-(d * d));
        ws[q + 8] = w * v[q + 8];
        ww[q + 8] = w;
      }
#pragma unroll
      for (int a = 1; a <= 8; ++a) {
        float s = nl * (float)(a * a);
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          float d = v[q + 8 + a] - v[q + 8];
          float w = power_of_two(fmaf(-d, d, s));
          ws[q + 8] = fmaf(w, v[q + 8 + a], ws[q + 8]);
          ww[q + 8] += w;
          ws[q + 8 + a] = fmaf(w, v[q + 8], ws[q + 8 + a]);
          ww[q + 8 + a] += w;
        }
      }
    }

    // The pairs with the rows above.
    const int first = max(y0, yw - 8);
#pragma unroll 1
    for (int yn = min(yw, y1) - 1; yn >= first; --yn) {
      const int dy = yw - yn;
      int vs = slot - dy;
      if (vs < 0) vs += 10;
      float4* as = reinterpret_cast<float4*>(acc_s + (yn & 7) * SPAN + 4 * t);
      float4* aw = reinterpret_cast<float4*>(acc_w + (yn & 7) * SPAN + 4 * t);
      const float4 c4 = *reinterpret_cast<const float4*>(vals + vs * VROW + 4 * t + 8);
      const float4 s4 = *as;
      const float4 w4 = *aw;
      const float c[4] = {c4.x, c4.y, c4.z, c4.w};
      float ns[4] = {s4.x, s4.y, s4.z, s4.w};
      float nw[4] = {w4.x, w4.y, w4.z, w4.w};
      const float base = nl * (float)(dy * dy);
#pragma unroll
      for (int a = 0; a <= 8; ++a) {
        const float s = fmaf(nl, (float)(a * a), base);
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          {
            float d = v[q + 8 + a] - c[q];
            float w = power_of_two(fmaf(-d, d, s));
            ns[q] = fmaf(w, v[q + 8 + a], ns[q]);
            nw[q] += w;
            ws[q + 8 + a] = fmaf(w, c[q], ws[q + 8 + a]);
            ww[q + 8 + a] += w;
          }
          if (a > 0) {
            float d = v[q + 8 - a] - c[q];
            float w = power_of_two(fmaf(-d, d, s));
            ns[q] = fmaf(w, v[q + 8 - a], ns[q]);
            nw[q] += w;
            ws[q + 8 - a] = fmaf(w, c[q], ws[q + 8 - a]);
            ww[q + 8 - a] += w;
          }
        }
      }
      *as = make_float4(ns[0], ns[1], ns[2], ns[3]);
      *aw = make_float4(nw[0], nw[1], nw[2], nw[3]);
    }

    // Outer columns belong to other lanes; those of other warps go through shared memory.
    {
      float4* e = edge + (yw & 1) * 192 + warp * 12;
      if (lane < 2) {
        e[lane * 2] = make_float4(ws[0], ws[1], ws[2], ws[3]);
        e[lane * 2 + 1] = make_float4(ww[0], ww[1], ww[2], ww[3]);
      }
      if (lane == 0) {
        e[4] = make_float4(ws[4], ws[5], ws[6], ws[7]);
        e[5] = make_float4(ww[4], ww[5], ww[6], ww[7]);
      }
      if (lane >= 30) {
        e[(lane - 27) * 2] = make_float4(ws[16], ws[17], ws[18], ws[19]);
        e[(lane - 27) * 2 + 1] = make_float4(ww[16], ww[17], ww[18], ww[19]);
      }
      if (lane == 31) {
        e[10] = make_float4(ws[12], ws[13], ws[14], ws[15]);
        e[11] = make_float4(ww[12], ww[13], ww[14], ww[15]);
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float s0 = __shfl_down_sync(0xffffffffu, ws[i], 2);
      float w0 = __shfl_down_sync(0xffffffffu, ww[i], 2);
      float s1 = __shfl_down_sync(0xffffffffu, ws[4 + i], 1);
      float w1 = __shfl_down_sync(0xffffffffu, ww[4 + i], 1);
      float s3 = __shfl_up_sync(0xffffffffu, ws[12 + i], 1);
      float w3 = __shfl_up_sync(0xffffffffu, ww[12 + i], 1);
      float s4 = __shfl_up_sync(0xffffffffu, ws[16 + i], 2);
      float w4 = __shfl_up_sync(0xffffffffu, ww[16 + i], 2);
      if (lane < 30) {
        ws[8 + i] += s0;
        ww[8 + i] += w0;
      }
      if (lane < 31) {
        ws[8 + i] += s1;
        ww[8 + i] += w1;
      }
      if (lane > 0) {
        ws[8 + i] += s3;
        ww[8 + i] += w3;
      }
      if (lane > 1) {
        ws[8 + i] += s4;
        ww[8 + i] += w4;
      }
    }

    // The row that leaves, and this one in its place.
    if (yw - 8 >= y0)
      finish_row(acc_s, acc_w, yw - 8, t, out, part, inverse, x, low, high, band, y0, y1, W);
    *reinterpret_cast<float4*>(acc_s + (yw & 7) * SPAN + 4 * t) = make_float4(ws[8], ws[9], ws[10], ws[11]);
    *reinterpret_cast<float4*>(acc_w + (yw & 7) * SPAN + 4 * t) = make_float4(ww[8], ww[9], ww[10], ww[11]);

    const int next = slot == 9 ? 0 : slot + 1;
    if (more) {
#pragma unroll
      for (int k = 0; k < 5; ++k) {
        int c = t + 512 * k;
        int xc = start - 8 + c;
        if (c < VROW) vals[next * VROW + c] = (xc >= 0 && xc < W) ? f[k] * scale : beyond;
      }
    }
    slot = next;
    __syncthreads();
  }

  add_edges(acc_s, acc_w, edge, yend - 1, t, lane, warp);
  for (int row = max(y0, yend - 8); row < yend; ++row)
    finish_row(acc_s, acc_w, row, t, out, part, inverse, x, low, high, band, y0, y1, W);
}

// The first 8 rows of each band: what the band found and what the band above found.
__global__ void join_bands(const float* __restrict__ part, float* out, float alike, int H, int W, int R) {
  const int band = blockIdx.y;
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (band == 0 || x >= W || !fast_case(alike, R)) return;
  const float inverse = 1.0f / sqrtf(alike * LOG2E);
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int y = band * BAND + r;
    if (y < H) {
      const float* from = part + (size_t)((band * 8 + r) * 4) * W + x;
      float s = from[0] + from[2 * (size_t)W];
      float w = from[W] + from[3 * (size_t)W];
      out[(size_t)y * W + x] = s / w * inverse;
    }
  }
}
