// Logarithm of the density of a mixture of K normal distributions with diagonal precisions: the parameters are
// transposed once, then each block takes 128 points through all distributions, 16 x 8 distances per thread.

//@ scratch root_t: f32[round_up(D, 8), round_up(K, 128)]
//@ scratch mean_t: f32[round_up(D, 8), round_up(K, 128)]
//@ scratch shift_t: f32[round_up(D, 8), round_up(K, 128)]
//@ scratch offset_p: f32[round_up(K, 128)]
//@ scratch flags: i32[round_up(K, 128) / 32, ceil_div(D, 32)]
//@ launch prepare<<<(round_up(K, 128) / 32, ceil_div(D, 32)), (32, 8)>>>(mean, root, offset, root_t, mean_t, shift_t, offset_p, flags, K, D)
//@ launch gaussian_mixture<<<ceil_div(M, 128), 128>>>(x, root_t, mean_t, shift_t, offset_p, flags, out, M, K, D)

// Transposes to [d][k], padded with zeros; the offsets are padded with -infinity. A flag tells whether
// some mean * root of the tile is too large (or no number) for the factored form.
__global__ void __launch_bounds__(256)
    prepare(const float* __restrict__ mean, const float* __restrict__ root, const float* __restrict__ offset,
            float* __restrict__ root_t, float* __restrict__ mean_t, float* __restrict__ shift_t,
            float* __restrict__ offset_p, int* __restrict__ flags, int K, int D) {
  __shared__ float ms[32][33];
  __shared__ float rs[32][33];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int k0 = blockIdx.x * 32, d0 = blockIdx.y * 32;
  const int Kp = (K + 127) / 128 * 128;
  const int Dp = (D + 7) / 8 * 8;
  int bad = 0;
#pragma unroll
  for (int i = ty; i < 32; i += 8) {
    const int k = k0 + i, d = d0 + tx;
    float m = 0.0f, r = 0.0f;
    if (k < K && d < D) {
      m = mean[(size_t)k * D + d];
      r = root[(size_t)k * D + d];
    }
    ms[i][tx] = m;
    rs[i][tx] = r;
    if (!(fabsf(m * r) <= 16.0f)) bad = 1;
  }
  bad = __syncthreads_or(bad);
#pragma unroll
  for (int i = ty; i < 32; i += 8) {
    const int d = d0 + i, k = k0 + tx;
    if (d < Dp) {
      const float m = ms[tx][i], r = rs[tx][i];
      const size_t at = (size_t)d * Kp + k;
      root_t[at] = r;
      mean_t[at] = m;
      shift_t[at] = -(m * r);
    }
  }
  if (ty == 0) {
    if (tx == 0) flags[blockIdx.y * gridDim.x + blockIdx.x] = bad ? 1 : 0;
    if (blockIdx.y == 0) {
      const int k = k0 + tx;
      offset_p[k] = (k < K) ? offset[k] : __int_as_float((int)0xff800000u);
    }
  }
}

__device__ __forceinline__ void copy16(float* dst, const float* src) {
  unsigned d = (unsigned)__cvta_generic_to_shared(dst);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(d), "l"(src) : "memory");
}

__device__ __forceinline__ void copies_done() {
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}

// exp of a difference that is not above zero; what underflows here is nothing next to a sum of at least one
__device__ __forceinline__ float exp_diff(float v) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v * 1.4426950408889634f));
  return y;
}

__device__ __forceinline__ void load_fragments(float (&xv)[16], float (&rv)[8], float (&cv)[8], const float* X,
                                               const float* P) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 v = *reinterpret_cast<const float4*>(X + i * 32);
    xv[i * 4 + 0] = v.x;
    xv[i * 4 + 1] = v.y;
    xv[i * 4 + 2] = v.z;
    xv[i * 4 + 3] = v.w;
  }
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const float4 r = *reinterpret_cast<const float4*>(P + j * 32);
    rv[j * 4 + 0] = r.x;
    rv[j * 4 + 1] = r.y;
    rv[j * 4 + 2] = r.z;
    rv[j * 4 + 3] = r.w;
    const float4 c = *reinterpret_cast<const float4*>(P + 1024 + j * 32);
    cv[j * 4 + 0] = c.x;
    cv[j * 4 + 1] = c.y;
    cv[j * 4 + 2] = c.z;
    cv[j * 4 + 3] = c.w;
  }
}

