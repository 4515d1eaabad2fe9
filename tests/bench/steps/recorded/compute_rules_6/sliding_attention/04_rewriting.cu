// Attention of each position to itself and to the W - 1 positions before it. A block takes 64 queries of a head,
// a warp 16 of them; keys and values come in tiles of 32.

//@ launch sliding_attention<<<(H, ceil_div(T, 64)), 128, 56832>>>(q, k, v, out, H, T, D, W)
#include <cstdint>

#define K_PITCH 80
#define V_PITCH 68
#define STAGE_FLOATS (32 * K_PITCH + 32 * V_PITCH)

__device__ __forceinline__ void copy_16(float* to, const float* from, bool inside) {
  const unsigned address = (unsigned)__cvta_generic_to_shared(to);
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void bring(float* stage, const float* __restrict__ k, const float* __restrict__ v,
                                      int s0, int T) {
  const int chunk = (threadIdx.x & 15) * 4;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int key = (threadIdx.x >> 4) + j * 8;
    const bool inside = s0 + key < T;
    const size_t at = inside ? (size_t)(s0 + key) * 64 + chunk : 0;
    copy_16(stage + key * K_PITCH + chunk, k + at, inside);
    copy_16(stage + 32 * K_PITCH + key * V_PITCH + chunk, v + at, inside);
  }
}

