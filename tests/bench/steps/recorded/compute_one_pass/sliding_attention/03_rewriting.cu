// Attention of each position to itself and to the W - 1 positions before it.
// A block takes 128 queries of a head, a warp 32 of them; keys and values come in tiles of 64 (D == 64).

#include <cstdint>

//@ launch sliding_attention<<<(ceil_div(T, 128), H, 1), 128, 71680>>>(q, k, v, out, H, T, D, W)

constexpr int SA_KP = 72;                              // floats of a row of keys in shared memory, padded
constexpr int SA_VP = 68;                              // floats of a row of values
constexpr int SA_STAGE = 64 * SA_KP + 64 * SA_VP;      // floats of a tile of keys and values

__device__ __forceinline__ void sa_split(float x, uint32_t& high, uint32_t& low) {
  high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(x - __uint_as_float(high));
}

__device__ __forceinline__ float sa_exp2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

__device__ __forceinline__ void sa_mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void sa_copy(uint32_t to, const float* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__global__ void __launch_bounds__(128, 2)
sliding_attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                  float* __restrict__ out, int H, int T, int D, int W) {
  extern __shared__ __align__(128) float sa_shared[];

  const int tid = (int)threadIdx.x;

  if (D != 64) {
    const int total = H * T;
    const int step = (int)(gridDim.x * gridDim.y) * 128;
    for (int i = ((int)blockIdx.y * (int)gridDim.x + (int)blockIdx.x) * 128 + tid; i < total; i += step) {
      const int head = i / T;
      const int t = i % T;
      const int first = t - W + 1 < 0 ? 0 : t - W + 1;
      const float scale = rsqrtf((float)D);
      float most = -3.0e38f;
      for (int s = first; s <= t; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[(head * T + s) * D + d];
        most = fmaxf(most, dot * scale);
      }
      float sum = 0.0f;
      for (int d = 0; d < D; ++d) out[i * D + d] = 0.0f;
      for (int s = first; s <= t; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[(head * T + s) * D + d];
        const float weight = expf(dot * scale - most);
        sum += weight;
        for (int d = 0; d < D; ++d) out[i * D + d] += weight * v[(head * T + s) * D + d];
      }
      for (int d = 0; d < D; ++d) out[i * D + d] /= sum;
    }
    return;
  }

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int g = lane >> 2;
  const int tig = lane & 3;
  const int head = (int)blockIdx.y;
  const int q0 = (int)blockIdx.x * 128;
  const int r0 = q0 + warp * 32;                       // first query of this warp
  const size_t head_at = (size_t)head * T * 64;
  const float* kh = k + head_at;
  const float* vh = v + head_at;

  const float c = rsqrtf(64.0f) * 1.4426950408889634f;  // scale of the dots, for powers of two

  // tiles the block needs, keys the warp needs
  const int block_first = q0 - W + 1 > 0 ? q0 - W + 1 : 0;
  const int block_last = q0 + 127 < T - 1 ? q0 + 127 : T - 1;
  const int tile_first = block_first / 64;
  const int tile_last = block_last / 64;
  const int warp_first = r0 - W + 1 > 0 ? r0 - W + 1 : 0;
  const int warp_last = r0 < T ? (r0 + 31 < T - 1 ? r0 + 31 : T - 1) : -1;

  const uint32_t shared_at = (uint32_t)__cvta_generic_to_shared(sa_shared);
  auto load_tile = [&](int tile, int slot) {
    const int part = tid & 15;                         // 16 bytes of a row
    const int row0 = tid >> 4;                         // 8 rows at once
    const uint32_t k_to = shared_at + (slot * SA_STAGE + part * 4) * 4;
    const uint32_t v_to = k_to + 64 * SA_KP * 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int row = row0 + j * 8;
      const int s = tile * 64 + row;
      const bool ok = s < T;
      const size_t at = ok ? (size_t)s * 64 + part * 4 : 0;
      const int bytes = ok ? 16 : 0;
      sa_copy(k_to + row * (SA_KP * 4), kh + at, bytes);
      sa_copy(v_to + row * (SA_VP * 4), vh + at, bytes);
    }
  };

  load_tile(tile_first, 0);
  asm volatile("cp.async.commit_group;" ::: "memory");

  // queries: rows g and g + 8 of two tiles of 16, elements 8 s + 2 tig and the next
  float2 qf[2][2][8];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int row = r0 + m * 16 + i * 8 + g;
      if (row > T - 1) row = T - 1;
      const float* from = q + head_at + (size_t)row * 64 + tig * 2;
#pragma unroll
      for (int s = 0; s < 8; ++s) qf[m][i][s] = *reinterpret_cast<const float2*>(from + s * 8);
    }
  }

  float o[2][8][4];
  float most[2][2], sum[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) o[m][j][e] = 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      most[m][i] = -3.0e38f;
      sum[m][i] = 0.0f;
    }
  }

