// Logarithm of the density of a mixture of K normal distributions with diagonal precisions, in register tiles of
// 8 points and 8 components.

//@ launch gaussian_mixture<<<132, 512, 218112>>>(x, mean, root, offset, out, M, K, D)
__device__ __forceinline__ void copy16(unsigned to, const float* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ float exp_scaled(float v) {   // e to the v
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v * 1.4426950408889634f));
  return r;
}

__global__ void __launch_bounds__(512, 1) gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ root, const float* __restrict__ offset, float* __restrict__ out, int M, int K, int D) {
  constexpr int DD = 64;          // dimensions of the fast path
  constexpr int KK = 256;         // components it has room for
  constexpr int BM = 128;         // points of a tile
  constexpr int S = DD + 4;       // padded row

  const int t = threadIdx.x;

  if (D != DD || K > KK) {
    for (long long m = (long long)blockIdx.x * blockDim.x + t; m < M; m += (long long)gridDim.x * blockDim.x) {
      float most = -3.0e38f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float z = (x[m * D + d] - mean[(long long)k * D + d]) * root[(long long)k * D + d];
          distance += z * z;
        }
        most = fmaxf(most, offset[k] - 0.5f * distance);
      }
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float z = (x[m * D + d] - mean[(long long)k * D + d]) * root[(long long)k * D + d];
          distance += z * z;
        }
        sum += expf(offset[k] - 0.5f * distance - most);
      }
      out[m] = most + logf(sum);
    }
    return;
  }

  extern __shared__ __align__(16) float memory[];
  float* roots = memory;                       // [KK][S]
  float* shifts = roots + KK * S;              // [KK][S], -mean * root
  float* points = shifts + KK * S;             // [2][BM][S]
  float* offsets = points + 2 * BM * S;        // [KK]
  float* part_most = offsets + KK;             // [2][4][BM]
  float* part_sum = part_most + 2 * 4 * BM;    // [2][4][BM]

  // The block's points, in units of 32.
  const int units = (M + 31) / 32;
  const int u0 = (int)((long long)units * blockIdx.x / gridDim.x);
  const int u1 = (int)((long long)units * (blockIdx.x + 1) / gridDim.x);
  if (u0 >= u1) return;
  const int tiles = (u1 - u0 + 3) / 4;
  const int m_end = min(u1 * 32, M);

  const unsigned points_at = (unsigned)__cvta_generic_to_shared(points);
  auto load = [&](int tile, int buffer) {
    const int part = (t & 15) * 4;
    const int r0 = t >> 4;
    const int m0 = (u0 + tile * 4) * 32 + r0;
    const unsigned to = points_at + 4u * ((buffer * BM + r0) * S + part);
#pragma unroll
    for (int i = 0; i < BM / 32; ++i) {
      const int m = m0 + 32 * i;
      const bool ok = m < m_end;
      copy16(to + 4u * (32 * i * S), ok ? x + (long long)m * DD + part : x, ok ? 16 : 0);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };

  load(0, 0);

  for (int i = t; i < KK * (DD / 4); i += 512) {
    const int k = i / (DD / 4);
    const int d = (i % (DD / 4)) * 4;
    float4 r = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 c = r;
    if (k < K) {
      r = *reinterpret_cast<const float4*>(root + k * DD + d);
      const float4 a = *reinterpret_cast<const float4*>(mean + k * DD + d);
      c = make_float4(-a.x * r.x, -a.y * r.y, -a.z * r.z, -a.w * r.w);
    }
    *reinterpret_cast<float4*>(roots + k * S + d) = r;
    *reinterpret_cast<float4*>(shifts + k * S + d) = c;
  }
  if (t < KK) offsets[t] = t < K ? offset[t] : __int_as_float(0xff800000);

  const int lane = t & 31;
  const int warp = t >> 5;
  const int kg = lane & 7;
  const int mg = lane >> 3;
  const int kc = warp & 3;                     // 64 components of the warp
  const int unit = warp >> 2;                  // 32 points of the warp
  const float* rs = roots + (kc * 64 + kg) * S;
  const float* cs = shifts + (kc * 64 + kg) * S;

  auto finish = [&](int tile) {
    if (t < BM) {
      const int m = (u0 + tile * 4) * 32 + t;
      if (m < m_end) {
        const float* a = part_most + (tile & 1) * 4 * BM + t;
        const float* b = part_sum + (tile & 1) * 4 * BM + t;
        const float a0 = a[0], a1 = a[BM], a2 = a[2 * BM], a3 = a[3 * BM];
        const float most = fmaxf(fmaxf(a0, a1), fmaxf(a2, a3));
        const float sum = b[0] * exp_scaled(a0 - most) + b[BM] * exp_scaled(a1 - most) +
                          b[2 * BM] * exp_scaled(a2 - most) + b[3 * BM] * exp_scaled(a3 - most);
        out[m] = most + logf(sum);
      }
    }
  };

  for (int tile = 0; tile < tiles; ++tile) {
    const int buffer = tile & 1;
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();
    if (tile + 1 < tiles) load(tile + 1, buffer ^ 1);
    if (tile > 0) finish(tile - 1);

    if (u0 + tile * 4 + unit < u1) {
      const float* xs = points + (buffer * BM + unit * 32 + mg) * S;

      float acc[8][8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;
      }

#pragma unroll 1
      for (int d = 0; d < DD; d += 4) {
        float4 xv[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) xv[i] = *reinterpret_cast<const float4*>(xs + 4 * i * S + d);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float4 r = *reinterpret_cast<const float4*>(rs + 8 * j * S + d);
          const float4 c = *reinterpret_cast<const float4*>(cs + 8 * j * S + d);
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const float z = fmaf(xv[i].x, r.x, c.x);
            acc[i][j] = fmaf(z, z, acc[i][j]);
          }
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const float z = fmaf(xv[i].y, r.y, c.y);
            acc[i][j] = fmaf(z, z, acc[i][j]);
          }
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const float z = fmaf(xv[i].z, r.z, c.z);
            acc[i][j] = fmaf(z, z, acc[i][j]);
          }
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const float z = fmaf(xv[i].w, r.w, c.w);
            acc[i][j] = fmaf(z, z, acc[i][j]);
          }
        }
      }

      float off[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) off[j] = offsets[kc * 64 + kg + 8 * j];

      float* to_most = part_most + ((tile & 1) * 4 + kc) * BM + unit * 32 + mg;
      float* to_sum = part_sum + ((tile & 1) * 4 + kc) * BM + unit * 32 + mg;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float most = -3.0e38f;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          acc[i][j] = fmaf(-0.5f, acc[i][j], off[j]);
          most = fmaxf(most, acc[i][j]);
        }
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 4));
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += exp_scaled(acc[i][j] - most);
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        sum += __shfl_xor_sync(0xffffffffu, sum, 4);
        if (kg == 0) {
          to_most[4 * i] = most;
          to_sum[4 * i] = sum;
        }
      }
    }
  }
  __syncthreads();
  finish(tiles - 1);
}
