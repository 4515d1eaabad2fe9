#include <cstdint>

// Squared distances between two sets of points: |q|^2 + |p|^2 - 2 q.p on the tensor cores in split TF32, and the
// plain sum of squared differences for every element where this form cancels.
//
// packed: for each 128 points and each 32 dimensions one image of shared memory, 32 KiB: 128 rows of 32 high
//   parts, then the same of low parts; rows of 128 bytes in the 128-byte swizzle. Within the 32 dimensions the order
//   is permuted so that a thread's fragment of q is made of two float4: place 8 * s + 4 * h + t holds dimension
//   16 * h + 4 * t + s.

//@ scratch packed: f32[ceil_div(N, 128) * ceil_div(D, 32), 8192]
//@ scratch qq: f32[M]
//@ scratch pp: f32[N]
//@ launch prepare<<<ceil_div(N, 128) * ceil_div(D, 32) + ceil_div(M + N, 8), 256>>>(q, p, packed, qq, pp, M, N, D)
//@ launch squared_distances<<<min(ceil_div(M, 256) * ceil_div(N, 128), 132), 256, 197632>>>(q, p, packed, qq, pp, out, M, N, D)

constexpr int kStages = 6;
constexpr int kStageFloats = 8192;
constexpr uint32_t kStageBytes = 32768;

__device__ __forceinline__ uint32_t to_tf32(float value) {
  uint32_t bits;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

__global__ void __launch_bounds__(256)
prepare(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ packed, float* __restrict__ qq,
        float* __restrict__ pp, int M, int N, int D) {
  __shared__ float4 tile[2048];
  const int steps = (D + 31) / 32;
  const int images = (N + 127) / 128 * steps;

  if ((int)blockIdx.x >= images) {
    // Norms: one warp for each row of q, then of p.
    const int row = ((int)blockIdx.x - images) * 8 + (int)(threadIdx.x >> 5);
    const int lane = threadIdx.x & 31;
    if (row >= M + N) return;
    const float* from = row < M ? q + (long long)row * D : p + (long long)(row - M) * D;
    float sum = 0.0f;
    for (int d = lane; d < D; d += 32) {
      const float value = from[d];
      sum = fmaf(value, value, sum);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) {
      if (row < M) {
        qq[row] = sum;
      } else {
        pp[row - M] = sum;
      }
    }
    return;
  }

  const int r = threadIdx.x & 127;
  const int h = threadIdx.x >> 7;
  const int point = (int)blockIdx.x / steps * 128 + r;
  const int d0 = (int)blockIdx.x % steps * 32 + 16 * h;
  const float* from = p + (long long)min(point, N - 1) * D;
  const bool wide = D % 4 == 0 && (reinterpret_cast<uintptr_t>(p) & 15) == 0;

  float v[16];
  if (wide) {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (point < N && d0 + 4 * t < D) four = *reinterpret_cast<const float4*>(from + d0 + 4 * t);
      v[4 * t + 0] = four.x;
      v[4 * t + 1] = four.y;
      v[4 * t + 2] = four.z;
      v[4 * t + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int e = 0; e < 16; ++e) v[e] = (point < N && d0 + e < D) ? from[d0 + e] : 0.0f;
  }
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    float hi[4], lo[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const float value = v[4 * t + s];
      hi[t] = __uint_as_float(to_tf32(value));
      lo[t] = __uint_as_float(to_tf32(value - hi[t]));
    }
    const int place = r * 8 + ((2 * s + h) ^ (r & 7));
    tile[place] = make_float4(hi[0], hi[1], hi[2], hi[3]);
    tile[place + 1024] = make_float4(lo[0], lo[1], lo[2], lo[3]);
  }
  __syncthreads();
  float4* to = reinterpret_cast<float4*>(packed + (long long)blockIdx.x * kStageFloats);
#pragma unroll
  for (int i = 0; i < 8; ++i) to[threadIdx.x + 256 * i] = tile[threadIdx.x + 256 * i];
}

__device__ __forceinline__ void wait_barrier(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
}

__device__ __forceinline__ void fetch_stage(uint32_t slot, const float* from, uint32_t barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(kStageBytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(slot),
               "l"(from), "r"(kStageBytes), "r"(barrier)
               : "memory");
}

// d (64 x 64) = [d +] a (64 x 8, registers) * b (8 x 64, shared memory)
__device__ __forceinline__ void multiply(float (&d)[32], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                         uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7,"
      " %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23,"
      " %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, p, 1, 1;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(keep));
}

