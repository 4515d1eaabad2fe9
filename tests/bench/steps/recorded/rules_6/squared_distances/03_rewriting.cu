// |q|^2 + |p|^2 - 2 q.p with each f32 as three bf16 parts on the tensor cores; pairs that cancel are summed directly.

//@ scratch qs: i32[round_up(M, 128) * ceil_div(D, 32) * 48]
//@ scratch ps: i32[round_up(N, 256) * ceil_div(D, 32) * 48]
//@ scratch qn: f32[round_up(M, 128)]
//@ scratch pn: f32[round_up(N, 256)]
//@ launch split_rows<<<(round_up(M, 128) + round_up(N, 256)) / 8, 256>>>(q, p, qs, ps, qn, pn, M, N, D)
//@ launch squared_distances<<<min(132, ceil_div(M, 128) * ceil_div(N, 256)), 288, 222208>>>(q, p, qs, ps, qn, pn, out, M, N, D)
#include <cuda_bf16.h>

constexpr int kTileM = 128;
constexpr int kTileN = 256;
constexpr int kStages = 3;
constexpr int kPlaneA = kTileM * 64;            // bytes of one part of 32 steps of the queries of a tile
constexpr int kPlaneB = kTileN * 64;
constexpr int kBytesA = 3 * kPlaneA;
constexpr int kBytesB = 3 * kPlaneB;
constexpr int kStageBytes = kBytesA + kBytesB;  // 73728, a multiple of 1024

// One warp for each row: three bf16 parts of each value, in tiles of rows and chunks of 32 steps,
// each part 64 bytes a row with the 64-byte swizzle; and the sum of squares of the row.
__global__ void __launch_bounds__(256)
split_rows(const float* __restrict__ q, const float* __restrict__ p, int* __restrict__ qs, int* __restrict__ ps,
           float* __restrict__ qn, float* __restrict__ pn, int M, int N, int D) {
  const int lane = threadIdx.x & 31;
  const int padded_m = (M + kTileM - 1) / kTileM * kTileM;
  int row = blockIdx.x * 8 + (threadIdx.x >> 5);
  const bool query = row < padded_m;
  if (!query) row -= padded_m;

  const int rows = query ? M : N;
  const int tile_rows = query ? kTileM : kTileN;
  const int plane = tile_rows * 64;
  const float* source = (query ? q : p) + (long long)row * D;
  char* image = reinterpret_cast<char*>(query ? qs : ps);
  float* norms = query ? qn : pn;

  const int chunks = (D + 31) / 32;
  const int tile = row / tile_rows;
  const int r = row - tile * tile_rows;
  const bool vector = (D & 3) == 0 && ((unsigned long long)source & 15) == 0;

  float sum = 0.0f;
  for (int g = lane; g < chunks * 4; g += 32) {
    const int k0 = g * 8;
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = 0.0f;
    if (row < rows) {
      if (vector) {
        if (k0 < D) {
          const float4 t = __ldg(reinterpret_cast<const float4*>(source + k0));
          v[0] = t.x;
          v[1] = t.y;
          v[2] = t.z;
          v[3] = t.w;
        }
        if (k0 + 4 < D) {
          const float4 t = __ldg(reinterpret_cast<const float4*>(source + k0 + 4));
          v[4] = t.x;
          v[5] = t.y;
          v[6] = t.z;
          v[7] = t.w;
        }
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          if (k0 + i < D) v[i] = source[k0 + i];
        }
      }
    }

    unsigned parts[3][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float first = v[2 * i];
      float second = v[2 * i + 1];
      sum = fmaf(first, first, sum);
      sum = fmaf(second, second, sum);
#pragma unroll
      for (int part = 0; part < 3; ++part) {
        const __nv_bfloat162 rounded = __floats2bfloat162_rn(first, second);
        const float2 value = __bfloat1622float2(rounded);
        parts[part][i] = *reinterpret_cast<const unsigned*>(&rounded);
        first -= value.x;
        second -= value.y;
      }
    }

    char* to = image + ((long long)tile * chunks + (g >> 2)) * (3ll * plane) + r * 64 + (((g & 3) ^ ((r >> 1) & 3)) << 4);
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      *reinterpret_cast<uint4*>(to + (long long)part * plane) =
          make_uint4(parts[part][0], parts[part][1], parts[part][2], parts[part][3]);
    }
  }