template <bool EXACT>
__device__ __forceinline__ void accumulate(float (&acc)[16][8], const float (&xv)[16], const float (&rv)[8],
                                           const float (&cv)[8]) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float z = EXACT ? (xv[i] - cv[j]) * rv[j] : fmaf(xv[i], rv[j], cv[j]);
      acc[i][j] = fmaf(z, z, acc[i][j]);
    }
  }
}

// Threads keep the maximum and the sum of their distributions for 16 points in mostS and sumS.
template <bool EXACT>
__device__ __forceinline__ void mixture(const float* __restrict__ x, const float* __restrict__ rootT,
                                        const float* __restrict__ secondT, const float* __restrict__ offsetP, int M,
                                        int K, int D, float* Xs, float* Ps, float* mostS, float* sumS) {
  constexpr int ROW = 136;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wm = warp >> 1;
  const int wk = warp & 1;
  const int lm = (lane & 1) | ((lane >> 1) & 2);
  const int lk = ((lane >> 1) & 1) | ((lane >> 2) & 6);
  const int slot = wk * 32 + wm * 66 + lane;

  const int Kp = (K + 127) / 128 * 128;
  const int KT = Kp / 128;
  const int DC = (D + 7) / 8;
  const bool vec = (D & 3) == 0;

  // what this thread brings of x: a quad of d of two points
  const int aq = tid & 1;
  const int ar = tid >> 1;
  int m0 = blockIdx.x * 128 + ar;
  int m1 = m0 + 64;
  if (m0 >= M) m0 = M - 1;
  if (m1 >= M) m1 = M - 1;
  const float* const xp0 = x + (size_t)m0 * D + aq * 4;
  const float* const xp1 = x + (size_t)m1 * D + aq * 4;
  float* const xSt = Xs + aq * 512 + (ar ^ (aq << 4));

  // what this thread brings of the parameters
  const int pd = tid >> 5;
  const int pk = (tid & 31) * 4;
  const size_t pAt = (size_t)pd * Kp + pk;
  const size_t pHalf = (size_t)4 * Kp;
  float* const pSt = Ps + pd * 128 + pk;

  float4 s0, s1;

  auto loadX = [&](int dc) {
    const int d = dc * 8 + aq * 4;
    s0 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    s1 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float* p0 = xp0 + dc * 8;
    const float* p1 = xp1 + dc * 8;
    if (vec) {
      if (d < D) {
        s0 = __ldg(reinterpret_cast<const float4*>(p0));
        s1 = __ldg(reinterpret_cast<const float4*>(p1));
      }
    } else {
      if (d + 0 < D) { s0.x = p0[0]; s1.x = p1[0]; }
      if (d + 1 < D) { s0.y = p0[1]; s1.y = p1[1]; }
      if (d + 2 < D) { s0.z = p0[2]; s1.z = p1[2]; }
      if (d + 3 < D) { s0.w = p0[3]; s1.w = p1[3]; }
    }
  };
  auto storeX = [&](int stage) {
    float* s = xSt + stage * 1024;
    s[0 * 128] = s0.x;
    s[1 * 128] = s0.y;
    s[2 * 128] = s0.z;
    s[3 * 128] = s0.w;
    s[0 * 128 + 64] = s1.x;
    s[1 * 128 + 64] = s1.y;
    s[2 * 128 + 64] = s1.z;
    s[3 * 128 + 64] = s1.w;
  };
  auto loadP = [&](int kt, int dc, int stage) {
    const size_t at = pAt + (size_t)dc * 8 * Kp + kt * 128;
    float* s = pSt + stage * 2048;
    copy16(s, rootT + at);
    copy16(s + 512, rootT + at + pHalf);
    copy16(s + 1024, secondT + at);
    copy16(s + 1024 + 512, secondT + at + pHalf);
  };

  const int xBase = wm * 16 + lm * 4;
  const int kBase = wk * 64 + lk * 4;

  // the thread's own slots, no one else reads them before the end
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    mostS[i * ROW + slot] = -3.0e38f;
    sumS[i * ROW + slot] = 0.0f;
  }

  float acc[16][8];
  float xv[2][16];
  float rv[2][8];
  float cv[2][8];

  int stage = 0;
  loadP(0, 0, 0);
  loadX(0);
  storeX(0);
  copies_done();
  __syncthreads();
  load_fragments(xv[0], rv[0], cv[0], Xs + xBase, Ps + kBase);

