// Logarithm of the density of a mixture of K normal distributions with diagonal precisions.
// offset - |(x - mean) root|^2 / 2 = base + sum of linear * y + square * y * y, with y = x - center (D == 64, K == 256).

#include <cstdint>

//@ scratch coef: f32[K * D, 4]
//@ scratch base: f32[K]
//@ scratch center: f32[D]
//@ scratch part: f32[2, M, 2]
//@ launch mixture_terms<<<K, 256>>>(mean, root, offset, coef, base, center, K, D)
//@ launch gaussian_mixture<<<132, 384, 132096>>>(x, mean, root, offset, out, coef, base, center, part, M, K, D)
//@ launch mixture_join<<<ceil_div(M, 256), 256>>>(part, out, M, K, D)

__device__ __forceinline__ void gm_split(float v, uint32_t& high, uint32_t& low) {
  high = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(v - __uint_as_float(high));
}

__device__ __forceinline__ float gm_exp(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v * 1.4426950408889634f));
  return r;
}

// The coefficients of one component, in the order in which the tensor cores' operand lies in shared memory.
__global__ void __launch_bounds__(256)
mixture_terms(const float* __restrict__ mean, const float* __restrict__ root, const float* __restrict__ offset,
              float* __restrict__ coef, float* __restrict__ base, float* __restrict__ center, int K, int D) {
  if (D != 64 || K != 256) return;
  __shared__ float sums[4][64];
  __shared__ float mu[64];
  __shared__ float rt[64];
  __shared__ float totals[2];
  const int tid = (int)threadIdx.x;
  const int k = (int)blockIdx.x;
  {
    const int d = tid & 63;
    const int seg = tid >> 6;
    float s = 0.0f;
#pragma unroll 16
    for (int i = 0; i < 64; ++i) s += mean[(i * 4 + seg) * 64 + d];
    sums[seg][d] = s;
  }
  __syncthreads();
  if (tid < 64) {
    const float c = ((sums[0][tid] + sums[1][tid]) + (sums[2][tid] + sums[3][tid])) * (1.0f / 256.0f);
    if (k == 0) center[tid] = c;
    const float m = mean[k * 64 + tid] - c;
    const float r = root[k * 64 + tid];
    mu[tid] = m;
    rt[tid] = r;
    const float t = m * r;
    float q = t * t;
#pragma unroll
    for (int o = 16; o > 0; o /= 2) q += __shfl_xor_sync(0xffffffffu, q, o);
    if ((tid & 31) == 0) totals[tid >> 5] = q;
  }
  __syncthreads();
  if (tid == 0) base[k] = offset[k] - 0.5f * (totals[0] + totals[1]);
  if (tid < 128) {
    const int step = tid >> 3;            // 16 steps of 8: 8 linear ones, 8 square ones
    const int c = tid & 7;
    const int sl = step & 7;
    const int d = 16 * (sl >> 1) + 4 * (c & 3) + 2 * (sl & 1) + (c >> 2);
    const float r2 = rt[d] * rt[d];
    const float v = step < 8 ? r2 * mu[d] : -0.5f * r2;
    uint32_t high, low;
    gm_split(v, high, low);
    const int half = k >> 7;
    const int row = k & 127;
    const int in_atom = (step & 3) * 8 + c;
    const int at = half * 32768 + (step >> 2) * 4096 + row * 32 + (((in_atom >> 2) ^ (row & 7)) << 2) + (in_atom & 3);
    coef[at] = __uint_as_float(high);
    coef[at + 16384] = __uint_as_float(low);
  }
}

#define GM_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])

__device__ __forceinline__ void gm_wgmma(float (&d)[64], const uint32_t (&a)[4], uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
      "%60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1;\n"
      "}\n"
      : GM_D4(0), GM_D4(4), GM_D4(8), GM_D4(12), GM_D4(16), GM_D4(20), GM_D4(24), GM_D4(28),
        GM_D4(32), GM_D4(36), GM_D4(40), GM_D4(44), GM_D4(48), GM_D4(52), GM_D4(56), GM_D4(60)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}

