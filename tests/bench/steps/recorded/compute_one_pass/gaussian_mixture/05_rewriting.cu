// Logarithm of the density of a mixture of K normal distributions with diagonal precisions: tiles of 64 points against
// all components, which stay in shared memory. The two halves of a block work on tiles of their own.

#define POINTS 64
#define X_PITCH 68
#define P_PITCH 132
#define X_TILE (POINTS * X_PITCH)

__device__ __forceinline__ float power_of_two(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__device__ __forceinline__ void copy16(unsigned to, const float* from, bool valid) {
  int size = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
}

__device__ __forceinline__ void copy4(unsigned to, const float* from, bool valid) {
  int size = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
}

// Waits for the 256 threads of one half of the block.
__device__ __forceinline__ void group_sync(int group) {
  asm volatile("bar.sync %0, 256;" ::"r"(group + 1) : "memory");
}

// Combines what the 8 warps along the components found for one point.
__device__ __forceinline__ void finish(const float2* found, float* out, int m, int M) {
  if (m >= M) return;
  float2 v[8];
  float most = -3.0e38f;
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    v[c] = found[c * POINTS];
    most = fmaxf(most, v[c].x);
  }
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < 8; ++c) sum = fmaf(v[c].y, power_of_two(v[c].x - most), sum);
  out[m] = (most + log2f(sum)) * 0.6931471805599453f;
}

//@ launch gaussian_mixture<<<132, 512, 222208>>>(x, mean, root, offset, out, M, K, D)
__global__ void __launch_bounds__(512, 1)
gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ root,
                 const float* __restrict__ offset, float* out, int M, int K, int D) {
  extern __shared__ float4 shared4[];
  const int t = threadIdx.x;

  if (D > 64 || K > 256) {
    for (int m = blockIdx.x * blockDim.x + t; m < M; m += gridDim.x * blockDim.x) {
      const float* point = x + (size_t)m * D;
      float most = -3.0e38f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          float z = (point[d] - mean[(size_t)k * D + d]) * root[(size_t)k * D + d];
          distance += z * z;
        }
        most = fmaxf(most, offset[k] - 0.5f * distance);
      }
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          float z = (point[d] - mean[(size_t)k * D + d]) * root[(size_t)k * D + d];
          distance += z * z;
        }
        sum += expf(offset[k] - 0.5f * distance - most);
      }
      out[m] = most + logf(sum);
    }
    return;
  }

  const int lane = t & 31;
  const int warp = t >> 5;
  const int group = warp >> 3;  // half of the block
  const int cw = warp & 7;
  const int tg = t & 255;

  float* par = reinterpret_cast<float*>(shared4);           // [256][P_PITCH]: root, -mean * root
  float* xs_all = par + 256 * P_PITCH;                      // [2 groups][2][POINTS][X_PITCH]
  float2* red_all = reinterpret_cast<float2*>(xs_all + 4 * X_TILE);  // [2 groups][2][8][POINTS]: maximum, sum
  float* off = reinterpret_cast<float*>(red_all + 4 * 8 * POINTS);
  float* xs = xs_all + group * 2 * X_TILE;
  float2* red = red_all + group * 2 * 8 * POINTS;
  const unsigned xs_at = (unsigned)__cvta_generic_to_shared(xs);

  const int tiles = (M + POINTS - 1) / POINTS;
  const int quads = (D + 3) / 4;
  const bool whole = (D & 3) == 0;

  auto bring = [&](int tile, int buffer) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int p = (tg >> 4) + 16 * i;
      const int d = 4 * (tg & 15);
      const int m = tile * POINTS + p;
      const unsigned to = xs_at + (unsigned)(buffer * X_TILE + p * X_PITCH + d) * 4u;
      const float* from = x + (size_t)m * D + d;
      if (whole) {
        const bool valid = m < M && d < D;
        copy16(to, valid ? from : x, valid);
      } else {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const bool valid = m < M && d + q < D;
          copy4(to + 4 * q, valid ? from + q : x, valid);
        }
      }
    }
  };

  if ((int)blockIdx.x >= tiles) return;  // neither half has a tile
  const int step = 2 * (int)gridDim.x;
  int tile = group * (int)gridDim.x + (int)blockIdx.x;
  if (tile < tiles) bring(tile, 0);

