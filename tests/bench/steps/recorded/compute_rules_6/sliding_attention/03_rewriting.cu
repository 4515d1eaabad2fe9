// Attention of each position to itself and to the W - 1 positions before it.
// D = 64: a block of two warpgroups takes 128 queries of a head, and goes through the keys by tiles of 64.

#include <cstdint>
#include <cuda_fp16.h>

constexpr int SA_PART = 64 * 128;         // bytes of 64 rows of 64 f16
constexpr int SA_STAGE = 4 * SA_PART;     // k high, k low, v high, v low
constexpr float SA_SCALE = 64.0f;         // of q, k and v before they are split
constexpr float SA_LIMIT = 1000.0f;       // larger values leave the range of f16
constexpr float SA_SMALL = 0.0009765625f; // rows of smaller results want more bits

#define SA_MINUS_INF (-__int_as_float(0x7f800000))

__device__ __forceinline__ float sa_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// maximum that keeps a NaN
__device__ __forceinline__ float sa_max_nan(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

// two values as the sums of two f16 each
__device__ __forceinline__ void sa_split(float a, float b, uint32_t& hi, uint32_t& lo) {
  const __half2 h = __floats2half2_rn(a, b);
  const float2 f = __half22float2(h);
  const __half2 l = __floats2half2_rn(a - f.x, b - f.y);
  hi = *reinterpret_cast<const uint32_t*>(&h);
  lo = *reinterpret_cast<const uint32_t*>(&l);
}

// rows of 128 bytes, 128-byte swizzle, groups of 8 rows 1024 bytes apart
__device__ __forceinline__ uint64_t sa_desc(uint32_t address) {
  return (uint64_t)((address & 0x3ffffu) >> 4) | ((uint64_t)64 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

#define SA_LIST                              \
  "{%0, %1, %2, %3, %4, %5, %6, %7, "        \
  "%8, %9, %10, %11, %12, %13, %14, %15, "   \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31}"
#define SA_IO4(c, i) c(d[(i)]), c(d[(i) + 1]), c(d[(i) + 2]), c(d[(i) + 3])
#define SA_IO32(c)                                                                                      \
  SA_IO4(c, 0), SA_IO4(c, 4), SA_IO4(c, 8), SA_IO4(c, 12), SA_IO4(c, 16), SA_IO4(c, 20), SA_IO4(c, 24), \
      SA_IO4(c, 28)

// d = a * b, or d += a * b; a in registers; TRANS: b has its k dimension along rows
__device__ __forceinline__ void sa_mma_first(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " SA_LIST
      ", {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
      "}\n"
      : SA_IO32("=f")
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(0));
}
template <int TRANS>
__device__ __forceinline__ void sa_mma(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " SA_LIST
      ", {%32, %33, %34, %35}, %36, p, 1, 1, %38;\n"
      "}\n"
      : SA_IO32("+f")
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1), "n"(TRANS));
}
// the same with a in shared memory
__device__ __forceinline__ void sa_mma_shared(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " SA_LIST
      ", %32, %33, p, 1, 1, 0, 0;\n"
      "}\n"
      : SA_IO32("+f")
      : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ void sa_hold(float (&d)[32]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ void sa_hold_parts(uint32_t (&d)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) asm volatile("" : "+r"(d[i][j])::"memory");
  }
}

// this thread's part of a tile of 64 rows: 8 values of rows (tid >> 3) and (tid >> 3) + 32
__device__ __forceinline__ void sa_load(float4 (&r)[4], const float* __restrict__ from, int s0, int T, bool wanted) {
  const int tid = threadIdx.x;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int s = s0 + (tid >> 3) + 32 * j;
    r[2 * j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    r[2 * j + 1] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (wanted && s < T) {
      const float4* p = reinterpret_cast<const float4*>(from + (size_t)s * 64 + (tid & 7) * 8);
      r[2 * j] = __ldg(p);
      r[2 * j + 1] = __ldg(p + 1);
    }
  }
}

