// Squared distances between two sets of points, a block for a tile of 128 x 128 pairs, 8 x 8 pairs for each thread.

#define SD_BM 128
#define SD_BN 128
#define SD_BK 8

template <bool VEC>
__device__ __forceinline__ float4 sd_load(const float* __restrict__ src, int row, int d, int rows, int D) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row < rows && d < D) {
    const float* s = src + (size_t)row * (size_t)D + d;
    if (VEC) {
      v = __ldg(reinterpret_cast<const float4*>(s));
    } else {
      v.x = s[0];
      if (d + 1 < D) v.y = s[1];
      if (d + 2 < D) v.z = s[2];
      if (d + 3 < D) v.w = s[3];
    }
  }
  return v;
}

// tiles are [SD_BK][128], the columns of row k swizzled by (k / 4) * 16
__device__ __forceinline__ void sd_store(float* tile, float4 v, int row, int quad) {
  float* s = tile + quad * 4 * 128 + (row ^ (quad * 16));
  s[0] = v.x;
  s[128] = v.y;
  s[256] = v.z;
  s[384] = v.w;
}

template <bool VEC>
__device__ __forceinline__ void sd_tile(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ out,
                                        int M, int N, int D, float* qs, float* ps) {
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int ty = (warp >> 1) * 4 + (lane >> 3);
  const int tx = (warp & 1) * 8 + (lane & 7);
  const int bm = blockIdx.y * SD_BM;
  const int bn = blockIdx.x * SD_BN;
  const int lr = t >> 1;  // row that this thread brings
  const int lq = t & 1;   // its four dimensions

  float acc[8][8];
#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      acc[r][c] = 0.0f;
    }
  }

  float4 sq = sd_load<VEC>(q, bm + lr, lq * 4, M, D);
  float4 sp = sd_load<VEC>(p, bn + lr, lq * 4, N, D);
  sd_store(qs, sq, lr, lq);
  sd_store(ps, sp, lr, lq);
  __syncthreads();

  int cur = 0;
  for (int d0 = 0; d0 < D; d0 += SD_BK) {
    const int dn = d0 + SD_BK;
    if (dn < D) {
      sq = sd_load<VEC>(q, bm + lr, dn + lq * 4, M, D);
      sp = sd_load<VEC>(p, bn + lr, dn + lq * 4, N, D);
    }

    const float* qc = qs + cur * (SD_BK * SD_BM);
    const float* pc = ps + cur * (SD_BK * SD_BN);
#pragma unroll
    for (int k = 0; k < SD_BK; ++k) {
      const float* qp = qc + k * SD_BM + ((ty * 4) ^ ((k >> 2) * 16));
      const float* pp = pc + k * SD_BN + ((tx * 4) ^ ((k >> 2) * 16));
      const float4 a0 = *reinterpret_cast<const float4*>(qp);
      const float4 a1 = *reinterpret_cast<const float4*>(qp + 64);
      const float4 b0 = *reinterpret_cast<const float4*>(pp);
      const float4 b1 = *reinterpret_cast<const float4*>(pp + 64);
      const float av[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      const float bv[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
      for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          const float difference = av[r] - bv[c];
          acc[r][c] = fmaf(difference, difference, acc[r][c]);
        }
      }
    }

    if (dn < D) {
      const int nxt = cur ^ 1;
      sd_store(qs + nxt * (SD_BK * SD_BM), sq, lr, lq);
      sd_store(ps + nxt * (SD_BK * SD_BN), sp, lr, lq);
      __syncthreads();
      cur = nxt;
    }
  }

  const bool wide = (N & 3) == 0;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int i = bm + (r >> 2) * 64 + ty * 4 + (r & 3);
    if (i < M) {
      float* row = out + (size_t)i * (size_t)N;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int j = bn + h * 64 + tx * 4;
        if (wide) {
          if (j < N) {
            __stcs(reinterpret_cast<float4*>(row + j),
                   make_float4(acc[r][h * 4], acc[r][h * 4 + 1], acc[r][h * 4 + 2], acc[r][h * 4 + 3]));
          }
        } else {
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            if (j + c < N) row[j + c] = acc[r][h * 4 + c];
          }
        }
      }
    }
  }
}

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ out, int M, int N, int D) {
  __shared__ __align__(16) float qs[2 * SD_BK * SD_BM];
  __shared__ __align__(16) float ps[2 * SD_BK * SD_BN];
  if ((D & 3) == 0) {
    sd_tile<true>(q, p, out, M, N, D, qs, ps);
  } else {
    sd_tile<false>(q, p, out, M, N, D, qs, ps);
  }
}
