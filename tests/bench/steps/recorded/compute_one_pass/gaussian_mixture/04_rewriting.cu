// Logarithm of the density of a mixture of K normal distributions with diagonal precisions: tiles of 128 points against
// all components, which stay in shared memory.

//@ launch gaussian_mixture<<<132, 512, 222208>>>(x, mean, root, offset, out, M, K, D)

#define POINTS 128
#define X_PITCH 68
#define P_PITCH 132
#define X_TILE (POINTS * X_PITCH)

__device__ __forceinline__ float exponential(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v * 1.4426950408889634f));
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
  for (int c = 0; c < 8; ++c) sum = fmaf(v[c].y, exponential(v[c].x - most), sum);
  out[m] = most + logf(sum);
}

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

  float* par = reinterpret_cast<float*>(shared4);           // [256][P_PITCH]: root, -mean * root
  float* xs = par + 256 * P_PITCH;                          // [2][POINTS][X_PITCH]
  float2* red = reinterpret_cast<float2*>(xs + 2 * X_TILE);  // [2][8][POINTS]: maximum, sum
  float* off = reinterpret_cast<float*>(red + 2 * 8 * POINTS);
  const unsigned xs_at = (unsigned)__cvta_generic_to_shared(xs);

  const int tiles = (M + POINTS - 1) / POINTS;
  const int quads = (D + 3) / 4;
  const bool whole = (D & 3) == 0;

  auto bring = [&](int tile, int buffer) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int p = (t >> 4) + 32 * i;
      const int d = 4 * (t & 15);
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

  int tile = blockIdx.x;
  if (tile >= tiles) return;
  bring(tile, 0);

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
  if (t < 256) off[t] = t < K ? offset[t] : 0.0f;

  const int lane = t & 31;
  const int warp = t >> 5;
  const int pg = lane & 7;
  const int cg = lane >> 3;
  const int pw = warp & 1;
  const int cw = warp >> 1;
  const int point0 = pw * 64 + pg;
  const int comp0 = cw * 32 + cg;

  int buffer = 0;
  int before = -1;
  for (; tile < tiles; tile += gridDim.x) {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    if (tile + (int)gridDim.x < tiles) bring(tile + gridDim.x, buffer ^ 1);
    if (before >= 0 && t < POINTS) finish(red + (buffer ^ 1) * 8 * POINTS + t, out, before * POINTS + t, M);

    float acc[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

    const float* xp = xs + buffer * X_TILE + point0 * X_PITCH;
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

    // Logarithms of the terms; what is no component adds nothing.
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float o = off[comp0 + 4 * j];
#pragma unroll
      for (int i = 0; i < 8; ++i) acc[i][j] = fmaf(-0.5f, acc[i][j], o);
    }
    if (K < 256) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (comp0 + 4 * j >= K) {
#pragma unroll
          for (int i = 0; i < 8; ++i) acc[i][j] = -INFINITY;
        }
      }
    }

    float2* to = red + buffer * 8 * POINTS + cw * POINTS + point0;
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
      for (int j = 0; j < 8; ++j) s += exponential(acc[i][j] - most[i]);
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

  __syncthreads();
  if (t < POINTS) finish(red + (buffer ^ 1) * 8 * POINTS + t, out, before * POINTS + t, M);
}
