// Each row times the matrix of the expert that it was given to: the rows are grouped by expert,
// then tiles of up to 128 rows of one expert times 128 columns are computed by one block each.

#include <cstdint>
#include <cstddef>

//@ scratch rows: i32[E, M]
//@ scratch counts: i32[E]
//@ launch group_rows<<<E, 1024>>>(expert, rows, counts, M)
//@ launch expert_product<<<(ceil_div(N, 128), ceil_div(M, 128) + E), 128>>>(x, rows, counts, W, out, M, N, K)

// One block for each expert: the ordered list of its rows, and their number.
__global__ void __launch_bounds__(1024) group_rows(const int* __restrict__ expert, int* __restrict__ rows,
                                                   int* __restrict__ counts, int M) {
  __shared__ int warp_sum[32];
  const int e = blockIdx.x;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const unsigned below = (1u << lane) - 1u;
  int* list = rows + (size_t)e * M;
  int base = 0;
  for (int start = 0; start < M; start += 8192) {
    unsigned mask[8];
    int value[8];
    int cnt = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      int idx = start + warp * 256 + j * 32 + lane;
      value[j] = idx < M ? expert[idx] : -1;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      mask[j] = __ballot_sync(0xffffffffu, value[j] == e);
      cnt += __popc(mask[j]);
    }
    if (lane == 0) warp_sum[warp] = cnt;
    __syncthreads();
    int inc = warp_sum[lane];
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      int up = __shfl_up_sync(0xffffffffu, inc, d);
      if (lane >= d) inc += up;
    }
    int total = __shfl_sync(0xffffffffu, inc, 31);
    int off = base + __shfl_sync(0xffffffffu, inc, warp) - cnt;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      int idx = start + warp * 256 + j * 32 + lane;
      if ((mask[j] >> lane) & 1u) list[off + __popc(mask[j] & below)] = idx;
      off += __popc(mask[j]);
    }
    base += total;
    __syncthreads();
  }
  if (threadIdx.x == 0) counts[e] = base;
}

__device__ __forceinline__ void copy16(unsigned dst, const float* src, int size) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(size) : "memory");
}

__device__ __forceinline__ void copy4(unsigned dst, const float* src, int size) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(size) : "memory");
}

__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int LEFT>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT) : "memory");
}

#define TILE_K 16
#define A_STRIDE 20
#define A_STAGE (128 * A_STRIDE)
#define B_STAGE (TILE_K * 128)

// 16 * MI rows of one expert (cnt of them real) times 128 columns from n0; 128 threads, MI x 16 results each.
template <int MI, bool VEC>
__device__ __forceinline__ void product_tile(const float* __restrict__ x, const int* __restrict__ list, int cnt,
                                             const float* __restrict__ We, float* __restrict__ out, int N, int K,
                                             int n0, float* As, float* Bs) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wm = warp >> 1;
  const int wn = warp & 1;
  const int ly = (lane >> 1) & 7;
  const int lx = (lane & 1) | ((lane >> 4) << 1);
  const unsigned sA = (unsigned)__cvta_generic_to_shared(As);
  const unsigned sB = (unsigned)__cvta_generic_to_shared(Bs);

  // what this thread brings in
  const int ac = (tid & 3) * 4;
  const int bk = tid >> 5;
  const int bc = (tid & 31) * 4;
  const bool bn = n0 + bc < N;
  const float* ap[MI / 2];
  if (VEC) {
#pragma unroll
    for (int j = 0; j < MI / 2; ++j) {
      int row = (tid >> 2) + 32 * j;
      int r = list[min(row, cnt - 1)];
      ap[j] = x + (size_t)r * K + ac;
    }
  }
  const float* bp = We + (size_t)bk * N + n0 + bc;

  auto load = [&](int t, int s) {
    const int k0 = t * TILE_K;
    if (VEC) {
      const bool pa = k0 + ac < K;
#pragma unroll
      for (int j = 0; j < MI / 2; ++j) {
        const float* src = pa ? ap[j] + k0 : x;
        copy16(sA + (unsigned)(s * A_STAGE + ((tid >> 2) + 32 * j) * A_STRIDE + ac) * 4u, src, pa ? 16 : 0);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool p = bn && (k0 + bk + 4 * j < K);
        const float* src = p ? bp + (size_t)(k0 + 4 * j) * N : We;
        copy16(sB + (unsigned)(s * B_STAGE + (bk + 4 * j) * 128 + bc) * 4u, src, p ? 16 : 0);
      }
    } else {
      const int kc = tid & 15;
      const bool pa = k0 + kc < K;
#pragma unroll 1
      for (int j = 0; j < 2 * MI; ++j) {
        int row = (tid >> 4) + 8 * j;
        int r = list[min(row, cnt - 1)];
        const float* src = pa ? x + (size_t)r * K + k0 + kc : x;
        copy4(sA + (unsigned)(s * A_STAGE + row * A_STRIDE + kc) * 4u, src, pa ? 4 : 0);
      }
#pragma unroll 1
      for (int j = 0; j < TILE_K; ++j) {
        const bool p = (k0 + j < K) && (n0 + tid < N);
        const float* src = p ? We + (size_t)(k0 + j) * N + n0 + tid : We;
        copy4(sB + (unsigned)(s * B_STAGE + j * 128 + tid) * 4u, src, p ? 4 : 0);
      }
    }
  };

  const int nT = (K + TILE_K - 1) / TILE_K;
  load(0, 0);
  copy_commit();
  if (nT > 1) load(1, 1);
  copy_commit();

  float acc[MI][16];
#pragma unroll
  for (int i = 0; i < MI; ++i)