__global__ void __launch_bounds__(384, 1)
gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ root,
                 const float* __restrict__ offset, float* __restrict__ out, const float* __restrict__ coef,
                 const float* __restrict__ base, const float* __restrict__ center, float* __restrict__ part,
                 int M, int K, int D) {
  extern __shared__ unsigned char gm_shared[];
  __shared__ __align__(16) float s_center[64];
  __shared__ __align__(16) float s_base[128];

  const int tid = (int)threadIdx.x;

  if (D != 64 || K != 256) {
    for (int m = (int)blockIdx.x * 384 + tid; m < M; m += (int)gridDim.x * 384) {
      float most = -3.0e38f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float z = (x[m * D + d] - mean[k * D + d]) * root[k * D + d];
          distance += z * z;
        }
        most = fmaxf(most, offset[k] - 0.5f * distance);
      }
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float z = (x[m * D + d] - mean[k * D + d]) * root[k * D + d];
          distance += z * z;
        }
        sum += expf(offset[k] - 0.5f * distance - most);
      }
      out[m] = most + logf(sum);
    }
    return;
  }

  const int half = (int)blockIdx.x & 1;              // which 128 components
  const int pair = (int)blockIdx.x >> 1;
  const int pairs = (int)gridDim.x >> 1;

  const uint32_t raw = (uint32_t)__cvta_generic_to_shared(gm_shared);
  const uint32_t shift = (1024u - (raw & 1023u)) & 1023u;
  const uint32_t b_at = raw + shift;

  // the coefficients of these components, once
  {
    const float4* from = reinterpret_cast<const float4*>(coef + half * 32768);
    float4* to = reinterpret_cast<float4*>(gm_shared + shift);
#pragma unroll 8
    for (int i = tid; i < 8192; i += 384) to[i] = from[i];
    if (tid < 64) s_center[tid] = center[tid];
    if (tid < 128) s_base[tid] = base[half * 128 + tid];
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();

  const int lane = tid & 31;
  const int g = lane >> 2;
  const int tig = lane & 3;
  const int group = tid >> 7;
  const int in_tile = ((tid >> 5) & 3) * 16 + g;     // first row of this lane in a tile of 64, the other is 8 below
  const int tiles = (M + 63) / 64;
  const int stride = pairs * 3;
  const float4* x4 = reinterpret_cast<const float4*>(x);

  const uint64_t fixed = (uint64_t(1) << 62) | (uint64_t(64) << 32) | (uint64_t(1) << 16);
  const uint64_t b_high = fixed | (uint64_t)((b_at & 0x3ffffu) >> 4);
  const uint64_t b_low = b_high + (65536 >> 4);

  float acc[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) acc[i] = 0.0f;

  int tile = pair * 3 + group;
  float4 xv[4][2];
  {
    const int m0 = min(tile * 64 + in_tile, M - 1);
    const int m1 = min(tile * 64 + in_tile + 8, M - 1);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      xv[q][0] = x4[(size_t)m0 * 16 + q * 4 + tig];
      xv[q][1] = x4[(size_t)m1 * 16 + q * 4 + tig];
    }
  }