#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) norms[row] = sum;
}

__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}
__device__ __forceinline__ void bulk_copy(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

#define ACC4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ACC16(i) ACC4(i), ACC4(i + 4), ACC4(i + 8), ACC4(i + 12)

// 64 x 256 sums += 64 x 16 values times 256 x 16 values, both in shared memory.
__device__ __forceinline__ void multiply(float (&d)[128], unsigned long long desc_a, unsigned long long desc_b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, "
      "%72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, "
      "%88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, "
      "%104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, "
      "%120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1, 0, 0;\n"
      "}\n"
      : ACC16(0), ACC16(16), ACC16(32), ACC16(48), ACC16(64), ACC16(80), ACC16(96), ACC16(112)
      : "l"(desc_a), "l"(desc_b), "r"(1));
}

__global__ void __launch_bounds__(288, 1)
squared_distances(const float* __restrict__ q, const float* __restrict__ p, const int* __restrict__ qs,
                  const int* __restrict__ ps, const float* __restrict__ qn, const float* __restrict__ pn, float* out,
                  int M, int N, int D) {
  extern __shared__ unsigned char memory[];
  __shared__ __align__(8) unsigned long long barriers[2 * kStages];

  const unsigned stages_at = ((unsigned)__cvta_generic_to_shared(memory) + 1023u) & ~1023u;
  const unsigned full_at = (unsigned)__cvta_generic_to_shared(barriers);
  const unsigned empty_at = full_at + kStages * 8;
  const int warp = __shfl_sync(0xffffffffu, (int)(threadIdx.x >> 5), 0);
  const int lane = threadIdx.x & 31;

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full_at + s * 8, 1);
      barrier_init(empty_at + s * 8, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    asm volatile("fence.proxy.async;\n" ::: "memory");
  }
  __syncthreads();

  const int tiles_m = (M + kTileM - 1) / kTileM;
  const int tiles_n = (N + kTileN - 1) / kTileN;
  const int tiles = tiles_m * tiles_n;
  const int chunks = (D + 31) / 32;

  int stage = 0;
  unsigned phase = 0;

  if (warp == 8) {
    // The last warp fetches.
    if (lane == 0) {
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int tile_n = tile / tiles_m;
        const int tile_m = tile - tile_n * tiles_m;
        const char* from_a = reinterpret_cast<const char*>(qs) + (long long)tile_m * chunks * kBytesA;
        const char* from_b = reinterpret_cast<const char*>(ps) + (long long)tile_n * chunks * kBytesB;
        for (int chunk = 0; chunk < chunks; ++chunk) {
          barrier_wait(empty_at + stage * 8, phase ^ 1u);
          const unsigned full = full_at + stage * 8;
          const unsigned to = stages_at + stage * kStageBytes;
          barrier_expect(full, kStageBytes);
          bulk_copy(to, from_a, kBytesA, full);
          bulk_copy(to + kBytesA, from_b, kBytesB, full);
          from_a += kBytesA;
          from_b += kBytesB;
          if (++stage == kStages) {
            stage = 0;
            phase ^= 1u;
          }
        }
      }
    }
    return;
  }

  // Two groups of four warps multiply: 64 queries by 256 points each.
  const int group = warp >> 2;
  // 64-byte swizzle, 512 bytes between groups of eight rows.
  const unsigned long long desc_base = (2ull << 62) | (32ull << 32) | (1ull << 16);
  const int odd = lane & 1;
  const bool vector = (N & 3) == 0 && ((unsigned long long)out & 15) == 0;

  float d[128];

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int tile_n = tile / tiles_m;
    const int tile_m = tile - tile_n * tiles_m;

