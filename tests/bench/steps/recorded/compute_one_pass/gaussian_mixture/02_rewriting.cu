// Logarithm of the density of a mixture of K normal distributions with diagonal precisions.
// Fast path (D = 64, K <= 256): a block of 16 x 32 threads computes 128 points x 256 components at a time.

#include <cstdint>

constexpr int GM_D = 64;
constexpr int GM_K = 256;
constexpr int GM_T = 128;  // points of a tile
constexpr float GM_LOG2E = 1.4426950408889634f;

__device__ __forceinline__ float gm_exp2(float v) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
  return y;
}

// The distances of a tile, its partial maxima and sums; meanwhile the points of the next tile go to next_x.
// A thread has the points 4 tm .. 4 tm + 3 and 64 + B tm .. 64 + B tm + B - 1.
template <int B>
__device__ __forceinline__ void gm_tile(const float* __restrict__ x, const float* tile_x, float* next_x,
                                        const float* rs, const float* bs, const float* offs, float2* red,
                                        uint32_t barrier, int next_start, int end) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wk = warp >> 2;
  const int tm = (warp & 3) * 4 + ((lane & 1) | ((lane >> 4) << 1));
  const int tk = wk * 8 + ((lane >> 1) & 7);

  float acc[4 + B][8];
#pragma unroll
  for (int i = 0; i < 4 + B; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

  const bool more = next_start < end;
  const int load_m = (warp & 3) * 32 + lane;
  const bool load_row = next_start + load_m < end;
  const float* load_from = x + (size_t)(load_row ? next_start + load_m : 0) * GM_D + (warp >> 2) * 4;
  float* load_to = next_x + (warp >> 2) * 4 * GM_T + load_m;

#pragma unroll 1
  for (int c = 0; c < 4; ++c) {
    float4 coming = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (load_row) coming = __ldg(reinterpret_cast<const float4*>(load_from + c * 16));

    const float* xp = tile_x + c * 16 * GM_T;
    const float* rp = rs + c * 16 * GM_K + tk * 4;
    const float* bp = bs + c * 16 * GM_K + tk * 4;
#pragma unroll 4
    for (int d = 0; d < 16; ++d) {
      float xv[4 + B], r[8], b[8];
      const float4 x0 = *reinterpret_cast<const float4*>(xp + d * GM_T + tm * 4);
      xv[0] = x0.x;
      xv[1] = x0.y;
      xv[2] = x0.z;
      xv[3] = x0.w;
      if constexpr (B == 4) {
        const float4 x1 = *reinterpret_cast<const float4*>(xp + d * GM_T + 64 + tm * 4);
        xv[4] = x1.x;
        xv[5] = x1.y;
        xv[6] = x1.z;
        xv[7] = x1.w;
      } else {
#pragma unroll
        for (int i = 0; i < B; ++i) xv[4 + i] = xp[d * GM_T + 64 + tm * B + i];
      }
      const float4 r0 = *reinterpret_cast<const float4*>(rp + d * GM_K);
      const float4 r1 = *reinterpret_cast<const float4*>(rp + d * GM_K + 128);
      const float4 b0 = *reinterpret_cast<const float4*>(bp + d * GM_K);
      const float4 b1 = *reinterpret_cast<const float4*>(bp + d * GM_K + 128);
      r[0] = r0.x; r[1] = r0.y; r[2] = r0.z; r[3] = r0.w;
      r[4] = r1.x; r[5] = r1.y; r[6] = r1.z; r[7] = r1.w;
      b[0] = b0.x; b[1] = b0.y; b[2] = b0.z; b[3] = b0.w;
      b[4] = b1.x; b[5] = b1.y; b[6] = b1.z; b[7] = b1.w;
#pragma unroll
      for (int i = 0; i < 4 + B; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float z = fmaf(xv[i], r[j], b[j]);
          acc[i][j] = fmaf(z, z, acc[i][j]);
        }
    }

    if (more) {
      float* to = load_to + c * 16 * GM_T;
      to[0] = coming.x;
      to[GM_T] = coming.y;
      to[2 * GM_T] = coming.z;
      to[3 * GM_T] = coming.w;
    }
  }

  // this thread has read all of this tile, and written its part of the next one
  {
    uint64_t state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
    (void)state;
  }

  const float4 o0 = *reinterpret_cast<const float4*>(offs + tk * 4);
  const float4 o1 = *reinterpret_cast<const float4*>(offs + 128 + tk * 4);
  const float o[8] = {o0.x, o0.y, o0.z, o0.w, o1.x, o1.y, o1.z, o1.w};
#pragma unroll
  for (int i = 0; i < 4 + B; ++i) {
    float most = -2.3e38f;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      acc[i][j] = fmaf(-0.5f, acc[i][j], o[j]);
      most = fmaxf(most, acc[i][j]);
    }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 4));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 8));
    const float shift = -most * GM_LOG2E;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += gm_exp2(fmaf(acc[i][j], GM_LOG2E, shift));
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    sum += __shfl_xor_sync(0xffffffffu, sum, 4);
    sum += __shfl_xor_sync(0xffffffffu, sum, 8);
    if ((lane & 14) == 0) {
      const int row = i < 4 ? tm * 4 + i : 64 + tm * B + (i - 4);
      red[wk * GM_T + row] = make_float2(most, sum);
    }
  }
}

