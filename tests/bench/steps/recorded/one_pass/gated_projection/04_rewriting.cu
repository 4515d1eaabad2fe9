// Two products of one input, and one result gated by the other, in one launch: register-tiled f32.

__device__ __forceinline__ void copy4(unsigned dst, const float* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(dst), "l"(src) : "memory");
}

__device__ __forceinline__ void copy16(unsigned dst, const float* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}

__device__ __forceinline__ float gated(float g, float v) {
  return g / (1.0f + expf(-g)) * v;
}

//@ launch project<<<(ceil_div(N, 64), ceil_div(M, 128)), 256>>>(x, W, V, out, M, N, K)
__global__ void __launch_bounds__(256, 2) project(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V, float* __restrict__ out, int M, int N, int K) {
  constexpr int BM = 128;
  constexpr int BN = 64;
  constexpr int BK = 16;
  constexpr int PA = BM + 4;
  __shared__ __align__(16) float As[2][BK][PA];
  __shared__ __align__(16) float Ws[2][BK][BN];
  __shared__ __align__(16) float Vs[2][BK][BN];

  const int tid = threadIdx.x;
  const int m0 = blockIdx.y * BM;
  const int n0 = blockIdx.x * BN;

  if (M % BM == 0 && N % BN == 0 && K % BK == 0) {
    const int warp = tid >> 5;
    const int lane = tid & 31;

    // copying: x by single elements, transposed; W and V by four
    const int ak = lane & 7;
    const int am = warp * 16 + (lane >> 3);
    const float* xg = x + (size_t)(m0 + am) * K + ak;
    const size_t x_step = (size_t)4 * K;
    const int br = tid >> 4;
    const int bc = (tid & 15) * 4;
    const float* wg = W + (size_t)br * N + n0 + bc;
    const float* vg = V + (size_t)br * N + n0 + bc;
    const size_t b_step = (size_t)BK * N;
    const unsigned as = (unsigned)__cvta_generic_to_shared(&As[0][ak][am]);
    const unsigned ws = (unsigned)__cvta_generic_to_shared(&Ws[0][br][bc]);
    const unsigned vs = (unsigned)__cvta_generic_to_shared(&Vs[0][br][bc]);
    constexpr unsigned A_BYTES = BK * PA * sizeof(float);
    constexpr unsigned B_BYTES = BK * BN * sizeof(float);

    auto fetch = [&](int buf) {
      copy16(ws + buf * B_BYTES, wg);
      copy16(vs + buf * B_BYTES, vg);
      const float* p = xg;
#pragma unroll
      for (int mi = 0; mi < 4; ++mi) {
#pragma unroll
        for (int ki = 0; ki < 2; ++ki) {
          copy4(as + buf * A_BYTES + (ki * 8 * PA + mi * 4) * (unsigned)sizeof(float), p + ki * 8);
        }
        p += x_step;
      }
      xg += BK;
      wg += b_step;
      vg += b_step;
      asm volatile("cp.async.commit_group;\n" ::: "memory");
    };

    // computing: warps 4 x 2, lanes 4 x 8, each thread 8 rows and 4 columns of both products
    const int rm = (warp >> 1) * 32 + (lane >> 3) * 4;
    const int cn = (warp & 1) * 32 + (lane & 7) * 4;

    float g[8][4];
    float u[8][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        g[i][j] = 0.0f;
        u[i][j] = 0.0f;
      }
    }

    const int tiles = K / BK;
    fetch(0);
    for (int t = 0; t < tiles; ++t) {
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");
      __syncthreads();
      const int buf = t & 1;
      if (t + 1 < tiles) {
        fetch(buf ^ 1);
      }
#pragma unroll
      for (int k = 0; k < BK; ++k) {
        const float4 a0 = *reinterpret_cast<const float4*>(&As[buf][k][rm]);
        const float4 a1 = *reinterpret_cast<const float4*>(&As[buf][k][rm + 16]);
        const float4 w4 = *reinterpret_cast<const float4*>(&Ws[buf][k][cn]);
        const float4 v4 = *reinterpret_cast<const float4*>(&Vs[buf][k][cn]);
        const float av[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
        const float wv[4] = {w4.x, w4.y, w4.z, w4.w};
        const float vv[4] = {v4.x, v4.y, v4.z, v4.w};
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            g[i][j] += av[i] * wv[j];
          }
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            u[i][j] += av[i] * vv[j];
          }
        }
      }
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = m0 + rm + (i >> 2) * 16 + (i & 3);
      float4 r;
      r.x = gated(g[i][0], u[i][0]);
      r.y = gated(g[i][1], u[i][1]);
      r.z = gated(g[i][2], u[i][2]);
      r.w = gated(g[i][3], u[i][3]);
      *reinterpret_cast<float4*>(out + (size_t)row * N + n0 + cn) = r;
    }
  } else {
    const int j = n0 + (tid & 63);
    if (j < N) {
      for (int r = tid >> 6; r < BM; r += 4) {
        const int i = m0 + r;
        if (i >= M) {
          break;
        }
        float gs = 0.0f;
        float us = 0.0f;
        for (int k = 0; k < K; ++k) {
          const float xv = x[(size_t)i * K + k];
          gs += xv * W[(size_t)k * N + j];
          us += xv * V[(size_t)k * N + j];
        }
        out[(size_t)i * N + j] = gated(gs, us);
      }
    }
  }
}
