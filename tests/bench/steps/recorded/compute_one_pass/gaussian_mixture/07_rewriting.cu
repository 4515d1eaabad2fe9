// Logarithm of the density of a mixture of K normal distributions with diagonal precisions.
// A group of 128 threads takes 32 points and up to 256 components at a time, 8 x 8 for each thread.

//@ launch gaussian_mixture<<<132, 512, 216064>>>(x, mean, root, offset, out, M, K, D)

#define GM_KPITCH 260
#define GM_XPITCH 36
#define GM_XTILE (64 * GM_XPITCH)
#define GM_LOG2E 1.4426950408889634f
#define GM_LN2 0.6931471805599453f
#define GM_HALF_ROOT 0.8493218002880190f  // sqrt(0.5 * log2(e))

__device__ __forceinline__ float gm_exp2(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__device__ __forceinline__ void gm_copy4(unsigned dst, const float* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(dst), "l"(src) : "memory");
}

__global__ void __launch_bounds__(512, 1)
gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ root,
                 const float* __restrict__ offset, float* __restrict__ out, int M, int K, int D) {
  extern __shared__ __align__(16) float gm_shared[];

  const int tid = threadIdx.x;

  if (K > 256 || D > 64) {
    // more components or dimensions than fit
    for (int m = blockIdx.x * 512 + tid; m < M; m += gridDim.x * 512) {
      float most = -3.0e38f, sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float z = (x[(size_t)m * D + d] - mean[(size_t)k * D + d]) * root[(size_t)k * D + d];
          distance += z * z;
        }
        const float v = offset[k] - 0.5f * distance;
        const float higher = fmaxf(most, v);
        sum = sum * expf(most - higher) + expf(v - higher);
        most = higher;
      }
      out[m] = most + logf(sum);
    }
    return;
  }

  float* sR = gm_shared;                       // [64][260]
  float* sC = sR + 64 * GM_KPITCH;             // [64][260]
  float* sX = sC + 64 * GM_KPITCH;             // [4 groups][2][64][36]
  float* sOff = sX + 8 * GM_XTILE;             // [256]
  float2* sRed = reinterpret_cast<float2*>(sOff + 256);  // [2][4 groups][4 warps][32]

  const int lane = tid & 31;
  const int group = tid >> 7;
  const int w = (tid >> 5) & 3;

  const int tiles = (M + 31) / 32;
  const int step = gridDim.x * 4;
  int tile = blockIdx.x + gridDim.x * group;

  // ---- asynchronous, transposing copy of a tile of points
  float* xg = sX + group * (2 * GM_XTILE);
  const unsigned xg_address = (unsigned)__cvta_generic_to_shared(xg);
  const int copy_m = w * 8 + (lane >> 3);
  const int copy_d = lane & 7;
  auto bring = [&](int which, int buffer) {
    const unsigned to = xg_address + (unsigned)((buffer * GM_XTILE + copy_d * GM_XPITCH + copy_m) * 4);
    const int m = which * 32 + copy_m;
    const float* from = x + (size_t)m * D + copy_d;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (m + h * 4 < M) {
        const float* s = from + (size_t)(h * 4) * D;
#pragma unroll
        for (int b = 0; b < 8; ++b) {
          if (b * 8 + copy_d < D) gm_copy4(to + (unsigned)((b * 8 * GM_XPITCH + h * 4) * 4), s + b * 8);
        }
      }
    }
  };

  if (tile < tiles) bring(tile, 0);

  // ---- components, once for each block
  {
    const int warp = tid >> 5;
    for (int q = warp; q < 64; q += 16) {
      const int k = q * 4 + (lane >> 3);
#pragma unroll
      for (int b = 0; b < 8; ++b) {
        const int d = b * 8 + (lane & 7);
        if (d < D) {
          float r = 0.0f, c = 0.0f;
          if (k < K) {
            r = root[k * D + d] * GM_HALF_ROOT;
            c = -(mean[k * D + d] * r);
          }
          sR[d * GM_KPITCH + k] = r;
          sC[d * GM_KPITCH + k] = c;
        }
      }
    }
    if (tid < 256) sOff[tid] = tid < K ? offset[tid] * GM_LOG2E : __int_as_float(0xff800000);
  }
  __syncthreads();

  // ---- which points and components of a tile this thread takes
  const int p = (lane & 1) | ((lane >> 1) & 2);          // 0..3: points 4 p .. and 16 + 4 p ..
  const int kg = ((lane >> 1) & 1) | ((lane >> 2) & 6);  // 0..7: components 64 w + 4 kg .. and 32 further
  const int k0 = w * 64 + kg * 4;

  auto finish = [&](int which, int parity) {
    const int m = which * 32 + lane;
    const float2* red = sRed + (parity * 4 + group) * 128 + lane;
    const float2 a = red[0], b = red[32], c = red[64], d = red[96];
    const float most = fmaxf(fmaxf(a.x, b.x), fmaxf(c.x, d.x));
    const float sum = (a.y * gm_exp2(a.x - most) + b.y * gm_exp2(b.x - most)) +
                      (c.y * gm_exp2(c.x - most) + d.y * gm_exp2(d.x - most));
    if (m < M) out[m] = (most + log2f(sum)) * GM_LN2;
  };

  int it = 0;
  for (; tile < tiles; tile += step, ++it) {
    asm volatile("cp.async.wait_all;\n" ::: "memory");
    asm volatile("bar.sync %0, 128;\n" ::"r"(group + 1) : "memory");
    if (tile + step < tiles) bring(tile + step, (it + 1) & 1);
    if (it > 0 && w == ((it - 1) & 3)) finish(tile - step, (it - 1) & 1);

    float acc[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;
    }

    const float* xs = xg + (it & 1) * GM_XTILE + p * 4;
    const float* rs = sR + k0;
#pragma unroll 4
    for (int d = 0; d < D; ++d) {
      const float4 xa = *reinterpret_cast<const float4*>(xs);
      const float4 xb = *reinterpret_cast<const float4*>(xs + 16);
      const float4 ra = *reinterpret_cast<const float4*>(rs);
      const float4 rb = *reinterpret_cast<const float4*>(rs + 32);
      const float4 ca = *reinterpret_cast<const float4*>(rs + 64 * GM_KPITCH);
      const float4 cb = *reinterpret_cast<const float4*>(rs + 64 * GM_KPITCH + 32);
      xs += GM_XPITCH;
      rs += GM_KPITCH;
      const float xv[8] = {xa.x, xa.y, xa.z, xa.w, xb.x, xb.y, xb.z, xb.w};
      const float rv[8] = {ra.x, ra.y, ra.z, ra.w, rb.x, rb.y, rb.z, rb.w};
      const float cv[8] = {ca.x, ca.y, ca.z, ca.w, cb.x, cb.y, cb.z, cb.w};
#pragma unroll
      for (int j = 0; j < 8; ++j) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float z = fmaf(xv[i], rv[j], cv[j]);
          acc[i][j] = fmaf(z, z, acc[i][j]);
        }
      }
    }

    // logarithms to the base 2 of the terms, their maximum and the sum relative to it
    const float4 oa = *reinterpret_cast<const float4*>(sOff + k0);
    const float4 ob = *reinterpret_cast<const float4*>(sOff + k0 + 32);
    const float ov[8] = {oa.x, oa.y, oa.z, oa.w, ob.x, ob.y, ob.z, ob.w};
    float2* red = sRed + ((it & 1) * 4 + group) * 128 + w * 32;
    const bool writes = (lane & 26) == 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float most = -3.0e38f;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        acc[i][j] = ov[j] - acc[i][j];
        most = fmaxf(most, acc[i][j]);
      }
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 8));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 16));
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < 8; ++j) sum += gm_exp2(acc[i][j] - most);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      sum += __shfl_xor_sync(0xffffffffu, sum, 8);
      sum += __shfl_xor_sync(0xffffffffu, sum, 16);
      if (writes) red[(i & 3) + (i >> 2) * 16 + p * 4] = make_float2(most, sum);
    }
  }

  if (it > 0) {
    asm volatile("bar.sync %0, 128;\n" ::"r"(group + 1) : "memory");
    if (w == ((it - 1) & 3)) finish(tile - step, (it - 1) & 1);
  }
}
