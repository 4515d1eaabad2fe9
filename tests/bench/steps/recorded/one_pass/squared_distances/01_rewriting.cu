// Squared distances between two sets of points: 128x128 pairs for each block, 8x8 for each thread.

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(q, p, out, M, N, D)
constexpr int TILE = 128;
constexpr int BK = 8;
constexpr int LD = TILE + 4;

__device__ __forceinline__ float4 checked(const float* base, int row, int rows, int d, int D) {
  float4 r = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row < rows) {
    const float* s = base + (size_t)row * D;
    if (d < D) r.x = s[d];
    if (d + 1 < D) r.y = s[d + 1];
    if (d + 2 < D) r.z = s[d + 2];
    if (d + 3 < D) r.w = s[d + 3];
  }
  return r;
}

__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ out, int M, int N, int D) {
  __shared__ __align__(16) float sq[2][BK][LD];
  __shared__ __align__(16) float sp[2][BK][LD];

  const int tid = threadIdx.x;
  const int warp = tid >> 5;
  const int lane = tid & 31;
  const int row0 = blockIdx.y * TILE;
  const int col0 = blockIdx.x * TILE;
  const int tiles = (D + BK - 1) / BK;
  const bool full = row0 + TILE <= M && col0 + TILE <= N && D % BK == 0;

  // what this thread brings: four neighbouring elements of one query and of one point
  const int lr = tid >> 1;
  const int lk = (tid & 1) * 4;
  const float* gq = q + ((size_t)(row0 + lr) * D + lk);
  const float* gp = p + ((size_t)(col0 + lr) * D + lk);
  float4 nq, np;

  auto bring = [&](int tile) {
    if (full) {
      nq = __ldg(reinterpret_cast<const float4*>(gq + tile * BK));
      np = __ldg(reinterpret_cast<const float4*>(gp + tile * BK));
    } else {
      nq = checked(q, row0 + lr, M, tile * BK + lk, D);
      np = checked(p, col0 + lr, N, tile * BK + lk, D);
    }
  };
  auto put = [&](int s) {
    sq[s][lk + 0][lr] = nq.x;
    sq[s][lk + 1][lr] = nq.y;
    sq[s][lk + 2][lr] = nq.z;
    sq[s][lk + 3][lr] = nq.w;
    sp[s][lk + 0][lr] = np.x;
    sp[s][lk + 1][lr] = np.y;
    sp[s][lk + 2][lr] = np.z;
    sp[s][lk + 3][lr] = np.w;
  };

  // what this thread computes
  const int rm = (warp >> 2) * 64 + (lane >> 2) * 4;
  const int cn = (warp & 3) * 32 + (lane & 3) * 4;
  float acc[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      acc[i][j] = 0.0f;
    }
  }
  float fa[2][8], fb[2][8];
  auto fragment = [&](int s, int k, int b) {
    *reinterpret_cast<float4*>(&fa[b][0]) = *reinterpret_cast<const float4*>(&sq[s][k][rm]);
    *reinterpret_cast<float4*>(&fa[b][4]) = *reinterpret_cast<const float4*>(&sq[s][k][rm + 32]);
    *reinterpret_cast<float4*>(&fb[b][0]) = *reinterpret_cast<const float4*>(&sp[s][k][cn]);
    *reinterpret_cast<float4*>(&fb[b][4]) = *reinterpret_cast<const float4*>(&sp[s][k][cn + 16]);
  };

  bring(0);
  put(0);
  __syncthreads();
  fragment(0, 0, 0);

  int s = 0;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const bool more = tile + 1 < tiles;
    if (more) {
      bring(tile + 1);
    }
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const int b = k & 1;
      if (k + 1 < BK) {
        fragment(s, k + 1, b ^ 1);
      } else if (more) {
        put(s ^ 1);
        __syncthreads();
        fragment(s ^ 1, 0, b ^ 1);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float difference = fa[b][i] - fb[b][j];
          acc[i][j] = fmaf(difference, difference, acc[i][j]);
        }
      }
    }
    s ^= 1;
  }

  const bool wide = (N & 3) == 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int r = row0 + rm + (i < 4 ? i : i + 28);
    if (r < M) {
      float* o = out + (size_t)r * N;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int c = col0 + cn + h * 16;
        if (wide) {
          if (c < N) {
            *reinterpret_cast<float4*>(o + c) = make_float4(acc[i][h * 4], acc[i][h * 4 + 1], acc[i][h * 4 + 2], acc[i][h * 4 + 3]);
          }
        } else {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            if (c + j < N) {
              o[c + j] = acc[i][h * 4 + j];
            }
          }
        }
      }
    }
  }
}