// Four values of a row of q from dimension k; zeros from D on.
__device__ __forceinline__ void load_four(float* to, const float* row, int k, int D, bool wide) {
  if (wide) {
    const int inside = k < D ? 1 : 0;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %5, 0;\n"
        "mov.f32 %0, 0f00000000;\n"
        "mov.f32 %1, 0f00000000;\n"
        "mov.f32 %2, 0f00000000;\n"
        "mov.f32 %3, 0f00000000;\n"
        "@p ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];\n"
        "}\n"
        : "=&f"(to[0]), "=&f"(to[1]), "=&f"(to[2]), "=&f"(to[3])
        : "l"(row + k), "r"(inside)
        : "memory");
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = k + e < D ? row[k + e] : 0.0f;
  }
}

// True where |q|^2 + |p|^2 - 2 q.p keeps its digits.
__device__ __forceinline__ bool holds(float distance, float norms) {
  return distance >= 0.0625f * norms && norms < 1e37f && norms > 1e-24f;
}

__global__ void __launch_bounds__(256, 1)
squared_distances(const float* __restrict__ q, const float* __restrict__ p, const float* __restrict__ packed,
                  const float* __restrict__ qq, const float* __restrict__ pp, float* __restrict__ out, int M, int N,
                  int D) {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  __shared__ __align__(8) uint64_t barriers[2 * kStages];

  const uint32_t ring = ((uint32_t)__cvta_generic_to_shared(dynamic) + 1023u) & ~1023u;
  const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers);
  const uint32_t empty = full + 8u * kStages;

  const int warp = threadIdx.x >> 5;
  const int lane = threadIdx.x & 31;
  const int t = lane & 3;
  const int row_in_tile = (warp >> 2) * 128 + (warp & 3) * 16 + (lane >> 2);
  const int steps = (D + 31) / 32;
  const int across = (M + 255) / 256;                     // tiles along the queries
  const int tiles = across * ((N + 127) / 128);
  const bool wide = D % 4 == 0 && (reinterpret_cast<uintptr_t>(q) & 15) == 0;
  const bool pairs = N % 2 == 0 && (reinterpret_cast<uintptr_t>(out) & 7) == 0;

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full + 8u * s), "r"(1) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(empty + 8u * s), "r"(8) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();

  // The next stage to fetch (used by thread 0): the stages of all tiles of this block are one sequence.
  int fetch_tile = blockIdx.x;
  int fetch_step = 0;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages && fetch_tile < tiles; ++s) {
      fetch_stage(ring + s * kStageBytes,
                  packed + ((long long)(fetch_tile / across) * steps + fetch_step) * kStageFloats, full + 8u * s);
      if (++fetch_step == steps) {
        fetch_step = 0;
        fetch_tile += gridDim.x;
      }
    }
  }
  __syncwarp();

  float acc[2][2][32];
  float part[32];
#pragma unroll
  for (int e = 0; e < 32; ++e) part[e] = 0.0f;

  // Rows of q that this thread reads: two of each half; rows past the end repeat the last and are never written.
  int row_at[4];
  float raw[16];
  {
    const int m0 = (int)blockIdx.x % across * 256 + row_in_tile;
#pragma unroll
    for (int e = 0; e < 4; ++e) row_at[e] = min(m0 + (e >> 1) * 64 + (e & 1) * 8, M - 1) * D;
  }
  load_four(raw + 0, q + row_at[0], 4 * t, D, wide);
  load_four(raw + 4, q + row_at[0], 16 + 4 * t, D, wide);
  load_four(raw + 8, q + row_at[1], 4 * t, D, wide);
  load_four(raw + 12, q + row_at[1], 16 + 4 * t, D, wide);

  int slot = 0;
  uint32_t parity = 0;
  bool settled = false;                                   // two stages have been read

#pragma unroll 1
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int e = 0; e < 32; ++e) {
      acc[0][0][e] = 0.0f;
      acc[0][1][e] = 0.0f;
      acc[1][0][e] = 0.0f;
      acc[1][1][e] = 0.0f;
    }

#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      // Refill the slot that was read two stages ago.
      settled = settled || slot >= 2;
      if (threadIdx.x == 0 && settled && fetch_tile < tiles) {
        const int last = slot >= 2 ? slot - 2 : slot + kStages - 2;
        wait_barrier(empty + 8u * last, slot >= 2 ? parity : parity ^ 1u);
        fetch_stage(ring + last * kStageBytes,
                    packed + ((long long)(fetch_tile / across) * steps + fetch_step) * kStageFloats,
                    full + 8u * last);
        if (++fetch_step == steps) {
          fetch_step = 0;
          fetch_tile += gridDim.x;
        }
      }
      __syncwarp();
      wait_barrier(full + 8u * slot, parity);
      __syncwarp();

      const uint64_t image = (uint64_t)(((ring + slot * kStageBytes) & 0x3FFFFu) >> 4) | ((uint64_t)1 << 16) |
                             ((uint64_t)64 << 32) | ((uint64_t)1 << 62);

