// Two products of one input, and one result gated by the other: one launch, a block for a tile of 128 x 64 of both products.

#include <cstdint>

#define GP_BM 128
#define GP_BN 64
#define GP_BK 16

__device__ __forceinline__ void gp_copy16(float* dst, const float* src, int bytes) {
  uint32_t s = (uint32_t)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(s), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ float gp_gate(float g, float v) {
  return g / (1.0f + expf(-g)) * v;
}

template <bool VEC>
__device__ __forceinline__ void gp_load_x(float4 (&st)[2], const float* __restrict__ x, int row0, int k, int M, int K) {
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    const int row = row0 + 64 * s;
    st[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < M) {
      const float* p = x + (size_t)row * K + k;
      if (VEC) {
        if (k < K) st[s] = __ldg(reinterpret_cast<const float4*>(p));
      } else {
        if (k < K) st[s].x = p[0];
        if (k + 1 < K) st[s].y = p[1];
        if (k + 2 < K) st[s].z = p[2];
        if (k + 3 < K) st[s].w = p[3];
      }
    }
  }
}

// xs is [GP_BK][GP_BM], the columns of row k swizzled by (k / 4) * 8
__device__ __forceinline__ void gp_store_x(float* xs, const float4 (&st)[2], int r, int q) {
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    float* p = xs + (q * 4) * GP_BM + ((r + 64 * s) ^ (q * 8));
    p[0] = st[s].x;
    p[GP_BM] = st[s].y;
    p[2 * GP_BM] = st[s].z;
    p[3 * GP_BM] = st[s].w;
  }
}

template <bool VEC>
__device__ __forceinline__ void gp_load_w(float* ws, const float* __restrict__ W, int k, int j, int N, int K) {
  if (VEC) {
    const bool ok = k < K && j < N;
    gp_copy16(ws, ok ? W + (size_t)k * N + j : W, ok ? 16 : 0);
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      ws[e] = (k < K && j + e < N) ? W[(size_t)k * N + j + e] : 0.0f;
    }
  }
}

template <bool VEC>
__device__ __forceinline__ void gp_tile(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V,
                                        float* __restrict__ out, int M, int N, int K, float* xs, float* ws, float* vs) {
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int ty = (warp >> 1) * 4 + (lane >> 3);
  const int tx = (warp & 1) * 8 + (lane & 7);
  const int bm = blockIdx.y * GP_BM;
  const int bn = blockIdx.x * GP_BN;

  const int xr = t >> 2;        // row of x that this thread brings (and 64 behind)
  const int xq = t & 3;         // its four k
  const int wk = t >> 4;        // k of W and V that this thread brings
  const int wj = (t & 15) * 4;  // its four columns

  float g[8][4], h[8][4];
#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      g[r][c] = 0.0f;
      h[r][c] = 0.0f;
    }
  }

  float4 st[2];
  gp_load_x<VEC>(st, x, bm + xr, xq * 4, M, K);
  gp_load_w<VEC>(ws + wk * GP_BN + wj, W, wk, bn + wj, N, K);
  gp_load_w<VEC>(vs + wk * GP_BN + wj, V, wk, bn + wj, N, K);
  gp_store_x(xs, st, xr, xq);
  if (VEC) asm volatile("cp.async.wait_all;\n" ::: "memory");
  __syncthreads();

  int cur = 0;
  for (int k0 = 0; k0 < K; k0 += GP_BK) {
    const int kn = k0 + GP_BK;
    const int nxt = cur ^ 1;
    if (kn < K) {
      gp_load_w<VEC>(ws + nxt * (GP_BK * GP_BN) + wk * GP_BN + wj, W, kn + wk, bn + wj, N, K);
      gp_load_w<VEC>(vs + nxt * (GP_BK * GP_BN) + wk * GP_BN + wj, V, kn + wk, bn + wj, N, K);
      gp_load_x<VEC>(st, x, bm + xr, kn + xq * 4, M, K);
    }

    const float* xc = xs + cur * (GP_BK * GP_BM);
    const float* wc = ws + cur * (GP_BK * GP_BN) + tx * 4;
    const float* vc = vs + cur * (GP_BK * GP_BN) + tx * 4;
#pragma unroll
    for (int k = 0; k < GP_BK; ++k) {
      const float* xp = xc + k * GP_BM + ((ty * 4) ^ ((k >> 2) * 8));
      const float4 a0 = *reinterpret_cast<const float4*>(xp);
      const float4 a1 = *reinterpret_cast<const float4*>(xp + 64);
      const float4 b0 = *reinterpret_cast<const float4*>(wc + k * GP_BN);
      const float4 b1 = *reinterpret_cast<const float4*>(vc + k * GP_BN);
      const float av[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      const float wv[4] = {b0.x, b0.y, b0.z, b0.w};
      const float vv[4] = {b1.x, b1.y, b1.z, b1.w};
#pragma unroll
      for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          g[r][c] = fmaf(av[r], wv[c], g[r][c]);
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          h[r][c] = fmaf(av[r], vv[c], h[r][c]);
        }
      }
    }

    if (kn < K) {
      gp_store_x(xs + nxt * (GP_BK * GP_BM), st, xr, xq);
      if (VEC) asm volatile("cp.async.wait_all;\n" ::: "memory");
      __syncthreads();
      cur = nxt;
    }
  }

  const int j = bn + tx * 4;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int i = bm + (r >> 2) * 64 + ty * 4 + (r & 3);
    if (i < M) {
      float* p = out + (size_t)i * N + j;
      if (VEC) {
        if (j < N) {
          float4 o;
          o.x = gp_gate(g[r][0], h[r][0]);
          o.y = gp_gate(g[r][1], h[r][1]);
          o.z = gp_gate(g[r][2], h[r][2]);
          o.w = gp_gate(g[r][3], h[r][3]);
          *reinterpret_cast<float4*>(p) = o;
        }
      } else {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          if (j + c < N) p[c] = gp_gate(g[r][c], h[r][c]);
        }
      }
    }
  }
}

//@ launch gated_projection<<<(ceil_div(N, 64), ceil_div(M, 128)), 256>>>(x, W, V, out, M, N, K)
__global__ void __launch_bounds__(256, 2) gated_projection(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V,
                                                           float* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(16) float xs[2 * GP_BK * GP_BM];
  __shared__ __align__(16) float ws[2 * GP_BK * GP_BN];
  __shared__ __align__(16) float vs[2 * GP_BK * GP_BN];
  if (((N | K) & 3) == 0) {
    gp_tile<true>(x, W, V, out, M, N, K, xs, ws, vs);
  } else {
    gp_tile<false>(x, W, V, out, M, N, K, xs, ws, vs);
  }
}
