// Attention of each position to itself and to the W - 1 positions before it; a block takes 128 queries of a head.

//@ launch sliding_attention<<<ceil_div(T, 128) * H, 128, 65536>>>(q, k, v, out, H, T, D, W)
#include <cuda_fp16.h>

// Two values as f16, the first in the lower half.
__device__ __forceinline__ unsigned attention_pack(float low, float high) {
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// Two values as sums of two f16.
__device__ __forceinline__ void attention_split(float a, float b, unsigned& big, unsigned& small) {
  big = attention_pack(a, b);
  const __half2 h = *reinterpret_cast<const __half2*>(&big);
  const float2 f = __half22float2(h);
  small = attention_pack(a - f.x, b - f.y);
}

__device__ __forceinline__ float attention_ex2(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__device__ __forceinline__ void attention_ldsm(unsigned (&r)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

__device__ __forceinline__ void attention_ldsm_trans(unsigned (&r)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

__device__ __forceinline__ void attention_mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 64 rows of 64 values, from row first of a head; zeros behind the last row.
__device__ __forceinline__ void attention_fetch(float4 (&raw)[8], const float* __restrict__ head, int first, int T) {
  const int c = threadIdx.x & 15;
  const int row = first + (threadIdx.x >> 4);
#pragma unroll
  for (int u = 0; u < 8; ++u) {
    raw[u] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row + 8 * u < T) raw[u] = *(reinterpret_cast<const float4*>(head + (size_t)(row + 8 * u) * 64) + c);
  }
}

// Splits them into shared memory (rows of 128 bytes, permuted by the row); says whether some do not fit.
__device__ __forceinline__ bool attention_store(const float4 (&raw)[8], unsigned char* big, unsigned char* small, bool relative) {
  const int c = threadIdx.x & 15;
  bool fits = true;
  float most = 0.0f;
#pragma unroll
  for (int u = 0; u < 8; ++u) {
    const int row = (threadIdx.x >> 4) + 8 * u;
    const float4 x = raw[u];
    fits = fits && fabsf(x.x) < 255.0f && fabsf(x.y) < 255.0f && fabsf(x.z) < 255.0f && fabsf(x.w) < 255.0f;
    if (relative) most = fmaxf(most, fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
    uint2 b, s;
    attention_split(x.x * 256.0f, x.y * 256.0f, b.x, s.x);
    attention_split(x.z * 256.0f, x.w * 256.0f, b.y, s.y);
    const int at = row * 128 + (((c >> 1) ^ (row & 7)) << 4) + ((c & 1) << 3);
    *reinterpret_cast<uint2*>(big + at) = b;
    *reinterpret_cast<uint2*>(small + at) = s;
  }
  if (relative && most > 0.0f && most < 0.0009765625f) fits = false;
  return !fits;
}

// Any values, any size: one thread for a query.
__device__ __noinline__ void attention_plain(const float* q, const float* k, const float* v, float* out, int head, int t, int T, int D, int W) {
  if (t >= T) return;
  const size_t i = (size_t)head * T + t;
  int first = t - W + 1 < 0 ? 0 : t - W + 1;
  float scale = rsqrtf((float)D);
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
    float weight = expf(dot * scale - most);
    sum += weight;
    for (int d = 0; d < D; ++d) out[i * D + d] += weight * v[((size_t)head * T + s) * D + d];
  }
  for (int d = 0; d < D; ++d) out[i * D + d] /= sum;
}

__global__ void __launch_bounds__(128, 2) sliding_attention(const float* q, const float* k, const float* v, float* out, int H, int T, int D,
                                                            int W) {
  extern __shared__ __align__(1024) unsigned char attention_shared[];
  const int tiles = (T + 127) / 128;
  const int head = blockIdx.x / tiles;
  const int q0 = (blockIdx.x % tiles) * 128;

  if (D != 64 || W < 1) {
    attention_plain(q, k, v, out, head, q0 + threadIdx.x, T, D, W);
    return;
  }

  // Big and small parts of 128 queries, 64 keys, 64 values.
  unsigned char* const q_part = attention_shared;
  unsigned char* const k_part = attention_shared + 32768;
  unsigned char* const v_part = attention_shared + 49152;
  const unsigned q_at = (unsigned)__cvta_generic_to_shared(q_part);
  const unsigned k_at = q_at + 32768;
  const unsigned v_at = q_at + 49152;

  const size_t start = (size_t)head * T * 64;
  const float* q_head = q + start;
  const float* k_head = k + start;
  const float* v_head = v + start;

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int r0 = q0 + warp * 32;
  const int swizzle = lane & 7;
  const int row_a = (lane & 7) + ((lane >> 3) & 1) * 8;    // rows of queries and of values
  const int row_b = (lane & 7) + (lane >> 4) * 8;          // rows of keys
  const int chunk_a = lane >> 4;
  const int chunk_b = (lane >> 3) & 1;

  const float minus = __int_as_float(0xff800000);
  const float c = rsqrtf(64.0f) * 1.4426950408889634f / 65536.0f;

  float o[2][8][4];
  float most[2][2], shift[2][2], sum[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) o[m][n][e] = 0.0f;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      most[m][h] = minus;
      shift[m][h] = 0.0f;
      sum[m][h] = 0.0f;
    }
  }

  const int lowest = max(0, q0 - W + 1);
  const int first = lowest / 64 * 64;
  const int end = min(T, q0 + 128);

  bool bad = false;
  float4 raw[8];
  attention_fetch(raw, q_head, q0, T);
  bad |= attention_store(raw, q_part, q_part + 16384, false);
  attention_fetch(raw, q_head, q0 + 64, T);
  bad |= attention_store(raw, q_part + 8192, q_part + 16384 + 8192, false);
  attention_fetch(raw, k_head, first, T);
  bad |= attention_store(raw, k_part, k_part + 8192, false);

#pragma unroll 1
  for (int kb = first; kb < end; kb += 64) {
    // The keys are there, the values before are done with.
    if (__syncthreads_or(bad ? 1 : 0)) {
      attention_plain(q, k, v, out, head, q0 + threadIdx.x, T, D, W);
      return;
    }
    attention_fetch(raw, v_head, kb, T);

    const bool busy = r0 < T && kb <= r0 + 31 && kb + 63 >= r0 - W + 1;
    float s[2][8][4];
    if (busy) {
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) s[m][n][e] = 0.0f;
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        unsigned qb[2][4], qs[2][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          const unsigned at = q_at + (warp * 32 + m * 16 + row_a) * 128 + (((2 * i + chunk_a) ^ swizzle) << 4);
          attention_ldsm(qb[m], at);
          attention_ldsm(qs[m], at + 16384);
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          unsigned b[4], l[4];
          const unsigned at = k_at + (n * 16 + row_b) * 128 + (((2 * i + chunk_b) ^ swizzle) << 4);
          attention_ldsm(b, at);
          attention_ldsm(l, at + 8192);
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            attention_mma(s[m][2 * n], qs[m], b[0], b[1]);
            attention_mma(s[m][2 * n + 1], qs[m], b[2], b[3]);
          }
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            attention_mma(s[m][2 * n], qb[m], l[0], l[1]);
            attention_mma(s[m][2 * n + 1], qb[m], l[2], l[3]);
          }
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            attention_mma(s[m][2 * n], qb[m], b[0], b[1]);
            attention_mma(s[m][2 * n + 1], qb[m], b[2], b[3]);
          }
        }
      }
    }

    bad |= attention_store(raw, v_part, v_part + 8192, true);
    // The values are there, the keys are done with.
    if (__syncthreads_or(bad ? 1 : 0)) {
      attention_plain(q, k, v, out, head, q0 + threadIdx.x, T, D, W);
      return;
    }
    const bool more = kb + 64 < end;
    if (more) attention_fetch(raw, k_head, kb + 64, T);

    if (busy) {
      if (!(kb + 63 <= r0 && kb > r0 + 31 - W)) {
        // At the rim of the window.
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const int row = r0 + m * 16 + g + (e >> 1) * 8;
              const int key = kb + n * 8 + t * 2 + (e & 1);
              if (key > row || key <= row - W) s[m][n][e] = minus;
            }
          }
        }
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float top = most[m][h];
#pragma unroll
          for (int n = 0; n < 8; ++n) top = fmaxf(top, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
          top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
          top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
          const float now = 3.0f - (top == minus ? 0.0f : top * c);
          const float factor = most[m][h] == minus ? 0.0f : attention_ex2(now - shift[m][h]);
          most[m][h] = top;
          shift[m][h] = now;
          float added = 0.0f;
#pragma unroll
          for (int n = 0; n < 8; ++n) {
            const float p0 = attention_ex2(fmaf(s[m][n][2 * h], c, now));
            const float p1 = attention_ex2(fmaf(s[m][n][2 * h + 1], c, now));
            s[m][n][2 * h] = p0;
            s[m][n][2 * h + 1] = p1;
            added += p0 + p1;
            o[m][n][2 * h] *= factor;
            o[m][n][2 * h + 1] *= factor;
          }
          sum[m][h] = fmaf(sum[m][h], factor, added);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        unsigned pb[2][4], ps[2][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          attention_split(s[m][2 * i][0], s[m][2 * i][1], pb[m][0], ps[m][0]);
          attention_split(s[m][2 * i][2], s[m][2 * i][3], pb[m][1], ps[m][1]);
          attention_split(s[m][2 * i + 1][0], s[m][2 * i + 1][1], pb[m][2], ps[m][2]);
          attention_split(s[m][2 * i + 1][2], s[m][2 * i + 1][3], pb[m][3], ps[m][3]);
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          unsigned b[4], l[4];
          const unsigned at = v_at + (i * 16 + row_a) * 128 + (((2 * n + chunk_a) ^ swizzle) << 4);
          attention_ldsm_trans(b, at);
          attention_ldsm_trans(l, at + 8192);
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            attention_mma(o[m][2 * n], ps[m], b[0], b[1]);
            attention_mma(o[m][2 * n + 1], ps[m], b[2], b[3]);
          }
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            attention_mma(o[m][2 * n], pb[m], l[0], l[1]);
            attention_mma(o[m][2 * n + 1], pb[m], l[2], l[3]);
          }
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            attention_mma(o[m][2 * n], pb[m], b[0], b[1]);
            attention_mma(o[m][2 * n + 1], pb[m], b[2], b[3]);
          }
        }
      }
    }

    if (more) bad |= attention_store(raw, k_part, k_part + 8192, false);
  }

#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = sum[m][h];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float inverse = 0.00390625f / total;
      const int row = r0 + m * 16 + g + h * 8;
      if (row < T) {
        float* to = out + start + (size_t)row * 64 + t * 2;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          *reinterpret_cast<float2*>(to + n * 8) = make_float2(o[m][n][2 * h] * inverse, o[m][n][2 * h + 1] * inverse);
        }
      }
    }
  }
}