__device__ __forceinline__ float exp2_of(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

__device__ __forceinline__ void split(float x, uint32_t& hi, uint32_t& lo) {
  hi = __float_as_uint(x) & 0xffffe000u;
  lo = __float_as_uint(x - __uint_as_float(hi));
}

__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c[n] += a * b[n] for four tiles, in three products of the parts
__device__ __forceinline__ void multiply_4(float (&c)[4][4], const uint32_t (&a_hi)[4], const uint32_t (&a_lo)[4],
                                           const uint32_t (&b0_hi)[4], const uint32_t (&b0_lo)[4],
                                           const uint32_t (&b1_hi)[4], const uint32_t (&b1_lo)[4]) {
#pragma unroll
  for (int n = 0; n < 4; ++n) multiply(c[n], a_lo, b0_hi[n], b1_hi[n]);
#pragma unroll
  for (int n = 0; n < 4; ++n) multiply(c[n], a_hi, b0_lo[n], b1_lo[n]);
#pragma unroll
  for (int n = 0; n < 4; ++n) multiply(c[n], a_hi, b0_hi[n], b1_hi[n]);
}

__global__ void __launch_bounds__(128, 3)
sliding_attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                  float* __restrict__ out, int H, int T, int D, int W) {
  extern __shared__ __align__(16) float shared[];
  const int head = blockIdx.x;
  const int t0 = (int)(gridDim.y - 1 - blockIdx.y) * 64;  // the short ones at the beginning come last
  const size_t base = (size_t)head * T * D;

  if (D != 64) {
    const int t = t0 + threadIdx.x;
    if (threadIdx.x < 64 && t < T) {
      const float* own = q + base + (size_t)t * D;
      float* to = out + base + (size_t)t * D;
      const int first = t - W + 1 < 0 ? 0 : t - W + 1;
      const float scale = rsqrtf((float)D);
      float most = -3.0e38f;
      for (int s = first; s <= t; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += own[d] * k[base + (size_t)s * D + d];
        most = fmaxf(most, dot * scale);
      }
      float sum = 0.0f;
      for (int d = 0; d < D; ++d) to[d] = 0.0f;
      for (int s = first; s <= t; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += own[d] * k[base + (size_t)s * D + d];
        const float weight = expf(dot * scale - most);
        sum += weight;
        for (int d = 0; d < D; ++d) to[d] += weight * v[base + (size_t)s * D + d];
      }
      for (int d = 0; d < D; ++d) to[d] /= sum;
    }
    return;
  }

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int g = lane >> 2;
  const int t = lane & 3;
  const float* keys = k + base;
  const float* values = v + base;

  const int begin = max(0, t0 - W + 1) & ~31;
  const int last = min(t0 + 63, T - 1);
  const int tiles = (last - begin) / 32 + 1;

  bring(shared, keys, values, begin, T);
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (tiles > 1) bring(shared + STAGE_FLOATS, keys, values, begin + 32, T);
  asm volatile("cp.async.commit_group;" ::: "memory");

  const int r0 = t0 + warp * 16;
  const int row_a = r0 + g;
  const int row_b = r0 + g + 8;

  // features 16 i + 4 t .. + 3 of both rows
  float4 qa[4], qb[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    qa[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    qb[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row_a < T) qa[i] = *reinterpret_cast<const float4*>(q + base + (size_t)row_a * 64 + i * 16 + t * 4);
    if (row_b < T) qb[i] = *reinterpret_cast<const float4*>(q + base + (size_t)row_b * 64 + i * 16 + t * 4);
  }

  const float factor = rsqrtf((float)D) * 1.4426950408889634f;
  float most_a = -3.0e38f, most_b = -3.0e38f;
  float sum_a = 0.0f, sum_b = 0.0f;
  float o[2][4][4];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) o[h][j][c] = 0.0f;
    }
  }

  int present = 0;
  int next = 2;
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    if (i + 2 < tiles) bring(shared + next * STAGE_FLOATS, keys, values, begin + (i + 2) * 32, T);
    asm volatile("cp.async.commit_group;" ::: "memory");

    const int s0 = begin + i * 32;
    if (s0 <= r0 + 15 && s0 + 31 >= r0 - W + 1) {
      const float* ks = shared + present * STAGE_FLOATS + g * K_PITCH + t * 4;
      const float* vs = shared + present * STAGE_FLOATS + 32 * K_PITCH + 2 * t * V_PITCH + g * 4;

      float s[4][4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c) s[n][c] = 0.0f;
      }
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        float4 kv[4];
#pragma unroll
        for (int n = 0; n < 4; ++n) kv[n] = *reinterpret_cast<const float4*>(ks + n * 8 * K_PITCH + b * 16);
        uint32_t a_hi[4], a_lo[4], b0_hi[4], b0_lo[4], b1_hi[4], b1_lo[4];
        split(qa[b].x, a_hi[0], a_lo[0]);
        split(qb[b].x, a_hi[1], a_lo[1]);
        split(qa[b].y, a_hi[2], a_lo[2]);
        split(qb[b].y, a_hi[3], a_lo[3]);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          split(kv[n].x, b0_hi[n], b0_lo[n]);
          split(kv[n].y, b1_hi[n], b1_lo[n]);
        }
        multiply_4(s, a_hi, a_lo, b0_hi, b0_lo, b1_hi, b1_lo);
        split(qa[b].z, a_hi[0], a_lo[0]);
        split(qb[b].z, a_hi[1], a_lo[1]);
        split(qa[b].w, a_hi[2], a_lo[2]);
        split(qb[b].w, a_hi[3], a_lo[3]);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          split(kv[n].z, b0_hi[n], b0_lo[n]);
          split(kv[n].w, b1_hi[n], b1_lo[n]);
        }
        multiply_4(s, a_hi, a_lo, b0_hi, b0_lo, b1_hi, b1_lo);
      }

      if (s0 + 31 > r0 || s0 < r0 + 15 - W + 1) {
        const float none = __int_as_float(0xff800000);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const int key = s0 + n * 8 + t * 2 + (c & 1);
            const int row = c < 2 ? row_a : row_b;
            if (key > row || key < row - W + 1) s[n][c] = none;
          }
        }
      }

      float high_a = fmaxf(s[0][0], s[0][1]);
      float high_b = fmaxf(s[0][2], s[0][3]);
