// Squared distances between two sets of points, 8 x 8 pairs for each thread from tiles in shared memory.

#define SD_BM 128
#define SD_BN 128
#define SD_BK 16
#define SD_LD 132

struct SdTiles {
  float a[2][SD_BK][SD_LD];
  float b[2][SD_BK][SD_LD];
};

template <bool FULL>
__device__ __forceinline__ float4 sd_load(const float* src, int row, int col, int rows, int cols) {
  if (FULL) {
    return __ldg(reinterpret_cast<const float4*>(src + (size_t)row * cols + col));
  }
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row < rows) {
    const float* s = src + (size_t)row * cols;
    if (col < cols) v.x = s[col];
    if (col + 1 < cols) v.y = s[col + 1];
    if (col + 2 < cols) v.z = s[col + 2];
    if (col + 3 < cols) v.w = s[col + 3];
  }
  return v;
}

__device__ __forceinline__ void sd_put(float (*tile)[SD_LD], int k, int row, float4 v) {
  tile[k + 0][row] = v.x;
  tile[k + 1][row] = v.y;
  tile[k + 2][row] = v.z;
  tile[k + 3][row] = v.w;
}

template <bool FULL>
__device__ __forceinline__ void sd_block(SdTiles& s, const float* q, const float* p, float* out, int M, int N, int D) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int tx = (lane >> 1) & 7;
  const int ty = ((lane >> 4) << 1) | (lane & 1);
  const int rm = (warp >> 1) * 32 + ty * 4;
  const int cn = (warp & 1) * 64 + tx * 4;
  const int m0 = blockIdx.y * SD_BM;
  const int n0 = blockIdx.x * SD_BN;
  const int lrow = tid >> 2;
  const int lcol = (tid & 3) * 4;

  float sum[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      sum[i][j] = 0.0f;
    }
  }

  float4 a0 = sd_load<FULL>(q, m0 + lrow, lcol, M, D);
  float4 a1 = sd_load<FULL>(q, m0 + lrow + 64, lcol, M, D);
  float4 b0 = sd_load<FULL>(p, n0 + lrow, lcol, N, D);
  float4 b1 = sd_load<FULL>(p, n0 + lrow + 64, lcol, N, D);
  sd_put(s.a[0], lcol, lrow, a0);
  sd_put(s.a[0], lcol, lrow + 64, a1);
  sd_put(s.b[0], lcol, lrow, b0);
  sd_put(s.b[0], lcol, lrow + 64, b1);
  __syncthreads();

  int buf = 0;
  for (int d0 = 0; d0 < D; d0 += SD_BK) {
    const int dn = d0 + SD_BK;
    const bool more = dn < D;
    if (more) {
      a0 = sd_load<FULL>(q, m0 + lrow, dn + lcol, M, D);
      a1 = sd_load<FULL>(q, m0 + lrow + 64, dn + lcol, M, D);
      b0 = sd_load<FULL>(p, n0 + lrow, dn + lcol, N, D);
      b1 = sd_load<FULL>(p, n0 + lrow + 64, dn + lcol, N, D);
    }

    const float* as = &s.a[buf][0][rm];
    const float* bs = &s.b[buf][0][cn];
#pragma unroll
    for (int k = 0; k < SD_BK; ++k) {
      const float4 u0 = *reinterpret_cast<const float4*>(as + k * SD_LD);
      const float4 u1 = *reinterpret_cast<const float4*>(as + k * SD_LD + 16);
      const float4 v0 = *reinterpret_cast<const float4*>(bs + k * SD_LD);
      const float4 v1 = *reinterpret_cast<const float4*>(bs + k * SD_LD + 32);
      const float u[8] = {u0.x, u0.y, u0.z, u0.w, u1.x, u1.y, u1.z, u1.w};
      const float v[8] = {v0.x, v0.y, v0.z, v0.w, v1.x, v1.y, v1.z, v1.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float difference = u[i] - v[j];
          sum[i][j] = fmaf(difference, difference, sum[i][j]);
        }
      }
    }

    if (more) {
      const int nb = buf ^ 1;
      sd_put(s.a[nb], lcol, lrow, a0);
      sd_put(s.a[nb], lcol, lrow + 64, a1);
      sd_put(s.b[nb], lcol, lrow, b0);
      sd_put(s.b[nb], lcol, lrow + 64, b1);
      __syncthreads();
    }
    buf ^= 1;
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = m0 + rm + (i & 3) + (i >> 2) * 16;
    const int col = n0 + cn;
    if (FULL) {
      float* o = out + (size_t)row * N + col;
      __stcs(reinterpret_cast<float4*>(o), make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]));
      __stcs(reinterpret_cast<float4*>(o + 32), make_float4(sum[i][4], sum[i][5], sum[i][6], sum[i][7]));
    } else if (row < M) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int c = col + (j & 3) + (j >> 2) * 32;
        if (c < N) {
          out[(size_t)row * N + c] = sum[i][j];
        }
      }
    }
  }
}

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ out, int M, int N, int D) {
  __shared__ __align__(16) SdTiles s;
  const bool full = D % SD_BK == 0 && (N & 3) == 0 && ((int)blockIdx.y + 1) * SD_BM <= M && ((int)blockIdx.x + 1) * SD_BN <= N;
  if (full) {
    sd_block<true>(s, q, p, out, M, N, D);
  } else {
    sd_block<false>(s, q, p, out, M, N, D);
  }
}