#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t hi[16], lo[16];
#pragma unroll
        for (int e = 0; e < 16; ++e) {
          hi[e] = to_tf32(raw[e]);
          lo[e] = to_tf32(raw[e] - __uint_as_float(hi[e]));
        }
        {
          const int k = (half == 0 ? i : i + 1) * 32 + 4 * t;
          const float* upper = q + row_at[half == 0 ? 2 : 0];
          const float* lower = q + row_at[half == 0 ? 3 : 1];
          load_four(raw + 0, upper, k, D, wide);
          load_four(raw + 4, upper, k + 16, D, wide);
          load_four(raw + 8, lower, k, D, wide);
          load_four(raw + 12, lower, k + 16, D, wide);
        }
        __syncwarp();
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const uint64_t high = image + side * 512;       // 8 KiB further: the other 64 points
          const uint64_t low = high + 1024;               // 16 KiB further: the low parts
#pragma unroll
          for (int e = 0; e < 32; ++e) asm volatile("" : "+f"(part[e])::"memory");
          asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
          for (int s = 0; s < 4; ++s) {
            multiply(part, lo[s], lo[8 + s], lo[4 + s], lo[12 + s], high + 2 * s, s == 0 ? 0 : 1);
            multiply(part, hi[s], hi[8 + s], hi[4 + s], hi[12 + s], low + 2 * s, 1);
          }
#pragma unroll
          for (int s = 0; s < 4; ++s)
            multiply(part, hi[s], hi[8 + s], hi[4 + s], hi[12 + s], high + 2 * s, 1);
          asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
          asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
          for (int e = 0; e < 32; ++e) asm volatile("" : "+f"(part[e])::"memory");
#pragma unroll
          for (int e = 0; e < 32; ++e) acc[half][side][e] += part[e];
        }
      }

      if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty + 8u * slot) : "memory");
      __syncwarp();
      if (++slot == kStages) {
        slot = 0;
        parity ^= 1u;
      }
    }

    // First rows of the next tile, on their way while this tile is written.
    if (tile + (int)gridDim.x < tiles) {
      const int next = (tile + (int)gridDim.x) % across * 256 + row_in_tile;
#pragma unroll
      for (int e = 0; e < 4; ++e) row_at[e] = min(next + (e >> 1) * 64 + (e & 1) * 8, M - 1) * D;
      load_four(raw + 0, q + row_at[0], 4 * t, D, wide);
      load_four(raw + 4, q + row_at[0], 16 + 4 * t, D, wide);
      load_four(raw + 8, q + row_at[1], 4 * t, D, wide);
      load_four(raw + 12, q + row_at[1], 16 + 4 * t, D, wide);
    }

    const int m0 = tile % across * 256 + row_in_tile;
    const int n0 = tile / across * 128 + 2 * t;
    float own[2][2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int low = 0; low < 2; ++low) own[half][low] = qq[min(m0 + half * 64 + low * 8, M - 1)];
    }
    uint32_t weak[2][2] = {{0u, 0u}, {0u, 0u}};           // elements to be recomputed
#pragma unroll
    for (int side = 0; side < 2; ++side) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int n = n0 + side * 64 + 8 * j;
        const float pp0 = n < N ? pp[n] : 0.0f;
        const float pp1 = n + 1 < N ? pp[n + 1] : 0.0f;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int low = 0; low < 2; ++low) {
            const int m = m0 + half * 64 + low * 8;
            const int e = 4 * j + 2 * low;
            const float norms0 = own[half][low] + pp0;
            const float norms1 = own[half][low] + pp1;
            const float y0 = fmaf(-2.0f, acc[half][side][e], norms0);
            const float y1 = fmaf(-2.0f, acc[half][side][e + 1], norms1);
            if (m < M) {
              if (n < N && !holds(y0, norms0)) weak[half][side] |= 1u << e;
              if (n + 1 < N && !holds(y1, norms1)) weak[half][side] |= 1u << (e + 1);
              float* to = out + (long long)m * N + n;
              if (pairs && n + 1 < N) {
                __stcs(reinterpret_cast<float2*>(to), make_float2(y0, y1));
              } else {
                if (n < N) to[0] = y0;
                if (n + 1 < N) to[1] = y1;
              }
            }
          }
        }
      }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        uint32_t left = weak[half][side];
#pragma unroll 1
        while (left != 0u) {
          const int e = __ffs((int)left) - 1;
          left &= left - 1u;
          const int m = m0 + half * 64 + ((e >> 1) & 1) * 8;
          const int n = n0 + side * 64 + 8 * (e >> 2) + (e & 1);
          const float* a = q + (long long)m * D;
          const float* b = p + (long long)n * D;
          float sum = 0.0f;
#pragma unroll 4
          for (int d = 0; d < D; ++d) {
            const float difference = a[d] - b[d];
            sum = fmaf(difference, difference, sum);
          }
          out[(long long)m * N + n] = sum;
        }
      }
    }
    __syncwarp();
  }
}