#pragma unroll 1
  for (; tile < tiles; tile += stride) {
    const int next = tile + stride;
    const int m0 = min(next * 64 + in_tile, M - 1);
    const int m1 = min(next * 64 + in_tile + 8, M - 1);
    const float4* next0 = x4 + (size_t)m0 * 16 + tig;
    const float4* next1 = x4 + (size_t)m1 * 16 + tig;

#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float4 c = *reinterpret_cast<const float4*>(&s_center[q * 16 + tig * 4]);
      const float ya[4] = {xv[q][0].x - c.x, xv[q][0].y - c.y, xv[q][0].z - c.z, xv[q][0].w - c.w};
      const float yb[4] = {xv[q][1].x - c.x, xv[q][1].y - c.y, xv[q][1].z - c.z, xv[q][1].w - c.w};
      xv[q][0] = next0[q * 4];
      xv[q][1] = next1[q * 4];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int s = q * 2 + h;
        // all but the latest group are done: their operands are free
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        const float e0 = ya[h * 2];
        const float e1 = yb[h * 2];
        const float e2 = ya[h * 2 + 1];
        const float e3 = yb[h * 2 + 1];
        uint32_t lh[4], ll[4], qh[4], ql[4];
        gm_split(e0, lh[0], ll[0]);
        gm_split(e1, lh[1], ll[1]);
        gm_split(e2, lh[2], ll[2]);
        gm_split(e3, lh[3], ll[3]);
        gm_split(e0 * e0, qh[0], ql[0]);
        gm_split(e1 * e1, qh[1], ql[1]);
        gm_split(e2 * e2, qh[2], ql[2]);
        gm_split(e3 * e3, qh[3], ql[3]);
        const uint64_t linear = (uint64_t)(((s >> 2) * 16384 + (s & 3) * 32) >> 4);
        const uint64_t square = linear + (32768 >> 4);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        gm_wgmma(acc, ll, b_high + linear, s > 0 ? 1 : 0);
        gm_wgmma(acc, lh, b_low + linear, 1);
        gm_wgmma(acc, ql, b_high + square, 1);
        gm_wgmma(acc, qh, b_low + square, 1);
        gm_wgmma(acc, lh, b_high + linear, 1);
        gm_wgmma(acc, qh, b_high + square, 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc[i])::"memory");

    float most0 = -3.0e38f, most1 = -3.0e38f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const float2 b = *reinterpret_cast<const float2*>(&s_base[j * 8 + tig * 2]);
      acc[j * 4] += b.x;
      acc[j * 4 + 1] += b.y;
      acc[j * 4 + 2] += b.x;
      acc[j * 4 + 3] += b.y;
      most0 = fmaxf(most0, fmaxf(acc[j * 4], acc[j * 4 + 1]));
      most1 = fmaxf(most1, fmaxf(acc[j * 4 + 2], acc[j * 4 + 3]));
    }
    most0 = fmaxf(most0, __shfl_xor_sync(0xffffffffu, most0, 1));
    most1 = fmaxf(most1, __shfl_xor_sync(0xffffffffu, most1, 1));
    most0 = fmaxf(most0, __shfl_xor_sync(0xffffffffu, most0, 2));
    most1 = fmaxf(most1, __shfl_xor_sync(0xffffffffu, most1, 2));
    float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      sum0 += gm_exp(acc[j * 4] - most0);
      sum1 += gm_exp(acc[j * 4 + 1] - most0);
      sum2 += gm_exp(acc[j * 4 + 2] - most1);
      sum3 += gm_exp(acc[j * 4 + 3] - most1);
    }
    sum0 += sum1;
    sum2 += sum3;
    sum0 += __shfl_xor_sync(0xffffffffu, sum0, 1);
    sum2 += __shfl_xor_sync(0xffffffffu, sum2, 1);
    sum0 += __shfl_xor_sync(0xffffffffu, sum0, 2);
    sum2 += __shfl_xor_sync(0xffffffffu, sum2, 2);
    if (tig == 0) {
      float2* to = reinterpret_cast<float2*>(part) + (size_t)half * M;
      const int m = tile * 64 + in_tile;
      if (m < M) to[m] = make_float2(most0, sum0);
      if (m + 8 < M) to[m + 8] = make_float2(most1, sum2);
    }
    __syncwarp();
  }
}

__global__ void __launch_bounds__(256) mixture_join(const float* __restrict__ part, float* __restrict__ out, int M, int K, int D) {
  if (D != 64 || K != 256) return;
  const int m = (int)blockIdx.x * 256 + (int)threadIdx.x;
  if (m >= M) return;
  const float2* from = reinterpret_cast<const float2*>(part);
  const float2 a = from[m];
  const float2 b = from[(size_t)M + m];
  const float most = fmaxf(a.x, b.x);
  const float sum = a.y * expf(a.x - most) + b.y * expf(b.x - most);
  out[m] = most + logf(sum);
}
