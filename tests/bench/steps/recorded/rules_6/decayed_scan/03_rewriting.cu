// A linear recurrence along the steps. A block streams 64 channels of one sequence through shared memory,
// its warps share the steps of each tile.

//@ launch decayed_scan<<<B * ceil_div(C, 64), 256, 204800>>>(x, a, out, B, T, C)

constexpr int kStages = 6;
constexpr int kWarps = 8;
constexpr int kRows = 8;                    // steps of a warp in a tile
constexpr int kTileT = kWarps * kRows;      // 64 steps
constexpr int kTileC = 64;                  // channels of a block
constexpr int kPlane = kTileT * kTileC;     // floats of one input in a stage
constexpr int kStage = 2 * kPlane;          // floats of a stage (x, then a)

__device__ __forceinline__ void copy16(unsigned dst, const float* src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy4(unsigned dst, const float* src, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
template <int N>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

// A warp copies exactly the rows it will read itself.
template <bool kVector>
__device__ __forceinline__ void fetch_tile(const float* x, const float* a, unsigned stage, long long base,
                                           int tile, int warp, int lane, int c0, int T, int C) {
  if (kVector) {
    const int col = (lane & 15) * 4;
    const bool inside = c0 + col < C;
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) {
      const int row = warp * kRows + (lane >> 4) + 2 * i;
      const int t = tile * kTileT + row;
      const bool valid = inside && t < T;
      const long long at = valid ? base + (long long)t * C + c0 + col : 0;
      const unsigned dst = stage + (unsigned)(row * kTileC + col) * 4u;
      copy16(dst, x + at, valid ? 16 : 0);
      copy16(dst + kPlane * 4u, a + at, valid ? 16 : 0);
    }
  } else {
#pragma unroll 4
    for (int i = 0; i < kRows * 2; ++i) {
      const int row = warp * kRows + (i >> 1);
      const int col = lane + (i & 1) * 32;
      const int t = tile * kTileT + row;
      const bool valid = c0 + col < C && t < T;
      const long long at = valid ? base + (long long)t * C + c0 + col : 0;
      const unsigned dst = stage + (unsigned)(row * kTileC + col) * 4u;
      copy4(dst, x + at, valid ? 4 : 0);
      copy4(dst + kPlane * 4u, a + at, valid ? 4 : 0);
    }
  }
}

template <bool kVector>
__device__ __forceinline__ void scan_channels(const float* x, const float* a, float* out, float* memory,
                                              int T, int C) {
  const int warp = threadIdx.x >> 5;
  const int lane = threadIdx.x & 31;
  const int groups = (C + kTileC - 1) / kTileC;
  const int b = blockIdx.x / groups;
  const int c0 = (blockIdx.x - b * groups) * kTileC;
  const long long base = (long long)b * T * C;
  const int tiles = (T + kTileT - 1) / kTileT;

  float4* parts = reinterpret_cast<float4*>(memory + kStages * kStage);  // [2][kWarps][32]
  const unsigned memory_at = (unsigned)__cvta_generic_to_shared(memory);

#pragma unroll 1
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < tiles) fetch_tile<kVector>(x, a, memory_at + s * (kStage * 4u), base, s, warp, lane, c0, T, C);
    copy_commit();
  }

  const int c = c0 + lane * 2;
  float carry0 = 0.0f, carry1 = 0.0f;
  int stage = 0;
  int free_stage = kStages - 1;

#pragma unroll 1
  for (int k = 0; k < tiles; ++k) {
    copy_wait<kStages - 2>();
    __syncwarp();

    // The stage read in the round before is free for this warp's rows.
    if (k + kStages - 1 < tiles) {
      fetch_tile<kVector>(x, a, memory_at + free_stage * (kStage * 4u), base, k + kStages - 1, warp, lane, c0, T, C);
    }
    copy_commit();

    const float* xs = memory + stage * kStage + warp * kRows * kTileC + lane * 2;
    const float* as = xs + kPlane;
    float2 xv[kRows], av[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      xv[i] = *reinterpret_cast<const float2*>(xs + i * kTileC);
      av[i] = *reinterpret_cast<const float2*>(as + i * kTileC);
    }

    float decay0 = av[0].x, decay1 = av[0].y;
    float sum0 = xv[0].x, sum1 = xv[0].y;
#pragma unroll
    for (int i = 1; i < kRows; ++i) {
      decay0 *= av[i].x;
      decay1 *= av[i].y;
      sum0 = fmaf(av[i].x, sum0, xv[i].x);
      sum1 = fmaf(av[i].y, sum1, xv[i].y);
    }

    float4* shared_parts = parts + (k & 1) * (kWarps * 32);
    shared_parts[warp * 32 + lane] = make_float4(decay0, decay1, sum0, sum1);
    __syncthreads();

    float state0 = carry0, state1 = carry1;
#pragma unroll
    for (int j = 0; j < kWarps; ++j) {
      const float4 part = shared_parts[j * 32 + lane];
      if (j == warp) {
        state0 = carry0;
        state1 = carry1;
      }
      carry0 = fmaf(part.x, carry0, part.z);
      carry1 = fmaf(part.y, carry1, part.w);
    }

    const int t0 = k * kTileT + warp * kRows;
    float* to = out + base + (long long)t0 * C + c;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      state0 = fmaf(av[i].x, state0, xv[i].x);
      state1 = fmaf(av[i].y, state1, xv[i].y);
      if (t0 + i < T) {
        if (kVector) {
          if (c < C) __stcs(reinterpret_cast<float2*>(to), make_float2(state0, state1));
        } else {
          if (c < C) to[0] = state0;
          if (c + 1 < C) to[1] = state1;
        }
      }
      to += C;
    }

    stage = stage + 1 == kStages ? 0 : stage + 1;
    free_stage = free_stage + 1 == kStages ? 0 : free_stage + 1;
  }
  copy_wait<0>();
}

__global__ void __launch_bounds__(256, 1)
decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  extern __shared__ __align__(128) float memory[];
  const unsigned long long address = (unsigned long long)x | (unsigned long long)a | (unsigned long long)out;
  if ((C & 3) == 0 && (address & 15) == 0) {
    scan_channels<true>(x, a, out, memory, T, C);
  } else {
    scan_channels<false>(x, a, out, memory, T, C);
  }
}