__device__ __forceinline__ void sa_store(const float4 (&r)[4], unsigned char* to, float& largest) {
  const int tid = threadIdx.x;
  unsigned char* at = to + (tid >> 3) * 128 + (((tid & 7) ^ ((tid >> 3) & 7)) << 4);
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const float4 a = r[2 * j], b = r[2 * j + 1];
    largest = sa_max_nan(largest, fabsf(a.x));
    largest = sa_max_nan(largest, fabsf(a.y));
    largest = sa_max_nan(largest, fabsf(a.z));
    largest = sa_max_nan(largest, fabsf(a.w));
    largest = sa_max_nan(largest, fabsf(b.x));
    largest = sa_max_nan(largest, fabsf(b.y));
    largest = sa_max_nan(largest, fabsf(b.z));
    largest = sa_max_nan(largest, fabsf(b.w));
    uint4 hi, lo;
    sa_split(a.x * SA_SCALE, a.y * SA_SCALE, hi.x, lo.x);
    sa_split(a.z * SA_SCALE, a.w * SA_SCALE, hi.y, lo.y);
    sa_split(b.x * SA_SCALE, b.y * SA_SCALE, hi.z, lo.z);
    sa_split(b.z * SA_SCALE, b.w * SA_SCALE, hi.w, lo.w);
    *reinterpret_cast<uint4*>(at + j * 4096) = hi;
    *reinterpret_cast<uint4*>(at + j * 4096 + SA_PART) = lo;
  }
}

