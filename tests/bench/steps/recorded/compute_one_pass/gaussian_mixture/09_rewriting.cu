// Logarithm of the density of a mixture of K normal distributions with diagonal precisions.
// Launch 1 lays the parameters out in slabs of 8 dimensions x 256 components; launch 2 does 64 points a block.

//@ scratch folded: f32[2 * round_up(K, 256) * round_up(D, 8)]
//@ scratch plain: f32[2 * round_up(K, 256) * round_up(D, 8)]
//@ scratch wide: i32[1] zero
//@ launch prepare_mixture<<<round_up(K, 256), 32>>>(mean, root, folded, plain, wide, K, D)
//@ launch gaussian_mixture<<<ceil_div(M, 64), 128, 90880>>>(x, folded, plain, wide, offset, out, M, K, D)

#include <cstdint>

constexpr int BM = 64;                 // points of a block
constexpr int BC = 256;                // components of a tile
constexpr int DC = 8;                  // dimensions of a slab
constexpr int LDX = BM + 4;            // padded row of the transposed tile of x
constexpr int X_FLOATS = DC * LDX;     // 544
constexpr int P_FLOATS = DC * BC;      // 2048
constexpr int STAGE_FLOATS = X_FLOATS + 2 * P_FLOATS;  // 4640
constexpr int STAGES = 4;
constexpr int LDR = BM + 1;            // padded row of the partial results

__global__ void __launch_bounds__(32) prepare_mixture(const float* __restrict__ mean, const float* __restrict__ root,
                                                      float* __restrict__ folded, float* __restrict__ plain,
                                                      int* __restrict__ wide, int K, int D) {
  const int k = blockIdx.x;
  const int lane = threadIdx.x;
  const int nS = (D + DC - 1) / DC;
  const int kt = k / BC;
  const int kc = k % BC;
  float s = 0.0f;
  for (int d = lane; d < nS * DC; d += 32) {
    float r = 0.0f;
    float m = 0.0f;
    if (k < K && d < D) {
      r = root[(size_t)k * D + d];
      m = mean[(size_t)k * D + d];
    }
    const float c = -(m * r);
    s += c * c;
    const size_t idx = (size_t)(kt * nS + d / DC) * (2 * P_FLOATS) + (d % DC) * BC + kc;
    folded[idx] = r;
    folded[idx + P_FLOATS] = c;
    plain[idx] = r;
    plain[idx + P_FLOATS] = m;
  }
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
  // too large (or not a number) for the folded form: take the plain one
  if (lane == 0 && !(s <= 1024.0f)) wide[0] = 1;
}

__device__ __forceinline__ float exp_rel(float a) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a * 1.4426950408889634f));
  return r;
}
__device__ __forceinline__ void cp16(float* dst, const float* src) {
  unsigned d = (unsigned)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(d), "l"(src));
}
__device__ __forceinline__ void cp4(float* dst, const float* src, int bytes) {
  unsigned d = (unsigned)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(d), "l"(src), "r"(bytes));
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N_>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N_) : "memory");
}

// Brings slab g (dimensions 8 * s .. 8 * s + 7, of the tile of components to which g belongs) into its stage.
__device__ __forceinline__ void load_slab(float* smem, const float* __restrict__ x, const float* __restrict__ params,
                                          int g, int s, int G, int m0, int M, int D) {
  if (g < G) {
    const int tid = threadIdx.x;
    float* st = smem + (g & (STAGES - 1)) * STAGE_FLOATS;
    const int dd = tid & 7;
    const int d = s * DC + dd;
    const int bytes = (d < D) ? 4 : 0;
    const int dsafe = (d < D) ? d : 0;
    float* xs = st + dd * LDX + (tid >> 3);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int m = min(m0 + (tid >> 3) + 16 * q, M - 1);
      cp4(xs + 16 * q, x + (size_t)(m * D + dsafe), bytes);
    }
    const float* src = params + (size_t)g * (2 * P_FLOATS) + tid * 4;
    float* dst = st + X_FLOATS + tid * 4;
#pragma unroll
    for (int q = 0; q < 8; ++q) cp16(dst + q * 512, src + q * 512);
  }
  cp_commit();
}

struct Fragment {
  float x[16];
  float r[8];
  float c[8];
};

__device__ __forceinline__ void fetch(Fragment& f, const float* smem, int xo, int po) {
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const float4 v = *reinterpret_cast<const float4*>(smem + xo + q * 16);
    f.x[4 * q] = v.x; f.x[4 * q + 1] = v.y; f.x[4 * q + 2] = v.z; f.x[4 * q + 3] = v.w;
  }
#pragma unroll
  for (int p = 0; p < 2; ++p) {
    const float4 v = *reinterpret_cast<const float4*>(smem + po + p * 32);
    f.r[4 * p] = v.x; f.r[4 * p + 1] = v.y; f.r[4 * p + 2] = v.z; f.r[4 * p + 3] = v.w;
    const float4 w = *reinterpret_cast<const float4*>(smem + po + P_FLOATS + p * 32);
    f.c[4 * p] = w.x; f.c[4 * p + 1] = w.y; f.c[4 * p + 2] = w.z; f.c[4 * p + 3] = w.w;
  }
}