#pragma unroll 4
  for (int i = t; i < 256 * 64; i += 512) {
    const int k = i >> 6;
    const int d = i & 63;
    float r = 0.0f, c = 0.0f;
    if (k < K && d < D) {
      r = root[(size_t)k * D + d];
      c = -(mean[(size_t)k * D + d] * r);
    }
    *reinterpret_cast<float2*>(par + k * P_PITCH + 2 * d) = make_float2(r, c);
  }
  if (t < 256) off[t] = t < K ? offset[t] * 1.4426950408889634f : 0.0f;
  __syncthreads();

  if (tile >= tiles) return;  // from here on the halves meet only among themselves
  if (group == 1) __nanosleep(2000);  // keeps the halves out of step

  const int pg = lane & 7;
  const int cg = lane >> 3;
  const int comp0 = cw * 32 + cg;
  const int last = tg - 64 * group;  // the point that this thread finishes, if 0 to 63

  int buffer = 0;
  int before = -1;
  for (; tile < tiles; tile += step) {
    asm volatile("cp.async.wait_all;" ::: "memory");
    group_sync(group);
    if (tile + step < tiles) bring(tile + step, buffer ^ 1);
    if (before >= 0 && last >= 0 && last < POINTS) {
      finish(red + (buffer ^ 1) * 8 * POINTS + last, out, before * POINTS + last, M);
    }

    float acc[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

    const float* xp = xs + buffer * X_TILE + pg * X_PITCH;
    const float* pp = par + comp0 * P_PITCH;
#pragma unroll 1
    for (int q = 0; q < quads; ++q) {
      float4 xv[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) xv[i] = *reinterpret_cast<const float4*>(xp + i * 8 * X_PITCH);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float4 a = *reinterpret_cast<const float4*>(pp + j * 4 * P_PITCH);
        const float4 b = *reinterpret_cast<const float4*>(pp + j * 4 * P_PITCH + 4);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float z = fmaf(xv[i].x, a.x, a.y);
          acc[i][j] = fmaf(z, z, acc[i][j]);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float z = fmaf(xv[i].y, a.z, a.w);
          acc[i][j] = fmaf(z, z, acc[i][j]);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float z = fmaf(xv[i].z, b.x, b.y);
          acc[i][j] = fmaf(z, z, acc[i][j]);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float z = fmaf(xv[i].w, b.z, b.w);
          acc[i][j] = fmaf(z, z, acc[i][j]);
        }
      }
      xp += 4;
      pp += 8;
    }

    // Logarithms of the terms to base 2; what is no component adds nothing.
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float o = off[comp0 + 4 * j];
#pragma unroll
      for (int i = 0; i < 8; ++i) acc[i][j] = fmaf(-0.72134752044448170f, acc[i][j], o);
    }
    if (K < 256) {
      const float nothing = __int_as_float((int)0xff800000u);  // minus infinity
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (comp0 + 4 * j >= K) {
#pragma unroll
          for (int i = 0; i < 8; ++i) acc[i][j] = nothing;
        }
      }
    }

    float2* to = red + buffer * 8 * POINTS + cw * POINTS + pg;
    float most[8], sum[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float m = -3.0e38f;
#pragma unroll
      for (int j = 0; j < 8; ++j) m = fmaxf(m, acc[i][j]);
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 8));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 16));
      most[i] = m;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float s = 0.0f;
#pragma unroll
      for (int j = 0; j < 8; ++j) s += power_of_two(acc[i][j] - most[i]);
      s += __shfl_xor_sync(0xffffffffu, s, 8);
      s += __shfl_xor_sync(0xffffffffu, s, 16);
      sum[i] = s;
    }
    if (cg == 0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) to[8 * i] = make_float2(most[i], sum[i]);
    }

    before = tile;
    buffer ^= 1;
  }

  group_sync(group);
  if (last >= 0 && last < POINTS) {
    finish(red + (buffer ^ 1) * 8 * POINTS + last, out, before * POINTS + last, M);
  }
}