#pragma unroll
      for (int n = 1; n < 4; ++n) {
        high_a = fmaxf(high_a, fmaxf(s[n][0], s[n][1]));
        high_b = fmaxf(high_b, fmaxf(s[n][2], s[n][3]));
      }
      high_a = fmaxf(high_a, __shfl_xor_sync(0xffffffffu, high_a, 1));
      high_b = fmaxf(high_b, __shfl_xor_sync(0xffffffffu, high_b, 1));
      high_a = fmaxf(high_a, __shfl_xor_sync(0xffffffffu, high_a, 2));
      high_b = fmaxf(high_b, __shfl_xor_sync(0xffffffffu, high_b, 2));
      const float now_a = fmaxf(most_a, high_a * factor);
      const float now_b = fmaxf(most_b, high_b * factor);
      const float shrink_a = exp2_of(most_a - now_a);
      const float shrink_b = exp2_of(most_b - now_b);
      most_a = now_a;
      most_b = now_b;
      float part_a = 0.0f, part_b = 0.0f;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        s[n][0] = exp2_of(fmaf(s[n][0], factor, -now_a));
        s[n][1] = exp2_of(fmaf(s[n][1], factor, -now_a));
        s[n][2] = exp2_of(fmaf(s[n][2], factor, -now_b));
        s[n][3] = exp2_of(fmaf(s[n][3], factor, -now_b));
        part_a += s[n][0] + s[n][1];
        part_b += s[n][2] + s[n][3];
      }
      sum_a = fmaf(sum_a, shrink_a, part_a);
      sum_b = fmaf(sum_b, shrink_b, part_b);

      // weights times values: place t of a product is key 2 t, place t + 4 key 2 t + 1
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float part[4][4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
          for (int c = 0; c < 4; ++c) part[j][c] = 0.0f;
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float4 va = *reinterpret_cast<const float4*>(vs + n * 8 * V_PITCH + h * 32);
          const float4 vb = *reinterpret_cast<const float4*>(vs + n * 8 * V_PITCH + V_PITCH + h * 32);
          uint32_t a_hi[4], a_lo[4], b0_hi[4], b0_lo[4], b1_hi[4], b1_lo[4];
          split(s[n][0], a_hi[0], a_lo[0]);
          split(s[n][2], a_hi[1], a_lo[1]);
          split(s[n][1], a_hi[2], a_lo[2]);
          split(s[n][3], a_hi[3], a_lo[3]);
          split(va.x, b0_hi[0], b0_lo[0]);
          split(va.y, b0_hi[1], b0_lo[1]);
          split(va.z, b0_hi[2], b0_lo[2]);
          split(va.w, b0_hi[3], b0_lo[3]);
          split(vb.x, b1_hi[0], b1_lo[0]);
          split(vb.y, b1_hi[1], b1_lo[1]);
          split(vb.z, b1_hi[2], b1_lo[2]);
          split(vb.w, b1_hi[3], b1_lo[3]);
          multiply_4(part, a_hi, a_lo, b0_hi, b0_lo, b1_hi, b1_lo);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          o[h][j][0] = fmaf(o[h][j][0], shrink_a, part[j][0]);
          o[h][j][1] = fmaf(o[h][j][1], shrink_a, part[j][1]);
          o[h][j][2] = fmaf(o[h][j][2], shrink_b, part[j][2]);
          o[h][j][3] = fmaf(o[h][j][3], shrink_b, part[j][3]);
        }
      }
    }
    present = present == 2 ? 0 : present + 1;
    next = next == 2 ? 0 : next + 1;
  }

  sum_a += __shfl_xor_sync(0xffffffffu, sum_a, 1);
  sum_b += __shfl_xor_sync(0xffffffffu, sum_b, 1);
  sum_a += __shfl_xor_sync(0xffffffffu, sum_a, 2);
  sum_b += __shfl_xor_sync(0xffffffffu, sum_b, 2);
  const float inverse_a = 1.0f / sum_a;
  const float inverse_b = 1.0f / sum_b;

  // column c of tile (h, j) is feature 32 h + 4 c + j
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int d = h * 32 + (t * 2 + c) * 4;
      if (row_a < T) {
        const float4 r = make_float4(o[h][0][c] * inverse_a, o[h][1][c] * inverse_a, o[h][2][c] * inverse_a,
                                     o[h][3][c] * inverse_a);
        *reinterpret_cast<float4*>(out + base + (size_t)row_a * 64 + d) = r;
      }
      if (row_b < T) {
        const float4 r = make_float4(o[h][0][c + 2] * inverse_b, o[h][1][c + 2] * inverse_b,
                                     o[h][2][c + 2] * inverse_b, o[h][3][c + 2] * inverse_b);
        *reinterpret_cast<float4*>(out + base + (size_t)row_b * 64 + d) = r;
      }
    }
  }
}