#pragma unroll 1
  for (int tile = tile_first; tile <= tile_last; ++tile) {
    const int slot = (tile - tile_first) & 1;
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (tile < tile_last) load_tile(tile + 1, slot ^ 1);
    asm volatile("cp.async.commit_group;" ::: "memory");

#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      const int s0 = tile * 64 + half * 32;            // first of 32 keys
      if (s0 > warp_last || s0 + 31 < warp_first) continue;

      const float* ks = sa_shared + slot * SA_STAGE + (half * 32 + g) * SA_KP + tig * 2;
      const float* vs = sa_shared + slot * SA_STAGE + 64 * SA_KP + (half * 32 + tig * 2) * SA_VP + g * 4;

      // dots of 32 queries and 32 keys
      float p[2][4][4];
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) p[m][n][e] = 0.0f;
#pragma unroll
      for (int s = 0; s < 8; ++s) {
        uint32_t ah[2][4], al[2][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          sa_split(qf[m][0][s].x, ah[m][0], al[m][0]);
          sa_split(qf[m][1][s].x, ah[m][1], al[m][1]);
          sa_split(qf[m][0][s].y, ah[m][2], al[m][2]);
          sa_split(qf[m][1][s].y, ah[m][3], al[m][3]);
        }
        uint32_t bh[4][2], bl[4][2];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float2 f = *reinterpret_cast<const float2*>(ks + n * 8 * SA_KP + s * 8);
          sa_split(f.x, bh[n][0], bl[n][0]);
          sa_split(f.y, bh[n][1], bl[n][1]);
        }
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int m = 0; m < 2; ++m) sa_mma(p[m][n], al[m], bh[n]);
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int m = 0; m < 2; ++m) sa_mma(p[m][n], ah[m], bl[n]);
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int m = 0; m < 2; ++m) sa_mma(p[m][n], ah[m], bh[n]);
      }

      // what no query of these may see
      if (s0 + 31 > r0 || s0 < r0 + 31 - W + 1) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const int t = r0 + m * 16 + (e >> 1) * 8 + g;
              const int s = s0 + n * 8 + tig * 2 + (e & 1);
              if (s > t || s < t - W + 1) p[m][n][e] = __int_as_float(0xff800000);
            }
      }

      // running softmax
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float top = most[m][i];
#pragma unroll
          for (int n = 0; n < 4; ++n) top = fmaxf(top, fmaxf(p[m][n][i * 2], p[m][n][i * 2 + 1]));
          top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
          top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
          const float fade = sa_exp2((most[m][i] - top) * c);
          const float shift = -top * c;
          most[m][i] = top;
          float add = 0.0f;
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            const float w0 = sa_exp2(fmaf(p[m][n][i * 2], c, shift));
            const float w1 = sa_exp2(fmaf(p[m][n][i * 2 + 1], c, shift));
            p[m][n][i * 2] = w0;
            p[m][n][i * 2 + 1] = w1;
            add += w0 + w1;
          }
          sum[m][i] = fmaf(sum[m][i], fade, add);
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            o[m][j][i * 2] *= fade;
            o[m][j][i * 2 + 1] *= fade;
          }
        }
      }

      // weights times values; within 8 keys, slot tig is key 2 tig and slot tig + 4 is key 2 tig + 1;
      // column n of product 4 h + jj is element 32 h + 4 n + jj
#pragma unroll
      for (int kk = 0; kk < 4; ++kk) {
        uint32_t ah[2][4], al[2][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          sa_split(p[m][kk][0], ah[m][0], al[m][0]);
          sa_split(p[m][kk][2], ah[m][1], al[m][1]);
          sa_split(p[m][kk][1], ah[m][2], al[m][2]);
          sa_split(p[m][kk][3], ah[m][3], al[m][3]);
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float4 va = *reinterpret_cast<const float4*>(vs + kk * 8 * SA_VP + h * 32);
          const float4 vb = *reinterpret_cast<const float4*>(vs + (kk * 8 + 1) * SA_VP + h * 32);
          uint32_t bh[4][2], bl[4][2];
          sa_split(va.x, bh[0][0], bl[0][0]);
          sa_split(vb.x, bh[0][1], bl[0][1]);
          sa_split(va.y, bh[1][0], bl[1][0]);
          sa_split(vb.y, bh[1][1], bl[1][1]);
          sa_split(va.z, bh[2][0], bl[2][0]);
          sa_split(vb.z, bh[2][1], bl[2][1]);
          sa_split(va.w, bh[3][0], bl[3][0]);
          sa_split(vb.w, bh[3][1], bl[3][1]);
#pragma unroll
          for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int m = 0; m < 2; ++m) sa_mma(o[m][h * 4 + n], al[m], bh[n]);
#pragma unroll
          for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int m = 0; m < 2; ++m) sa_mma(o[m][h * 4 + n], ah[m], bl[n]);
#pragma unroll
          for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int m = 0; m < 2; ++m) sa_mma(o[m][h * 4 + n], ah[m], bh[n]);
        }
      }
    }
  }

#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float total = sum[m][i];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float inverse = 1.0f / total;
      const int row = r0 + m * 16 + i * 8 + g;
      if (row < T) {
        float* to = out + head_at + (size_t)row * 64 + tig * 8;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float4 f;
            f.x = o[m][h * 4][i * 2 + e] * inverse;
            f.y = o[m][h * 4 + 1][i * 2 + e] * inverse;
            f.z = o[m][h * 4 + 2][i * 2 + e] * inverse;
            f.w = o[m][h * 4 + 3][i * 2 + e] * inverse;
            *reinterpret_cast<float4*>(to + h * 32 + e * 4) = f;
          }
        }
      }
    }
  }
}