#pragma unroll
    for (int i = 0; i < 128; ++i) d[i] = 0.0f;

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      barrier_wait(full_at + stage * 8, phase);
      const unsigned at = stages_at + stage * kStageBytes;
      const unsigned long long desc_a = desc_base | (unsigned long long)((at + group * (64 * 64)) >> 4);
      const unsigned long long desc_b = desc_base | (unsigned long long)((at + kBytesA) >> 4);

      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const unsigned long long a0 = desc_a + k * 2;
        const unsigned long long a1 = a0 + (kPlaneA >> 4);
        const unsigned long long a2 = a1 + (kPlaneA >> 4);
        const unsigned long long b0 = desc_b + k * 2;
        const unsigned long long b1 = b0 + (kPlaneB >> 4);
        const unsigned long long b2 = b1 + (kPlaneB >> 4);
        multiply(d, a2, b0);
        multiply(d, a0, b2);
        multiply(d, a1, b1);
        multiply(d, a1, b0);
        multiply(d, a0, b1);
        multiply(d, a0, b0);
      }
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");

      __syncwarp();
      if (lane == 0) barrier_arrive(empty_at + stage * 8);
      if (++stage == kStages) {
        stage = 0;
        phase ^= 1u;
      }
    }

    const int row0 = tile_m * kTileM + warp * 16 + (lane >> 2);
    const int col0 = tile_n * kTileN + odd * 8 + ((lane & 2) << 1);
    const float norm_rows[2] = {__ldg(qn + row0), __ldg(qn + row0 + 8)};
    unsigned bad[4] = {0u, 0u, 0u, 0u};

#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const int col = col0 + j * 16;
      const float4 norm_cols = __ldg(reinterpret_cast<const float4*>(pn + col));
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // Neighbouring lanes trade pairs, so that each holds four neighbouring columns.
        const float e0 = d[j * 8 + h * 2];
        const float e1 = d[j * 8 + h * 2 + 1];
        const float f0 = d[j * 8 + 4 + h * 2];
        const float f1 = d[j * 8 + 4 + h * 2 + 1];
        const float got0 = __shfl_xor_sync(0xffffffffu, odd ? e0 : f0, 1);
        const float got1 = __shfl_xor_sync(0xffffffffu, odd ? e1 : f1, 1);
        const float dots[4] = {odd ? got0 : e0, odd ? got1 : e1, odd ? f0 : got0, odd ? f1 : got1};
        const float cols[4] = {norm_cols.x, norm_cols.y, norm_cols.z, norm_cols.w};
        float result[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const float both = norm_rows[h] + cols[c];
          result[c] = fmaf(-2.0f, dots[c], both);
          const bool good = result[c] >= 0.125f * both && both < 1e38f && both > 1e-28f;
          if (!good) bad[j >> 2] |= 1u << ((j & 3) * 8 + h * 4 + c);
        }
        const int row = row0 + h * 8;
        if (row < M) {
          float* to = out + (long long)row * N + col;
          if (vector) {
            if (col < N) __stcs(reinterpret_cast<float4*>(to), make_float4(result[0], result[1], result[2], result[3]));
          } else {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              if (col + c < N) to[c] = result[c];
            }
          }
        }
      }
    }

    // Where the norms cancel (or leave the range), the differences are summed as they are.
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      unsigned mask = bad[w];
      while (mask != 0u) {
        const int bit = __ffs((int)mask) - 1;
        mask &= mask - 1u;
        const int row = row0 + ((bit >> 2) & 1) * 8;
        const int col = col0 + (w * 4 + (bit >> 3)) * 16 + (bit & 3);
        if (row < M && col < N) {
          const float* one = q + (long long)row * D;
          const float* other = p + (long long)col * D;
          float sum = 0.0f;
#pragma unroll 1
          for (int k = 0; k < D; ++k) {
            const float difference = __ldg(one + k) - __ldg(other + k);
            sum = fmaf(difference, difference, sum);
          }
          out[(long long)row * N + col] = sum;
        }
      }
    }
    __syncwarp();
  }
}
