// Two products of one input, and one result gated by the other: one launch, f32 by split tf32 tensor-core products.

//@ launch gated_projection<<<(ceil_div(M, 128), ceil_div(N, 64)), 256>>>(x, W, V, out, M, N, K)
#include <cstdint>

#define BM 128
#define BN 64
#define BK 16
#define A_FLOATS (BM * BK)
#define B_FLOATS (BK * BN)
#define STAGE_FLOATS (A_FLOATS + 2 * B_FLOATS)
#define STAGES 3

__device__ __forceinline__ void copy16(float* dst, const float* src, bool wanted) {
  const unsigned to = (unsigned)__cvta_generic_to_shared(dst);
  const int bytes = wanted ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mma_add(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_new(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};\n"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}

__device__ __forceinline__ void split(float v, uint32_t& hi, uint32_t& lo) {
  hi = __float_as_uint(v) & 0xffffe000u;
  lo = __float_as_uint(v - __uint_as_float(hi));
}

__device__ __noinline__ float plain_dot(const float* x, const float* W, int i, int j, int N, int K) {
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum = fmaf(x[(long long)i * K + k], W[(long long)k * N + j], sum);
  return sum;
}

__device__ __forceinline__ bool finite_value(float v) { return fabsf(v) < __int_as_float(0x7f800000); }

__device__ __forceinline__ float gated(float g, float v, const float* x, const float* W, const float* V, int i, int j,
                                       int N, int K) {
  if (!finite_value(g)) g = plain_dot(x, W, i, j, N, K);
  if (!finite_value(v)) v = plain_dot(x, V, i, j, N, K);
  return g / (1.0f + expf(-g)) * v;
}

template <bool VEC>
__device__ __forceinline__ void body(float* ring, const float* __restrict__ x, const float* __restrict__ W,
                                     const float* __restrict__ V, float* __restrict__ out, int M, int N, int K) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wm = warp & 1;   // 64 rows each
  const int wn = warp >> 1;  // 16 columns of both products each
  const int g = lane >> 2;
  const int t = lane & 3;
  const int m0 = blockIdx.x * BM;
  const int n0 = blockIdx.y * BN;
  const int tiles = (K + BK - 1) / BK;

  // what this thread copies
  const int a_row = tid >> 2;            // and a_row + 64
  const int a_chunk = tid & 3;
  const int a_to = a_row * BK + ((a_chunk ^ ((a_row >> 1) & 3)) << 2);
  const bool a_in0 = m0 + a_row < M;
  const bool a_in1 = m0 + a_row + 64 < M;
  const float* a_from0 = x + (long long)(a_in0 ? m0 + a_row : 0) * K;
  const float* a_from1 = x + (long long)(a_in1 ? m0 + a_row + 64 : 0) * K;
  const int b_k = tid >> 4;
  const int b_n = (tid & 15) * 4;
  const int b_to = b_k * BN + (b_n ^ (8 * (b_k & 3)));
  const bool b_in = n0 + b_n < N;

  auto load_tile = [&](int tile, int slot) {
    float* as = ring + slot * STAGE_FLOATS;
    float* ws = as + A_FLOATS;
    float* vs = ws + B_FLOATS;
    const int ka = tile * BK + a_chunk * 4;
    const int kb = tile * BK + b_k;
    if (VEC) {
      const bool k_in = ka < K;
      const int ko = k_in ? ka : 0;
      copy16(as + a_to, a_from0 + ko, k_in && a_in0);
      copy16(as + a_to + 64 * BK, a_from1 + ko, k_in && a_in1);
      const bool w_in = b_in && kb < K;
      const long long bo = w_in ? (long long)kb * N + n0 + b_n : 0;
      copy16(ws + b_to, W + bo, w_in);
      copy16(vs + b_to, V + bo, w_in);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const bool k_in = ka + e < K;
        as[a_to + e] = (k_in && a_in0) ? a_from0[ka + e] : 0.0f;
        as[a_to + 64 * BK + e] = (k_in && a_in1) ? a_from1[ka + e] : 0.0f;
        const bool w_in = n0 + b_n + e < N && kb < K;
        ws[b_to + e] = w_in ? W[(long long)kb * N + n0 + b_n + e] : 0.0f;
        vs[b_to + e] = w_in ? V[(long long)kb * N + n0 + b_n + e] : 0.0f;
      }
    }
  };

  float acc[4][4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < tiles) load_tile(s, s);
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  }

  const int a_read = (wm * 64 + g) * BK + t;
  const int swz = (g >> 1) & 3;
  const int b_read0 = t * BN + ((wn * 16 + g) ^ (8 * t));
  const int b_read1 = t * BN + ((wn * 16 + 8 + g) ^ (8 * t));

  int slot = 0;
  int slot_load = STAGES - 1;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    __syncthreads();
    if (tile + STAGES - 1 < tiles) load_tile(tile + STAGES - 1, slot_load);
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    const float* as = ring + slot * STAGE_FLOATS;
    const float* ws = as + A_FLOATS;
    const float* vs = ws + B_FLOATS;
    float part[4][4][4];

