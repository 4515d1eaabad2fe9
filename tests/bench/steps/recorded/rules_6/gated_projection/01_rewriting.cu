// Both products of a tile in one block, gated in registers: one launch, nothing between.

#include <cstdint>
#include <cstddef>
#include <cuda_pipeline.h>

//@ launch gated_projection<<<(ceil_div(N, 64), ceil_div(M, 128)), 128>>>(x, W, V, out, M, N, K)

constexpr int BM = 128;       // rows of a tile
constexpr int BN = 64;        // columns of a tile, of W and of V
constexpr int BK = 16;        // depth of a stage
constexpr int AP = BM + 4;    // pitch of the transposed x
constexpr int BP = 2 * BN;    // pitch of a row of W beside a row of V
constexpr int THREADS = 128;
constexpr int A_STAGE = BK * AP;
constexpr int B_STAGE = BK * BP;

struct Fragment {
  float a[16];
  float w[4];
  float v[4];
};

__device__ __forceinline__ void load_fragment(Fragment& f, const float* as, const float* bs) {
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const float4 t = *reinterpret_cast<const float4*>(as + 32 * c);
    f.a[4 * c + 0] = t.x;
    f.a[4 * c + 1] = t.y;
    f.a[4 * c + 2] = t.z;
    f.a[4 * c + 3] = t.w;
  }
  const float4 w = *reinterpret_cast<const float4*>(bs);
  f.w[0] = w.x;
  f.w[1] = w.y;
  f.w[2] = w.z;
  f.w[3] = w.w;
  const float4 v = *reinterpret_cast<const float4*>(bs + BN);
  f.v[0] = v.x;
  f.v[1] = v.y;
  f.v[2] = v.z;
  f.v[3] = v.w;
}

__device__ __forceinline__ float gated(float g, float v) {
  return g / (1.0f + expf(-g)) * v;
}

// Guarded: a stage of any size, zeros outside.
__device__ __forceinline__ void fill_stage(float* as, float* bs, const float* x, const float* W,
                                           const float* V, int m0, int n0, int k0,
                                           int M, int N, int K, int tid) {
  for (int e = tid; e < BM * BK; e += THREADS) {
    const int r = e / BK, k = e % BK;
    float t = 0.0f;
    if (m0 + r < M && k0 + k < K) t = x[(size_t)(m0 + r) * K + k0 + k];
    as[k * AP + r] = t;
  }
  for (int e = tid; e < BK * BN; e += THREADS) {
    const int k = e / BN, c = e % BN;
    float w = 0.0f, v = 0.0f;
    if (k0 + k < K && n0 + c < N) {
      const size_t at = (size_t)(k0 + k) * N + n0 + c;
      w = W[at];
      v = V[at];
    }
    bs[k * BP + c] = w;
    bs[k * BP + BN + c] = v;
  }
}

template <bool FULL>
__device__ __forceinline__ void tile(float* As, float* Bs, const float* __restrict__ x,
                                     const float* __restrict__ W, const float* __restrict__ V,
                                     float* __restrict__ out, int M, int N, int K) {
  const int tid = threadIdx.x;
  const int warp = tid >> 5, lane = tid & 31;
  const int rg = (warp >> 1) * 4 + (lane >> 3);  // rows 32 * c + 4 * rg + r
  const int cg = (warp & 1) * 8 + (lane & 7);    // columns 4 * cg + j
  const int m0 = blockIdx.y * BM;
  const int n0 = blockIdx.x * BN;

  // What this thread brings in of a full stage.
  const float* ax = x + (size_t)(m0 + (tid >> 2)) * K + (tid & 3) * 4;
  const size_t a_step = (size_t)32 * K;
  float* a_to = As + (tid & 3) * 4 * AP + (tid >> 2);
  const float* bx = (lane < 16 ? W : V) + (size_t)warp * N + n0 + (lane & 15) * 4;
  const size_t b_step = (size_t)4 * N;
  float* b_to = Bs + warp * BP + lane * 4;

  float gate[16][4], value[16][4];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      gate[i][j] = 0.0f;
      value[i][j] = 0.0f;
    }
  }

  float4 ra[4];
  const int stages = (K + BK - 1) / BK;

  if (stages > 0) {
    if (FULL) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        __pipeline_memcpy_async(b_to + i * 4 * BP, bx + i * b_step, 16);
      }
      __pipeline_commit();