// the results of one tile from the four partial maxima and sums of each point
__device__ __forceinline__ void gm_combine(const float2* red, float* __restrict__ out, int start, int end) {
  const int row = threadIdx.x;
  if (row < GM_T && start + row < end) {
    const float2 a = red[row];
    const float2 b = red[GM_T + row];
    const float2 c = red[2 * GM_T + row];
    const float2 d = red[3 * GM_T + row];
    const float most = fmaxf(fmaxf(a.x, b.x), fmaxf(c.x, d.x));
    const float sum = a.y * gm_exp2((a.x - most) * GM_LOG2E) + b.y * gm_exp2((b.x - most) * GM_LOG2E) +
                      c.y * gm_exp2((c.x - most) * GM_LOG2E) + d.y * gm_exp2((d.x - most) * GM_LOG2E);
    out[start + row] = most + logf(sum);
  }
}

//@ launch gaussian_mixture<<<132, 512, 209920>>>(x, mean, root, offset, out, M, K, D)
__global__ void __launch_bounds__(512, 1)
gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ root,
                 const float* __restrict__ offset, float* __restrict__ out, int M, int K, int D) {
  extern __shared__ float4 gm_shared[];
  __shared__ __align__(8) uint64_t gm_barrier;
  const int tid = threadIdx.x;

  if (D != GM_D || K > GM_K) {
    // any shape: a thread for each point
    const int step = gridDim.x * blockDim.x;
    for (int m = blockIdx.x * blockDim.x + tid; m < M; m += step) {
      float most = -3.0e38f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float z = (x[(size_t)m * D + d] - mean[(size_t)k * D + d]) * root[(size_t)k * D + d];
          distance += z * z;
        }
        most = fmaxf(most, offset[k] - 0.5f * distance);
      }
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float z = (x[(size_t)m * D + d] - mean[(size_t)k * D + d]) * root[(size_t)k * D + d];
          distance += z * z;
        }
        sum += expf(offset[k] - 0.5f * distance - most);
      }
      out[m] = most + logf(sum);
    }
    return;
  }

  const int begin = (int)((long long)M * blockIdx.x / gridDim.x);
  const int end = (int)((long long)M * (blockIdx.x + 1) / gridDim.x);
  if (begin >= end) return;

  float* rs = reinterpret_cast<float*>(gm_shared);  // [64][256] root
  float* bs = rs + GM_D * GM_K;                     // [64][256] -mean * root
  float* xs = bs + GM_D * GM_K;                     // [2][64][128] points
  float* offs = xs + 2 * GM_D * GM_T;               // [256]
  float2* red = reinterpret_cast<float2*>(offs + GM_K);  // [3][4][128]

  const uint32_t barrier = (uint32_t)__cvta_generic_to_shared(&gm_barrier);
  if (tid == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(512) : "memory");

  // the components, transposed
  {
    const int k = tid & 255;
    const int d0 = (tid >> 8) * 32;
#pragma unroll 4
    for (int d = d0; d < d0 + 32; d += 4) {
      float4 r = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      float4 m = r;
      if (k < K) {
        r = __ldg(reinterpret_cast<const float4*>(root + k * GM_D + d));
        m = __ldg(reinterpret_cast<const float4*>(mean + k * GM_D + d));
      }
      rs[d * GM_K + k] = r.x;
      rs[(d + 1) * GM_K + k] = r.y;
      rs[(d + 2) * GM_K + k] = r.z;
      rs[(d + 3) * GM_K + k] = r.w;
      bs[d * GM_K + k] = -m.x * r.x;
      bs[(d + 1) * GM_K + k] = -m.y * r.y;
      bs[(d + 2) * GM_K + k] = -m.z * r.z;
      bs[(d + 3) * GM_K + k] = -m.w * r.w;
    }
    if (tid < GM_K) offs[tid] = tid < K ? offset[tid] : -INFINITY;
  }
  // the first tile of points, transposed
  {
    const int m = tid & 127;
    const int d0 = (tid >> 7) * 16;
#pragma unroll
    for (int d = d0; d < d0 + 16; d += 4) {
      float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (begin + m < end) v = __ldg(reinterpret_cast<const float4*>(x + (size_t)(begin + m) * GM_D + d));
      xs[d * GM_T + m] = v.x;
      xs[(d + 1) * GM_T + m] = v.y;
      xs[(d + 2) * GM_T + m] = v.z;
      xs[(d + 3) * GM_T + m] = v.w;
    }
  }
  __syncthreads();

  int it = 0;
#pragma unroll 1
  for (int start = begin; start < end; start += GM_T, ++it) {
    if (it >= 1) {
      // all threads are through with the distances of the tile before
      const uint32_t parity = (uint32_t)((it - 1) & 1);
      uint32_t done = 0;
      while (!done) {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
      }
      __syncwarp();
    }
    if (it >= 2) gm_combine(red + ((it - 2) % 3) * (4 * GM_T), out, start - 2 * GM_T, end);

    const float* tile_x = xs + (it & 1) * (GM_D * GM_T);
    float* next_x = xs + ((it + 1) & 1) * (GM_D * GM_T);
    float2* tile_red = red + (it % 3) * (4 * GM_T);
    if (end - start > 80) {
      gm_tile<4>(x, tile_x, next_x, rs, bs, offs, tile_red, barrier, start + GM_T, end);
    } else {
      gm_tile<1>(x, tile_x, next_x, rs, bs, offs, tile_red, barrier, start + GM_T, end);
    }
  }
  __syncthreads();
  if (it >= 2) gm_combine(red + ((it - 2) % 3) * (4 * GM_T), out, begin + (it - 2) * GM_T, end);
  gm_combine(red + ((it - 1) % 3) * (4 * GM_T), out, begin + (it - 1) * GM_T, end);
}