#pragma unroll
    for (int kk = 0; kk < BK / 8; ++kk) {
      uint32_t ah[4][4], al[4][4], bh[4][2], bl[4][2];
      const int c0 = ((kk * 2) ^ swz) << 2;
      const int c1 = ((kk * 2 + 1) ^ swz) << 2;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int off = (kk * 8 + h * 4) * BN;
        split(ws[off + b_read0], bh[0][h], bl[0][h]);
        split(ws[off + b_read1], bh[1][h], bl[1][h]);
        split(vs[off + b_read0], bh[2][h], bl[2][h]);
        split(vs[off + b_read1], bh[3][h], bl[3][h]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* p = as + a_read + i * 16 * BK;
        split(p[c0], ah[i][0], al[i][0]);
        split(p[8 * BK + c0], ah[i][1], al[i][1]);
        split(p[c1], ah[i][2], al[i][2]);
        split(p[8 * BK + c1], ah[i][3], al[i][3]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (kk == 0)
            mma_new(part[i][j], al[i], bh[j]);
          else
            mma_add(part[i][j], al[i], bh[j]);
        }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_add(part[i][j], ah[i], bl[j]);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_add(part[i][j], ah[i], bh[j]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[i][j][e] += part[i][j][e];

    slot = slot + 1 == STAGES ? 0 : slot + 1;
    slot_load = slot_load + 1 == STAGES ? 0 : slot_load + 1;
  }

#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = m0 + wm * 64 + i * 16 + h * 8 + g;
      if (row < M) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int col = n0 + wn * 16 + j * 8 + 2 * t;
          float* to = out + (long long)row * N + col;
          if (VEC) {
            if (col < N) {
              float2 o;
              o.x = gated(acc[i][j][2 * h], acc[i][j + 2][2 * h], x, W, V, row, col, N, K);
              o.y = gated(acc[i][j][2 * h + 1], acc[i][j + 2][2 * h + 1], x, W, V, row, col + 1, N, K);
              *reinterpret_cast<float2*>(to) = o;
            }
          } else {
            if (col < N) to[0] = gated(acc[i][j][2 * h], acc[i][j + 2][2 * h], x, W, V, row, col, N, K);
            if (col + 1 < N)
              to[1] = gated(acc[i][j][2 * h + 1], acc[i][j + 2][2 * h + 1], x, W, V, row, col + 1, N, K);
          }
        }
      }
    }
}

__global__ void __launch_bounds__(256, 1)
gated_projection(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V,
                 float* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(128) float ring[STAGES * STAGE_FLOATS];
  if ((K & 3) == 0 && (N & 3) == 0) {
    body<true>(ring, x, W, V, out, M, N, K);
  } else {
    body<false>(ring, x, W, V, out, M, N, K);
  }
}