#pragma unroll
      for (int i = 0; i < 4; ++i) ra[i] = *reinterpret_cast<const float4*>(ax + i * a_step);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a_to[0 * AP + 32 * i] = ra[i].x;
        a_to[1 * AP + 32 * i] = ra[i].y;
        a_to[2 * AP + 32 * i] = ra[i].z;
        a_to[3 * AP + 32 * i] = ra[i].w;
      }
      __pipeline_wait_prior(0);
    } else {
      fill_stage(As, Bs, x, W, V, m0, n0, 0, M, N, K, tid);
    }
  }
  __syncthreads();

#pragma unroll 1
  for (int s = 0; s < stages; ++s) {
    const int now = s & 1;
    const int next = now ^ 1;
    const bool more = s + 1 < stages;

    if (more) {
      if (FULL) {
        ax += BK;
        bx += (size_t)BK * N;
        float* to = b_to + next * B_STAGE;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          __pipeline_memcpy_async(to + i * 4 * BP, bx + i * b_step, 16);
        }
        __pipeline_commit();
#pragma unroll
        for (int i = 0; i < 4; ++i) ra[i] = *reinterpret_cast<const float4*>(ax + i * a_step);
      } else {
        fill_stage(As + next * A_STAGE, Bs + next * B_STAGE, x, W, V, m0, n0, (s + 1) * BK,
                   M, N, K, tid);
      }
    }

    const float* as = As + now * A_STAGE + rg * 4;
    const float* bs = Bs + now * B_STAGE + cg * 4;
    Fragment f[2];
    load_fragment(f[0], as, bs);
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        if (k < 7 || half == 0) {
          load_fragment(f[(k + 1) & 1], as + (k + 1) * AP, bs + (k + 1) * BP);
        }
        const Fragment& u = f[k & 1];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
#pragma unroll
          for (int j = 0; j < 4; ++j) gate[i][j] = fmaf(u.a[i], u.w[j], gate[i][j]);
#pragma unroll
          for (int j = 0; j < 4; ++j) value[i][j] = fmaf(u.a[i], u.v[j], value[i][j]);
        }
      }
      as += 8 * AP;
      bs += 8 * BP;
    }

    if (FULL && more) {
      float* to = a_to + next * A_STAGE;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        to[0 * AP + 32 * i] = ra[i].x;
        to[1 * AP + 32 * i] = ra[i].y;
        to[2 * AP + 32 * i] = ra[i].z;
        to[3 * AP + 32 * i] = ra[i].w;
      }
      __pipeline_wait_prior(0);
    }
    __syncthreads();
  }

#pragma unroll
  for (int c = 0; c < 4; ++c) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int i = 4 * c + r;
      const int row = m0 + 32 * c + 4 * rg + r;
      const int col = n0 + 4 * cg;
      if (FULL) {
        float4 y;
        y.x = gated(gate[i][0], value[i][0]);
        y.y = gated(gate[i][1], value[i][1]);
        y.z = gated(gate[i][2], value[i][2]);
        y.w = gated(gate[i][3], value[i][3]);
        *reinterpret_cast<float4*>(out + (size_t)row * N + col) = y;
      } else if (row < M) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (col + j < N) out[(size_t)row * N + col + j] = gated(gate[i][j], value[i][j]);
        }
      }
    }
  }
}

__global__ void __launch_bounds__(THREADS, 2)
gated_projection(const float* __restrict__ x, const float* __restrict__ W,
                 const float* __restrict__ V, float* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(16) float As[2 * A_STAGE];
  __shared__ __align__(16) float Bs[2 * B_STAGE];
  const uintptr_t at = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(W) |
                       reinterpret_cast<uintptr_t>(V) | reinterpret_cast<uintptr_t>(out);
  if (M % BM == 0 && N % BN == 0 && K % BK == 0 && (at & 15) == 0) {
    tile<true>(As, Bs, x, W, V, out, M, N, K);
  } else {
    tile<false>(As, Bs, x, W, V, out, M, N, K);
  }
}