//@ launch sliding_attention<<<(ceil_div(T, 128), H), 256, 82944>>>(q, k, v, out, H, T, D, W)
__global__ void __launch_bounds__(256, 2)
sliding_attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* out,
                  int H, int T, int D, int W) {
  extern __shared__ unsigned char sa_shared[];
  const int tid = threadIdx.x;
  const int head = blockIdx.y;
  const int q0 = blockIdx.x * 128;

  if (D != 64) {
    // any D: a thread for each query
    const int t = q0 + tid;
    if (tid < 128 && t < T) {
      const size_t i = (size_t)head * T + t;
      const int first = t - W + 1 < 0 ? 0 : t - W + 1;
      const float scale = rsqrtf((float)D);
      float most = -3.0e38f;
      for (int s = first; s <= t; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[((size_t)head * T + s) * D + d];
        most = fmaxf(most, dot * scale);
      }
      float sum = 0.0f;
      for (int d = 0; d < D; ++d) out[i * D + d] = 0.0f;
      for (int s = first; s <= t; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[((size_t)head * T + s) * D + d];
        const float weight = expf(dot * scale - most);
        sum += weight;
        for (int d = 0; d < D; ++d) out[i * D + d] += weight * v[((size_t)head * T + s) * D + d];
      }
      for (int d = 0; d < D; ++d) out[i * D + d] /= sum;
    }
    return;
  }

  const uint32_t raw = (uint32_t)__cvta_generic_to_shared(sa_shared);
  const uint32_t base = (raw + 1023u) & ~1023u;
  unsigned char* smem = sa_shared + (base - raw);

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int group = warp >> 2;
  const int qw = q0 + group * 64;  // first query of the warpgroup
  const int t0 = q0 + warp * 16 + (lane >> 2);
  const int t1 = t0 + 8;
  const float* kh = k + (size_t)head * T * 64;
  const float* vh = v + (size_t)head * T * 64;

  float largest = 0.0f;  // of all values that this thread has split

  // q: high parts in registers, low parts in shared memory
  uint32_t qa[4][4];
  {
    const float* qh = q + (size_t)head * T * 64;
    unsigned char* qlow = smem + 2 * SA_STAGE;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const int t = (p & 1) ? t1 : t0;
        float2 value = make_float2(0.0f, 0.0f);
        if (t < T)
          value = *reinterpret_cast<const float2*>(qh + (size_t)t * 64 + c * 16 + (p >> 1) * 8 + (lane & 3) * 2);
        largest = sa_max_nan(largest, fabsf(value.x));
        largest = sa_max_nan(largest, fabsf(value.y));
        uint32_t lo;
        sa_split(value.x * SA_SCALE, value.y * SA_SCALE, qa[c][p], lo);
        const int row = t - q0;
        const int chunk = c * 2 + (p >> 1);
        *reinterpret_cast<uint32_t*>(qlow + row * 128 + ((chunk ^ (row & 7)) << 4) + (lane & 3) * 4) = lo;
      }
    }
  }

  const int tile_first = max(0, q0 - W + 1) / 64;
  const int tile_last = min(q0 + 127, T - 1) / 64;

  {
    float4 r[4];
    sa_load(r, kh, tile_first * 64, T, true);
    sa_store(r, smem, largest);
    sa_load(r, vh, tile_first * 64, T, true);
    sa_store(r, smem + 2 * SA_PART, largest);
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();

  float o[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) o[i] = 0.0f;
  float most0 = -1e30f, most1 = -1e30f;  // in units of log 2
  float sum0 = 0.0f, sum1 = 0.0f;
  const float factor = 0.125f * 1.4426950408889634f / (SA_SCALE * SA_SCALE);

  int stage = 0;
#pragma unroll 1
  for (int tile = tile_first; tile <= tile_last; ++tile) {
    const int s0 = tile * 64;
    const bool more = tile < tile_last;
    const uint32_t here = base + stage * SA_STAGE;
    unsigned char* next = smem + (stage ^ 1) * SA_STAGE;

    if (s0 <= qw + 63 && s0 + 63 >= qw - W + 1) {
      uint32_t ph[4][4], pl[4][4];
      {
        float s[32];
        {
          float4 r[4];
          sa_load(r, kh, s0 + 64, T, more);

          const uint64_t k_hi = sa_desc(here);
          const uint64_t k_lo = sa_desc(here + SA_PART);
          const uint64_t q_lo = sa_desc(base + 2 * SA_STAGE + group * SA_PART);
          asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
          sa_mma_first(s, qa[0], k_lo);
          sa_mma_shared(s, q_lo, k_hi);
          sa_mma<0>(s, qa[0], k_hi);
#pragma unroll
          for (int c = 1; c < 4; ++c) {
            sa_mma<0>(s, qa[c], k_lo + 2 * c);
            sa_mma_shared(s, q_lo + 2 * c, k_hi + 2 * c);
            sa_mma<0>(s, qa[c], k_hi + 2 * c);
          }
          asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
          sa_store(r, next, largest);
          asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
          sa_hold(s);
        }

        if (s0 + 63 > qw || s0 < qw + 63 - W + 1) {
          const int a0 = t0 - s0 - (lane & 3) * 2;
          const int a1 = t1 - s0 - (lane & 3) * 2;
#pragma unroll
          for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              if ((unsigned)(a0 - (n * 8 + e)) >= (unsigned)W) s[n * 4 + e] = SA_MINUS_INF;
              if ((unsigned)(a1 - (n * 8 + e)) >= (unsigned)W) s[n * 4 + 2 + e] = SA_MINUS_INF;
            }
          }
        }

        float top0 = SA_MINUS_INF, top1 = SA_MINUS_INF;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          top0 = fmaxf(top0, fmaxf(s[n * 4], s[n * 4 + 1]));
          top1 = fmaxf(top1, fmaxf(s[n * 4 + 2], s[n * 4 + 3]));
        }
        top0 = fmaxf(top0, __shfl_xor_sync(0xffffffffu, top0, 1));
        top1 = fmaxf(top1, __shfl_xor_sync(0xffffffffu, top1, 1));
        top0 = fmaxf(top0, __shfl_xor_sync(0xffffffffu, top0, 2));
        top1 = fmaxf(top1, __shfl_xor_sync(0xffffffffu, top1, 2));
        const float now0 = fmaxf(most0, top0 * factor);
        const float now1 = fmaxf(most1, top1 * factor);
        if (__any_sync(0xffffffffu, now0 != most0 || now1 != most1)) {
          const float old0 = sa_exp2(most0 - now0);
          const float old1 = sa_exp2(most1 - now1);
          sum0 *= old0;
          sum1 *= old1;
#pragma unroll
          for (int n = 0; n < 8; ++n) {
            o[n * 4] *= old0;
            o[n * 4 + 1] *= old0;
            o[n * 4 + 2] *= old1;
            o[n * 4 + 3] *= old1;
          }
          most0 = now0;
          most1 = now1;
        }
        // weights times 2^14, so that small ones keep their bits
        const float shift0 = 14.0f - most0;
        const float shift1 = 14.0f - most1;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const float w0 = sa_exp2(fmaf(s[c * 8 + h * 4], factor, shift0));
            const float w1 = sa_exp2(fmaf(s[c * 8 + h * 4 + 1], factor, shift0));
            const float w2 = sa_exp2(fmaf(s[c * 8 + h * 4 + 2], factor, shift1));
            const float w3 = sa_exp2(fmaf(s[c * 8 + h * 4 + 3], factor, shift1));
            sum0 += w0 + w1;
            sum1 += w2 + w3;
            sa_split(w0, w1, ph[c][h * 2], pl[c][h * 2]);
            sa_split(w2, w3, ph[c][h * 2 + 1], pl[c][h * 2 + 1]);
          }
        }
      }
      {
        float4 r[4];
        sa_load(r, vh, s0 + 64, T, more);

        const uint64_t v_hi = sa_desc(here + 2 * SA_PART);
        const uint64_t v_lo = sa_desc(here + 3 * SA_PART);
        sa_hold_parts(ph);
        sa_hold_parts(pl);
        sa_hold(o);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          sa_mma<1>(o, pl[c], v_hi + 128 * c);
          sa_mma<1>(o, ph[c], v_lo + 128 * c);
          sa_mma<1>(o, ph[c], v_hi + 128 * c);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        sa_store(r, next + 2 * SA_PART, largest);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        sa_hold(o);
      }
    } else {
      // nothing for this warpgroup here, but its part of the next tile
      float4 r[4];
      sa_load(r, kh, s0 + 64, T, more);
      sa_store(r, next, largest);
      sa_load(r, vh, s0 + 64, T, more);
      sa_store(r, next + 2 * SA_PART, largest);
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    stage ^= 1;
  }

  sum0 += __shfl_xor_sync(0xffffffffu, sum0, 1);
  sum1 += __shfl_xor_sync(0xffffffffu, sum1, 1);
  sum0 += __shfl_xor_sync(0xffffffffu, sum0, 2);
  sum1 += __shfl_xor_sync(0xffffffffu, sum1, 2);
  const float over0 = (1.0f / sum0) * (1.0f / SA_SCALE);
  const float over1 = (1.0f / sum1) * (1.0f / SA_SCALE);
  float size0 = 0.0f, size1 = 0.0f;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 a = make_float2(o[n * 4] * over0, o[n * 4 + 1] * over0);
    const float2 b = make_float2(o[n * 4 + 2] * over1, o[n * 4 + 3] * over1);
    size0 = fmaxf(size0, fmaxf(fabsf(a.x), fabsf(a.y)));
    size1 = fmaxf(size1, fmaxf(fabsf(b.x), fabsf(b.y)));
    const int d = n * 8 + (lane & 3) * 2;
    if (t0 < T) *reinterpret_cast<float2*>(out + ((size_t)head * T + t0) * 64 + d) = a;
    if (t1 < T) *reinterpret_cast<float2*>(out + ((size_t)head * T + t1) * 64 + d) = b;
  }
  size0 = fmaxf(size0, __shfl_xor_sync(0xffffffffu, size0, 1));
  size1 = fmaxf(size1, __shfl_xor_sync(0xffffffffu, size1, 1));
  size0 = fmaxf(size0, __shfl_xor_sync(0xffffffffu, size0, 2));
  size1 = fmaxf(size1, __shfl_xor_sync(0xffffffffu, size1, 2));

  // Values that the split does not cover: once more, in plain f32, a warp for each query.
  const bool doubtful = !(largest <= SA_LIMIT) || (t0 < T && !(size0 >= SA_SMALL)) || (t1 < T && !(size1 >= SA_SMALL));
  if (__syncthreads_or(doubtful ? 1 : 0)) {
    for (int r = warp; r < 128; r += 8) {
      const int t = q0 + r;
      if (t >= T) break;
      const size_t at = ((size_t)head * T + t) * 64 + lane;
      const float qx = q[at], qy = q[at + 32];
      const int first = t - W + 1 < 0 ? 0 : t - W + 1;
      float most = -3.0e38f, sum = 0.0f, ox = 0.0f, oy = 0.0f;
      for (int s = first; s <= t; ++s) {
        const float* ks = kh + (size_t)s * 64 + lane;
        const float* vs = vh + (size_t)s * 64 + lane;
        float dot = qx * ks[0] + qy * ks[32];
#pragma unroll
        for (int offset = 16; offset > 0; offset >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, offset);
        dot *= 0.125f;
        const float now = fmaxf(most, dot);
        const float old = expf(most - now);
        const float weight = expf(dot - now);
        sum = sum * old + weight;
        ox = ox * old + weight * vs[0];
        oy = oy * old + weight * vs[32];
        most = now;
      }
      out[at] = ox / sum;
      out[at + 32] = oy / sum;
    }
  }
}
