// Attention of each position to itself and to the W - 1 positions before it.
// A block takes 128 queries of a head, a warp 32 of them; keys and values pass in tiles of 32.

//@ launch sliding_attention<<<(ceil_div(T, 128), H), 128, 78848>>>(q, k, v, out, H, T, D, W)

#include <cstdint>

#define SA_KPITCH 80
#define SA_VPITCH 68
#define SA_STAGE (32 * SA_KPITCH + 32 * SA_VPITCH)
#define SA_Q (128 * SA_KPITCH)

__device__ __forceinline__ void sa_copy16(uint32_t dst, const float* src, bool there) {
  const int size = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(size) : "memory");
}

__device__ __forceinline__ float sa_exp2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// high: nearest tf32; low: the rest
__device__ __forceinline__ void sa_split(float x, uint32_t& high, uint32_t& low) {
  high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(x - __uint_as_float(high));
}

__device__ __forceinline__ void sa_mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                       uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(128, 2)
sliding_attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                  float* __restrict__ out, int H, int T, int D, int W) {
  extern __shared__ __align__(16) float sa_shared[];

  const int tid = threadIdx.x;
  const int head = blockIdx.y;
  const int Q0 = blockIdx.x * 128;

  if (D != 64) {
    // any shape
    const int t = Q0 + tid;
    if (t < T) {
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

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int g = lane >> 2;
  const int t = lane & 3;

  const size_t head_offset = (size_t)head * T * 64;
  const float* qh_ = q + head_offset;
  const float* kh_ = k + head_offset;
  const float* vh_ = v + head_offset;

  float* sQ = sa_shared;
  float* sStage = sa_shared + SA_Q;
  const uint32_t aQ = (uint32_t)__cvta_generic_to_shared(sQ);
  const uint32_t aStage = (uint32_t)__cvta_generic_to_shared(sStage);

  const int crow = tid >> 4;
  const int ccol = (tid & 15) * 4;

  // ---- queries
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int row = crow + i * 8;
    const bool there = Q0 + row < T;
    sa_copy16(aQ + (uint32_t)((row * SA_KPITCH + ccol) * 4), qh_ + (size_t)(there ? Q0 + row : 0) * 64 + ccol, there);
  }

  auto bring = [&](int tile, int buffer) {
    const uint32_t aK = aStage + (uint32_t)(buffer * SA_STAGE * 4);
    const uint32_t aV = aK + (uint32_t)(32 * SA_KPITCH * 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = crow + i * 8;
      const int s = tile * 32 + row;
      const bool there = s < T;
      const size_t from = (size_t)(there ? s : 0) * 64 + ccol;
      sa_copy16(aK + (uint32_t)((row * SA_KPITCH + ccol) * 4), kh_ + from, there);
      sa_copy16(aV + (uint32_t)((row * SA_VPITCH + ccol) * 4), vh_ + from, there);
    }
  };

  const int first_key = Q0 - W + 1 < 0 ? 0 : Q0 - W + 1;
  const int last_key = min(T - 1, Q0 + 127);
  const int tile_first = first_key / 32;
  const int tile_last = last_key / 32;

  bring(tile_first, 0);

  const int q0 = Q0 + warp * 32;  // first query of this warp
  const float scale2 = rsqrtf((float)D) * 1.4426950408889634f;

  float O[2][8][4];
  float most[2][2], sum[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) O[m][n][c] = 0.0f;
    }
    most[m][0] = most[m][1] = -3.0e38f;
    sum[m][0] = sum[m][1] = 0.0f;
  }

  const float* myQ = sQ + (warp * 32 + g) * SA_KPITCH + 4 * t;

