// Squared distances between two sets of points, register-tiled: 128 x 128 pairs for each block, 8 x 8 for each thread.

__device__ __forceinline__ void copy4(unsigned dst, const float* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(dst), "l"(src) : "memory");
}

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(256, 2) squared_distances(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ out, int M, int N, int D) {
  constexpr int TILE = 128;
  constexpr int BK = 16;
  constexpr int PITCH = TILE + 4;
  __shared__ __align__(16) float Qs[2][BK][PITCH];
  __shared__ __align__(16) float Ps[2][BK][PITCH];

  const int tid = threadIdx.x;
  const int m0 = blockIdx.y * TILE;
  const int n0 = blockIdx.x * TILE;

  if (M % TILE == 0 && N % TILE == 0 && D % BK == 0) {
    const int warp = tid >> 5;
    const int lane = tid & 31;

    // copying: single elements, transposed; a warp writes 32 different banks
    const int ck = lane & 7;
    const int cm = warp * 16 + (lane >> 3);
    const float* qg = q + (size_t)(m0 + cm) * D + ck;
    const float* pg = p + (size_t)(n0 + cm) * D + ck;
    const size_t step = (size_t)4 * D;
    const unsigned qs = (unsigned)__cvta_generic_to_shared(&Qs[0][ck][cm]);
    const unsigned ps = (unsigned)__cvta_generic_to_shared(&Ps[0][ck][cm]);
    constexpr unsigned BUF_BYTES = BK * PITCH * sizeof(float);

    auto fetch = [&](int buf) {
      const float* a = qg;
      const float* b = pg;
#pragma unroll
      for (int mi = 0; mi < 4; ++mi) {
#pragma unroll
        for (int ki = 0; ki < 2; ++ki) {
          const unsigned off = buf * BUF_BYTES + (ki * 8 * PITCH + mi * 4) * (unsigned)sizeof(float);
          copy4(qs + off, a + ki * 8);
          copy4(ps + off, b + ki * 8);
        }
        a += step;
        b += step;
      }
      qg += BK;
      pg += BK;
      asm volatile("cp.async.commit_group;\n" ::: "memory");
    };

    // computing: warps 4 x 2, lanes 4 x 8
    const int rm = (warp >> 1) * 32 + (lane >> 3) * 4;
    const int cn = (warp & 1) * 64 + (lane & 7) * 4;

    float sum[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        sum[i][j] = 0.0f;
      }
    }

    const int tiles = D / BK;
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
        const float4 a0 = *reinterpret_cast<const float4*>(&Qs[buf][k][rm]);
        const float4 a1 = *reinterpret_cast<const float4*>(&Qs[buf][k][rm + 16]);
        const float4 b0 = *reinterpret_cast<const float4*>(&Ps[buf][k][cn]);
        const float4 b1 = *reinterpret_cast<const float4*>(&Ps[buf][k][cn + 32]);
        const float av[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
        const float bv[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            const float difference = av[i] - bv[j];
            sum[i][j] += difference * difference;
          }
        }
      }
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = m0 + rm + (i >> 2) * 16 + (i & 3);
      float* o = out + (size_t)row * N + n0 + cn;
      *reinterpret_cast<float4*>(o) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
      *reinterpret_cast<float4*>(o + 32) = make_float4(sum[i][4], sum[i][5], sum[i][6], sum[i][7]);
    }
  } else {
    const int j = n0 + (tid & 127);
    if (j < N) {
      for (int r = tid >> 7; r < TILE; r += 2) {
        const int i = m0 + r;
        if (i >= M) {
          break;
        }
        float sum = 0.0f;
        for (int d = 0; d < D; ++d) {
          const float difference = q[(size_t)i * D + d] - p[(size_t)j * D + d];
          sum += difference * difference;
        }
        out[(size_t)i * N + j] = sum;
      }
    }
  }
}