#pragma unroll 1
  for (int kt = 0; kt < KT; ++kt) {
#pragma unroll
    for (int i = 0; i < 16; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

#pragma unroll 1
    for (int dc = 0; dc < DC; ++dc) {
      // the next tile; behind the last one the first one again, which nothing uses
      int nd = dc + 1, nk = kt;
      if (nd == DC) {
        nd = 0;
        nk = (kt + 1 < KT) ? kt + 1 : 0;
      }
      loadX(nd);
      loadP(nk, nd, stage ^ 1);

      const float* X = Xs + stage * 1024 + xBase;
      const float* P = Ps + stage * 2048 + kBase;
#pragma unroll 1
      for (int p = 0; p < 4; ++p) {
        load_fragments(xv[1], rv[1], cv[1], X + 128, P + 128);
        accumulate<EXACT>(acc, xv[0], rv[0], cv[0]);
        if (p == 3) {
          stage ^= 1;
          storeX(stage);
          copies_done();
          __syncthreads();
          X = Xs + stage * 1024 + xBase;
          P = Ps + stage * 2048 + kBase;
        } else {
          X = Xs + stage * 1024 + (p + 1) * 256 + (xBase ^ (((p + 1) >> 1) << 4));
          P += 256;
        }
        load_fragments(xv[0], rv[0], cv[0], X, P);
        accumulate<EXACT>(acc, xv[1], rv[1], cv[1]);
      }
    }

    // the distances of 16 points to 8 distributions are complete
    float off[8];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float4 v = __ldg(reinterpret_cast<const float4*>(offsetP + kt * 128 + kBase + j * 32));
      off[j * 4 + 0] = v.x;
      off[j * 4 + 1] = v.y;
      off[j * 4 + 2] = v.z;
      off[j * 4 + 3] = v.w;
    }
    if (kt * 128 + 128 > K) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (kt * 128 + kBase + (j >> 2) * 32 + (j & 3) >= K) {
#pragma unroll
          for (int i = 0; i < 16; ++i) acc[i][j] = 0.0f;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float old = mostS[i * ROW + slot];
      float now = old;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        acc[i][j] = fmaf(-0.5f, acc[i][j], off[j]);
        now = fmaxf(now, acc[i][j]);
      }
      float sum = sumS[i * ROW + slot] * exp_diff(old - now);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum += exp_diff(acc[i][j] - now);
      mostS[i * ROW + slot] = now;
      sumS[i * ROW + slot] = sum;
    }
  }
}

__global__ void __launch_bounds__(128, 2)
    gaussian_mixture(const float* __restrict__ x, const float* __restrict__ root_t, const float* __restrict__ mean_t,
                     const float* __restrict__ shift_t, const float* __restrict__ offset_p,
                     const int* __restrict__ flags, float* __restrict__ out, int M, int K, int D) {
  constexpr int ROW = 136;
  __shared__ __align__(16) float Xs[2 * 1024];
  __shared__ __align__(16) float Ps[2 * 2048];
  __shared__ __align__(16) float mostS[16 * ROW];
  __shared__ __align__(16) float sumS[16 * ROW];

  const int tid = threadIdx.x;
  const int G = ((K + 127) / 128 * 4) * ((D + 31) / 32);
  int bad = 0;
  for (int g = tid; g < G; g += 128) bad |= flags[g];
  bad = __syncthreads_or(bad);

  if (bad)
    mixture<true>(x, root_t, mean_t, offset_p, M, K, D, Xs, Ps, mostS, sumS);
  else
    mixture<false>(x, root_t, shift_t, offset_p, M, K, D, Xs, Ps, mostS, sumS);

  __syncthreads();

  // one thread for each point combines the 16 threads that saw it
  const int wm = (tid >> 4) & 1;
  const int lm = (tid >> 2) & 3;
  const int row = (tid >> 5) * 4 + (tid & 3);
  const int first = row * ROW + wm * 66 + ((lm & 1) | ((lm >> 1) << 2));
  float most = -3.0e38f;
#pragma unroll
  for (int t = 0; t < 16; ++t) {
    const int at = first + (t >> 3) * 32 + ((t & 1) << 1) + (((t >> 1) & 3) << 3);
    most = fmaxf(most, mostS[at]);
  }
  float sum = 0.0f;
#pragma unroll
  for (int t = 0; t < 16; ++t) {
    const int at = first + (t >> 3) * 32 + ((t & 1) << 1) + (((t >> 1) & 3) << 3);
    sum += sumS[at] * exp_diff(mostS[at] - most);
  }
  const int m = blockIdx.x * 128 + tid;
  if (m < M) out[m] = most + logf(sum);
}