#pragma unroll 1
  for (int tile = tile_first; tile <= tile_last; ++tile) {
    const int buffer = (tile - tile_first) & 1;
    asm volatile("cp.async.wait_all;\n" ::: "memory");
    __syncthreads();
    if (tile < tile_last) bring(tile + 1, buffer ^ 1);

    const int s0 = tile * 32;
    if (s0 <= q0 + 31 && s0 + 31 >= q0 - W + 1 && q0 < T) {
      const float* myK = sStage + buffer * SA_STAGE + g * SA_KPITCH + 4 * t;
      const float* myV = sStage + buffer * SA_STAGE + 32 * SA_KPITCH + 2 * t * SA_VPITCH + 4 * g;

      // ---- products of queries and keys
      float S[2][4][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
          for (int c = 0; c < 4; ++c) S[m][n][c] = 0.0f;
        }
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        uint32_t qh[2][8], ql[2][8], kh[4][4], kl[4][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          const float4 a = *reinterpret_cast<const float4*>(myQ + (m * 16) * SA_KPITCH + 16 * u);
          const float4 b = *reinterpret_cast<const float4*>(myQ + (m * 16 + 8) * SA_KPITCH + 16 * u);
          sa_split(a.x, qh[m][0], ql[m][0]);
          sa_split(b.x, qh[m][1], ql[m][1]);
          sa_split(a.y, qh[m][2], ql[m][2]);
          sa_split(b.y, qh[m][3], ql[m][3]);
          sa_split(a.z, qh[m][4], ql[m][4]);
          sa_split(b.z, qh[m][5], ql[m][5]);
          sa_split(a.w, qh[m][6], ql[m][6]);
          sa_split(b.w, qh[m][7], ql[m][7]);
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float4 a = *reinterpret_cast<const float4*>(myK + (n * 8) * SA_KPITCH + 16 * u);
          sa_split(a.x, kh[n][0], kl[n][0]);
          sa_split(a.y, kh[n][1], kl[n][1]);
          sa_split(a.z, kh[n][2], kl[n][2]);
          sa_split(a.w, kh[n][3], kl[n][3]);
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int m = 0; m < 2; ++m)
              sa_mma(S[m][n], ql[m][4 * e], ql[m][4 * e + 1], ql[m][4 * e + 2], ql[m][4 * e + 3], kh[n][2 * e],
                     kh[n][2 * e + 1]);
          }
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int m = 0; m < 2; ++m)
              sa_mma(S[m][n], qh[m][4 * e], qh[m][4 * e + 1], qh[m][4 * e + 2], qh[m][4 * e + 3], kl[n][2 * e],
                     kl[n][2 * e + 1]);
          }
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int m = 0; m < 2; ++m)
              sa_mma(S[m][n], qh[m][4 * e], qh[m][4 * e + 1], qh[m][4 * e + 2], qh[m][4 * e + 3], kh[n][2 * e],
                     kh[n][2 * e + 1]);
          }
        }
      }

      // ---- what lies outside of the window
      if (s0 + 31 > q0 || s0 <= q0 + 31 - W) {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              const int key = s0 + n * 8 + 2 * t + (c & 1);
              const int row = q0 + m * 16 + g + (c >> 1) * 8;
              if (key > row || key <= row - W) S[m][n][c] = __int_as_float(0xff800000);
            }
          }
        }
      }

      // ---- weights
      float alpha[2][2];
      uint32_t ph[2][4][4], pl[2][4][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float top = fmaxf(S[m][0][2 * h], S[m][0][2 * h + 1]);
#pragma unroll
          for (int n = 1; n < 4; ++n) top = fmaxf(top, fmaxf(S[m][n][2 * h], S[m][n][2 * h + 1]));
          top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
          top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
          const float higher = fmaxf(most[m][h], top * scale2);
          alpha[m][h] = sa_exp2(most[m][h] - higher);
          most[m][h] = higher;
          float part = 0.0f;
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const float p = sa_exp2(fmaf(S[m][n][2 * h + e], scale2, -higher));
              part += p;
              sa_split(p, ph[m][n][2 * h + e], pl[m][n][2 * h + e]);
            }
          }
          sum[m][h] = fmaf(sum[m][h], alpha[m][h], part);
        }
      }

      // ---- products of weights and values, half of the columns at a time
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float A[2][4][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) A[m][i][c] = 0.0f;
          }
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 a = *reinterpret_cast<const float4*>(myV + (8 * j) * SA_VPITCH + 32 * h);
          const float4 b = *reinterpret_cast<const float4*>(myV + (8 * j + 1) * SA_VPITCH + 32 * h);
          uint32_t vh[4][2], vl[4][2];
          sa_split(a.x, vh[0][0], vl[0][0]);
          sa_split(a.y, vh[1][0], vl[1][0]);
          sa_split(a.z, vh[2][0], vl[2][0]);
          sa_split(a.w, vh[3][0], vl[3][0]);
          sa_split(b.x, vh[0][1], vl[0][1]);
          sa_split(b.y, vh[1][1], vl[1][1]);
          sa_split(b.z, vh[2][1], vl[2][1]);
          sa_split(b.w, vh[3][1], vl[3][1]);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int m = 0; m < 2; ++m)
              sa_mma(A[m][i], pl[m][j][0], pl[m][j][2], pl[m][j][1], pl[m][j][3], vh[i][0], vh[i][1]);
          }
#pragma unroll
          for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int m = 0; m < 2; ++m)
              sa_mma(A[m][i], ph[m][j][0], ph[m][j][2], ph[m][j][1], ph[m][j][3], vl[i][0], vl[i][1]);
          }
#pragma unroll
          for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int m = 0; m < 2; ++m)
              sa_mma(A[m][i], ph[m][j][0], ph[m][j][2], ph[m][j][1], ph[m][j][3], vh[i][0], vh[i][1]);
          }
        }
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c)
              O[m][4 * h + i][c] = fmaf(O[m][4 * h + i][c], alpha[m][c >> 1], A[m][i][c]);
          }
        }
      }
    }
  }

  // ---- results: columns 32 h + 8 t + 4 (c & 1) + i
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float total = sum[m][r];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float inverse = 1.0f / total;
      const int row = q0 + m * 16 + g + r * 8;
      if (row < T) {
        float* to = out + head_offset + (size_t)row * 64 + 8 * t;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int c = 2 * r + e;
            *reinterpret_cast<float4*>(to + 32 * h + 4 * e) =
                make_float4(O[m][4 * h][c] * inverse, O[m][4 * h + 1][c] * inverse, O[m][4 * h + 2][c] * inverse,
                            O[m][4 * h + 3][c] * inverse);
          }
        }
      }
    }
  }
}