#pragma unroll
    for (int j = 0; j < 16; ++j) acc[i][j] = 0.0f;

  const int pa0 = (wm * 8 * MI + ly) * A_STRIDE;
  const int pb0 = wn * 64 + lx * 4;

  copy_wait<1>();
  __syncthreads();

  float4 a[MI];
  float4 b[2][4];
#pragma unroll
  for (int i = 0; i < MI; ++i) a[i] = *reinterpret_cast<const float4*>(As + pa0 + i * 8 * A_STRIDE);
#pragma unroll
  for (int g = 0; g < 4; ++g) b[0][g] = *reinterpret_cast<const float4*>(Bs + pb0 + g * 16);

  int ca = pa0;
  int cb = pb0;
  const int halves = 2 * nT;
#pragma unroll 1
  for (int h = 0; h < halves; ++h) {
    int na = ca + 8;
    int nb = cb + 8 * 128;
#pragma unroll
    for (int kk = 0; kk < 8; ++kk) {
      if (kk == 7) {
        if (h & 1) {
          // the next tile has arrived, and nobody reads this one any more
          copy_wait<0>();
          __syncthreads();
          const int t = h >> 1;
          if (t + 2 < nT) load(t + 2, t & 1);
          copy_commit();
          const int s2 = (t + 1) & 1;
          na = pa0 + s2 * A_STAGE;
          nb = pb0 + s2 * B_STAGE;
        }
      }
      const int q = kk < 7 ? cb + (kk + 1) * 128 : nb;
#pragma unroll
      for (int g = 0; g < 4; ++g) b[(kk + 1) & 1][g] = *reinterpret_cast<const float4*>(Bs + q + g * 16);
#pragma unroll
      for (int i = 0; i < MI; ++i) {
        const float av = (kk & 3) == 0 ? a[i].x : (kk & 3) == 1 ? a[i].y : (kk & 3) == 2 ? a[i].z : a[i].w;
#pragma unroll
        for (int g = 0; g < 4; ++g) {
          const float4 bv = b[kk & 1][g];
          acc[i][4 * g + 0] = fmaf(av, bv.x, acc[i][4 * g + 0]);
          acc[i][4 * g + 1] = fmaf(av, bv.y, acc[i][4 * g + 1]);
          acc[i][4 * g + 2] = fmaf(av, bv.z, acc[i][4 * g + 2]);
          acc[i][4 * g + 3] = fmaf(av, bv.w, acc[i][4 * g + 3]);
        }
        if ((kk & 3) == 3) {
          const int p = kk == 3 ? ca + 4 : na;
          a[i] = *reinterpret_cast<const float4*>(As + p + i * 8 * A_STRIDE);
        }
      }
    }
    ca = na;
    cb = nb;
  }

#pragma unroll
  for (int i = 0; i < MI; ++i) {
    const int row = wm * 8 * MI + ly + 8 * i;
    if (row < cnt) {
      float* o = out + (size_t)list[row] * N;
#pragma unroll
      for (int g = 0; g < 4; ++g) {
        const int col = n0 + wn * 64 + g * 16 + lx * 4;
        if (VEC) {
          if (col < N)
            *reinterpret_cast<float4*>(o + col) =
                make_float4(acc[i][4 * g + 0], acc[i][4 * g + 1], acc[i][4 * g + 2], acc[i][4 * g + 3]);
        } else {
#pragma unroll
          for (int j = 0; j < 4; ++j)
            if (col + j < N) o[col + j] = acc[i][4 * g + j];
        }
      }
    }
  }
}

__global__ void __launch_bounds__(128, 2)
    expert_product(const float* __restrict__ x, const int* __restrict__ rows, const int* __restrict__ counts,
                   const float* __restrict__ W, float* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(16) float As[2 * A_STAGE];
  __shared__ __align__(16) float Bs[2 * B_STAGE];

  // Find this block's tile: large tiles of all experts first, then those of 33 to 64 rows, then the smallest.
  const int E = (int)gridDim.y - (M + 127) / 128;
  int t = blockIdx.y;
  int e = -1, m0 = 0, cnt = 0;
  for (int cls = 0; cls < 3 && e < 0; ++cls) {
    for (int i = 0; i < E; ++i) {
      const int c = counts[i];
      const int full = c >> 7;
      const int rest = c & 127;
      int n, first;
      if (cls == 0) {
        n = full + (rest > 64 ? 1 : 0);
        first = 0;
      } else if (cls == 1) {
        n = (rest > 32 && rest <= 64) ? 1 : 0;
        first = full;
      } else {
        n = (rest > 0 && rest <= 32) ? 1 : 0;
        first = full;
      }
      if (t < n) {
        e = i;
        m0 = (first + t) * 128;
        cnt = min(128, c - m0);
        break;
      }
      t -= n;
    }
  }
  if (e < 0) return;

  const int* list = rows + (size_t)e * M + m0;
  const float* We = W + (size_t)e * K * N;
  const int n0 = blockIdx.x * 128;
  const bool vec = ((K & 3) == 0) && ((N & 3) == 0) &&
                   ((((uintptr_t)x | (uintptr_t)W | (uintptr_t)out) & 15) == 0);
  if (vec) {
    if (cnt > 64)
      product_tile<8, true>(x, list, cnt, We, out, N, K, n0, As, Bs);
    else if (cnt > 32)
      product_tile<4, true>(x, list, cnt, We, out, N, K, n0, As, Bs);
    else
      product_tile<2, true>(x, list, cnt, We, out, N, K, n0, As, Bs);
  } else {
    product_tile<8, false>(x, list, cnt, We, out, N, K, n0, As, Bs);
  }
}
