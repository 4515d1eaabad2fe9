// Two products of one input, and one result gated by the other, in one launch: 128x128 of both products for each block.

//@ launch gated_projection<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(x, W, V, out, M, N, K)
constexpr int BM = 128;
constexpr int BN = 128;
constexpr int BK = 8;
constexpr int LDA = BM + 4;
constexpr int STAGES = 3;

__device__ __forceinline__ void copy16(unsigned dst, const float* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}

__device__ __forceinline__ void copy4(unsigned dst, const float* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(dst), "l"(src) : "memory");
}

__device__ __forceinline__ void copy4_or_zero(unsigned dst, const float* src, bool ok) {
  int n = ok ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(n) : "memory");
}

__device__ __forceinline__ float gated(float g, float v) {
  return g / (1.0f + expf(-g)) * v;
}

__global__ void __launch_bounds__(256, 1) gated_projection(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V, float* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(16) float sA[STAGES][BK][LDA];
  __shared__ __align__(16) float sW[STAGES][BK][BN];
  __shared__ __align__(16) float sV[STAGES][BK][BN];

  const int tid = threadIdx.x;
  const int warp = tid >> 5;
  const int lane = tid & 31;
  const int row0 = blockIdx.y * BM;
  const int col0 = blockIdx.x * BN;
  const int tiles = (K + BK - 1) / BK;
  const bool full = row0 + BM <= M && col0 + BN <= N && K % BK == 0 && (N & 3) == 0;

  // what this thread copies
  const int ak = tid & 7;
  const int am = tid >> 3;
  const int bk = tid >> 5;
  const int bn = (tid & 31) * 4;
  const unsigned dstA = (unsigned)__cvta_generic_to_shared(&sA[0][ak][am]);
  const unsigned dstW = (unsigned)__cvta_generic_to_shared(&sW[0][bk][bn]);
  const unsigned dstV = (unsigned)__cvta_generic_to_shared(&sV[0][bk][bn]);
  const float* px = x + ((size_t)(row0 + am) * K + ak);
  const float* pw = W + ((size_t)bk * N + col0 + bn);
  const float* pv = V + ((size_t)bk * N + col0 + bn);
  const size_t rows32 = (size_t)32 * K;
  const size_t stepB = (size_t)BK * N;

  auto fetch = [&](int tile, int stage) {
    if (tile < tiles) {
      const unsigned da = dstA + stage * (BK * LDA * 4);
      const unsigned dw = dstW + stage * (BK * BN * 4);
      const unsigned dv = dstV + stage * (BK * BN * 4);
      if (full) {
        copy16(dw, pw);
        copy16(dv, pv);
        copy4(da, px);
        copy4(da + 128, px + rows32);
        copy4(da + 256, px + 2 * rows32);
        copy4(da + 384, px + 3 * rows32);
        px += BK;
        pw += stepB;
        pv += stepB;
      } else {
        const int ka = tile * BK + ak;
#pragma unroll 1
        for (int q = 0; q < 4; ++q) {
          const int r = row0 + am + q * 32;
          const bool ok = r < M && ka < K;
          copy4_or_zero(da + q * 128, ok ? x + ((size_t)r * K + ka) : x, ok);
        }
        const int kb = tile * BK + bk;
#pragma unroll 1
        for (int q = 0; q < 4; ++q) {
          const int c = col0 + bn + q;
          const bool ok = kb < K && c < N;
          const size_t off = ok ? (size_t)kb * N + c : 0;
          copy4_or_zero(dw + q * 4, W + off, ok);
          copy4_or_zero(dv + q * 4, V + off, ok);
        }
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };

  // what this thread computes: 8 rows by 8 columns of both products
  const int rm = (warp >> 2) * 64 + (lane >> 2) * 4;
  const int cn = (warp & 3) * 32 + (lane & 3) * 4;

  float accW[8][8], accV[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      accW[i][j] = 0.0f;
      accV[i][j] = 0.0f;
    }
  }
  float fa[2][8], fw[2][8], fv[2][8];

  auto fragment = [&](int stage, int k, int b) {
    *reinterpret_cast<float4*>(&fa[b][0]) = *reinterpret_cast<const float4*>(&sA[stage][k][rm]);
    *reinterpret_cast<float4*>(&fa[b][4]) = *reinterpret_cast<const float4*>(&sA[stage][k][rm + 32]);
    *reinterpret_cast<float4*>(&fw[b][0]) = *reinterpret_cast<const float4*>(&sW[stage][k][cn]);
    *reinterpret_cast<float4*>(&fw[b][4]) = *reinterpret_cast<const float4*>(&sW[stage][k][cn + 16]);
    *reinterpret_cast<float4*>(&fv[b][0]) = *reinterpret_cast<const float4*>(&sV[stage][k][cn]);
    *reinterpret_cast<float4*>(&fv[b][4]) = *reinterpret_cast<const float4*>(&sV[stage][k][cn + 16]);
  };

  fetch(0, 0);
  fetch(1, 1);
  asm volatile("cp.async.wait_group 1;\n" ::: "memory");
  __syncthreads();
  fragment(0, 0, 0);

  int stage = 0;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const int following = stage + 1 == STAGES ? 0 : stage + 1;
    const int free_stage = following + 1 == STAGES ? 0 : following + 1;
    fetch(tile + 2, free_stage);
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const int b = k & 1;
      if (k + 1 < BK) {
        fragment(stage, k + 1, b ^ 1);
      } else {
        asm volatile("cp.async.wait_group 1;\n" ::: "memory");
        __syncthreads();
        if (tile + 1 < tiles) {
          fragment(following, 0, b ^ 1);
        }
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          accW[i][j] = fmaf(fa[b][i], fw[b][j], accW[i][j]);
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          accV[i][j] = fmaf(fa[b][i], fv[b][j], accV[i][j]);
        }
      }
    }
    stage = following;
  }
  asm volatile("cp.async.wait_all;\n" ::: "memory");

  const bool wide = (N & 3) == 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int r = row0 + rm + (i < 4 ? i : i + 28);
    if (r < M) {
      float* o = out + (size_t)r * N;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int c = col0 + cn + h * 16;
        float4 y;
        y.x = gated(accW[i][h * 4 + 0], accV[i][h * 4 + 0]);
        y.y = gated(accW[i][h * 4 + 1], accV[i][h * 4 + 1]);
        y.z = gated(accW[i][h * 4 + 2], accV[i][h * 4 + 2]);
        y.w = gated(accW[i][h * 4 + 3], accV[i][h * 4 + 3]);
        if (wide) {
          if (c < N) {
            *reinterpret_cast<float4*>(o + c) = y;
          }
        } else {
          if (c < N) o[c] = y.x;
          if (c + 1 < N) o[c + 1] = y.y;
          if (c + 2 < N) o[c + 2] = y.z;
          if (c + 3 < N) o[c + 3] = y.w;
        }
      }
    }
  }
}