template <bool FOLDED>
__device__ __forceinline__ void accumulate(float (&acc)[16][8], const Fragment& f) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float z;
      if (FOLDED)
        z = fmaf(f.x[i], f.r[j], f.c[j]);
      else
        z = (f.x[i] - f.c[j]) * f.r[j];
      acc[i][j] = fmaf(z, z, acc[i][j]);
    }
  }
}

template <bool FOLDED>
__device__ __forceinline__ void mixture(float* smem, const float* __restrict__ x, const float* __restrict__ params,
                                        const float* __restrict__ offset, float* __restrict__ out, int M, int K,
                                        int D) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int laneM = (lane & 1) | ((lane >> 4) << 1);
  const int laneK = (lane >> 1) & 7;
  const int m0 = blockIdx.x * BM;
  const int nS = (D + DC - 1) / DC;
  const int nKT = (K + BC - 1) / BC;
  const int G = nS * nKT;
  float2* red = reinterpret_cast<float2*>(smem + STAGES * STAGE_FLOATS);

  int lg = 0;  // next slab to load
  int ls = 0;  // its place among the slabs of its tile
#pragma unroll 1
  for (int p = 0; p < STAGES - 1; ++p) {
    load_slab(smem, x, params, lg, ls, G, m0, M, D);
    ++lg;
    if (++ls == nS) ls = 0;
  }
  cp_wait<STAGES - 2>();
  __syncthreads();

  const int xBase = laneM * 4;
  const int pBase = X_FLOATS + warp * 64 + laneK * 4;

  Fragment f0, f1;
  fetch(f0, smem, xBase, pBase);

  float most = -3.0e38f;
  float sum = 0.0f;
  int t = 0;  // pair of dimensions, counted over all slabs
  int xo = xBase;
  int po = pBase;

#pragma unroll 1
  for (int kt = 0; kt < nKT; ++kt) {
    float acc[16][8];
#pragma unroll
    for (int i = 0; i < 16; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

    const int tEnd = t + nS * (DC / 2);
#pragma unroll 1
    for (; t < tEnd; ++t) {
      const int nt = t + 1;
      if ((nt & 3) == 0) {
        // last pair of this slab: the next slab must be there before it is fetched from
        cp_wait<STAGES - 3>();
        __syncthreads();
        load_slab(smem, x, params, lg, ls, G, m0, M, D);
        ++lg;
        if (++ls == nS) ls = 0;
      }
      const int stage = ((nt >> 2) & (STAGES - 1)) * STAGE_FLOATS;
      const int xn = stage + xBase + (nt & 3) * (2 * LDX);
      const int pn = stage + pBase + (nt & 3) * (2 * BC);
      fetch(f1, smem, xo + LDX, po + BC);
      accumulate<FOLDED>(acc, f0);
      fetch(f0, smem, xn, pn);
      accumulate<FOLDED>(acc, f1);
      xo = xn;
      po = pn;
    }

    // the distances of this tile, into one maximum and one sum for each point of the thread
    const int kb = kt * BC + warp * 64 + laneK * 4;
    float off[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int k = kb + (j & 3) + (j >> 2) * 32;
      off[j] = (k < K) ? offset[k] : 0.0f;
    }
    if (kt * BC + BC > K) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int k = kb + (j & 3) + (j >> 2) * 32;
        if (k >= K) {
#pragma unroll
          for (int i = 0; i < 16; ++i) acc[i][j] = __int_as_float(0x7f800000);
        }
      }
    }
    const int slot = warp * 8 + laneK;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float mx = -3.0e38f;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        acc[i][j] = fmaf(-0.5f, acc[i][j], off[j]);
        mx = fmaxf(mx, acc[i][j]);
      }
      float s0 = 0.0f;
      float s1 = 0.0f;
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        s0 += exp_rel(acc[i][j] - mx);
        s1 += exp_rel(acc[i][j + 1] - mx);
      }
      const int row = laneM * 4 + (i & 3) + (i >> 2) * 16;
      red[slot * LDR + row] = make_float2(mx, s0 + s1);
    }
    __syncthreads();
    {
      const float2* part = red + (tid & 1) * 16 * LDR + (tid >> 1);
      float2 v[16];
      float nm = most;
#pragma unroll
      for (int q = 0; q < 16; ++q) {
        v[q] = part[q * LDR];
        nm = fmaxf(nm, v[q].x);
      }
      sum *= exp_rel(most - nm);
#pragma unroll
      for (int q = 0; q < 16; ++q) sum += v[q].y * exp_rel(v[q].x - nm);
      most = nm;
    }
  }

  const float most2 = __shfl_xor_sync(0xffffffffu, most, 1);
  const float sum2 = __shfl_xor_sync(0xffffffffu, sum, 1);
  const float nm = fmaxf(most, most2);
  const float total = sum * exp_rel(most - nm) + sum2 * exp_rel(most2 - nm);
  const int m = m0 + (tid >> 1);
  if ((tid & 1) == 0 && m < M) out[m] = nm + logf(total);
}

__global__ void __launch_bounds__(128, 2)
gaussian_mixture(const float* __restrict__ x, const float* __restrict__ folded, const float* __restrict__ plain,
                 const int* __restrict__ wide, const float* __restrict__ offset, float* __restrict__ out, int M, int K,
                 int D) {
  extern __shared__ __align__(16) float smem[];
  if (wide[0] == 0)
    mixture<true>(smem, x, folded, offset, out, M, K, D);
  else
    mixture<false>(smem, x, plain, offset, out, M, K, D);
}
