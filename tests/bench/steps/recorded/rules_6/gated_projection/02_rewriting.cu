#include <cstdint>

// Two products of one input, one gated by the other, on the tensor cores: operands split into a high and a low
// TF32 part, three products each, partial sums of 32 steps added to f32 accumulators.
//
// packed: for each tile of 64 columns and each 32 steps of K one image of shared memory, 32 KiB:
//   128 rows (64 columns of W, 64 columns of V) of 32 steps, high parts, then the same of low parts; rows of 128
//   bytes in the 128-byte swizzle. Within the 32 steps the order is permuted so that a thread's fragment of x is
//   made of two float4: place 8 * s + 4 * h + t holds step 16 * h + 4 * t + s.

//@ scratch packed: f32[ceil_div(N, 64) * ceil_div(K, 32), 8192]
//@ launch pack<<<(ceil_div(N, 64), ceil_div(K, 32)), 256>>>(W, V, packed, N, K)
//@ launch gated<<<(ceil_div(M, 256), ceil_div(N, 64)), 256, 197632>>>(x, W, V, packed, out, M, N, K)

constexpr int kStages = 6;
constexpr int kStageFloats = 8192;
constexpr uint32_t kStageBytes = 32768;

__device__ __forceinline__ uint32_t to_tf32(float value) {
  uint32_t bits;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

__global__ void __launch_bounds__(256)
pack(const float* __restrict__ W, const float* __restrict__ V, float* __restrict__ packed, int N, int K) {
  __shared__ float4 tile[2048];
  const int r = threadIdx.x & 127;
  const int h = threadIdx.x >> 7;
  const float* source = r < 64 ? W : V;
  const int column = blockIdx.x * 64 + (r & 63);
  const int k0 = blockIdx.y * 32 + 16 * h;

  float v[16];
#pragma unroll
  for (int q = 0; q < 16; ++q) {
    const int k = k0 + q;
    v[q] = (column < N && k < K) ? source[(long long)k * N + column] : 0.0f;
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
  float4* to = reinterpret_cast<float4*>(packed + ((long long)blockIdx.x * gridDim.y + blockIdx.y) * kStageFloats);
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

// Four values of a row of x from step k; zeros from step K on.
__device__ __forceinline__ void load_four(float* to, const float* row, int k, int K, bool wide) {
  if (wide) {
    const int inside = k < K ? 1 : 0;
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
    for (int q = 0; q < 4; ++q) to[q] = k + q < K ? row[k + q] : 0.0f;
  }
}

__device__ __forceinline__ float gate_of(float g, float v) {
  const float d = 1.0f + expf(-g);
  float r;
  asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(d));
  const float q = g * r;
  const float better = fmaf(fmaf(-q, d, g), r, q);
  return ((d < 1e30f && fabsf(q) < 1e38f) ? better : q) * v;
}

__global__ void __launch_bounds__(256, 1)
gated(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V,
      const float* __restrict__ packed, float* __restrict__ out, int M, int N, int K) {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  __shared__ __align__(8) uint64_t barriers[2 * kStages];

  const uint32_t ring = ((uint32_t)__cvta_generic_to_shared(dynamic) + 1023u) & ~1023u;
  const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers);
  const uint32_t empty = full + 8u * kStages;

  const int warp = threadIdx.x >> 5;
  const int lane = threadIdx.x & 31;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int stages = (K + 31) / 32;
  const int m0 = blockIdx.x * 256 + (warp >> 2) * 128 + (warp & 3) * 16 + g;
  const int n0 = blockIdx.y * 64;
  const bool wide = (K % 4 == 0) && ((reinterpret_cast<uintptr_t>(x) & 15) == 0);
  const float* images = packed + (long long)blockIdx.y * stages * kStageFloats;

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full + 8u * s), "r"(1) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(empty + 8u * s), "r"(8) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages && s < stages; ++s)
      fetch_stage(ring + s * kStageBytes, images + (long long)s * kStageFloats, full + 8u * s);
  }
  __syncwarp();

  // Rows of x that this thread reads: two of each half; rows past the end repeat the last and are never written.
  int row_at[4];
#pragma unroll
  for (int q = 0; q < 4; ++q) row_at[q] = min(m0 + (q >> 1) * 64 + (q & 1) * 8, M - 1) * K;

  float acc[2][2][32];
  float part[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    acc[0][0][i] = 0.0f;
    acc[0][1][i] = 0.0f;
    acc[1][0][i] = 0.0f;
    acc[1][1][i] = 0.0f;
    part[i] = 0.0f;
  }

  float raw[16];
  load_four(raw + 0, x + row_at[0], 4 * t, K, wide);
  load_four(raw + 4, x + row_at[0], 16 + 4 * t, K, wide);
  load_four(raw + 8, x + row_at[1], 4 * t, K, wide);
  load_four(raw + 12, x + row_at[1], 16 + 4 * t, K, wide);

  int slot = 0;
  uint32_t parity = 0;

#pragma unroll 1
  for (int i = 0; i < stages; ++i) {
    // Refill the slot that was read two stages ago.
    if (threadIdx.x == 0 && i >= 2 && i - 2 + kStages < stages) {
      const int last = (i - 2) % kStages;
      wait_barrier(empty + 8u * last, (uint32_t)((i - 2) / kStages) & 1u);
      fetch_stage(ring + last * kStageBytes, images + (long long)(i - 2 + kStages) * kStageFloats, full + 8u * last);
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
      for (int q = 0; q < 16; ++q) {
        hi[q] = to_tf32(raw[q]);
        lo[q] = to_tf32(raw[q] - __uint_as_float(hi[q]));
      }
      {
        const int k = (half == 0 ? i : i + 1) * 32 + 4 * t;
        const float* upper = x + row_at[half == 0 ? 2 : 0];
        const float* lower = x + row_at[half == 0 ? 3 : 1];
        load_four(raw + 0, upper, k, K, wide);
        load_four(raw + 4, upper, k + 16, K, wide);
        load_four(raw + 8, lower, k, K, wide);
        load_four(raw + 12, lower, k + 16, K, wide);
      }
      __syncwarp();
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const uint64_t high = image + side * 512;   // 8 KiB further: the columns of V
        const uint64_t low = high + 1024;           // 16 KiB further: the low parts
#pragma unroll
        for (int q = 0; q < 32; ++q) asm volatile("" : "+f"(part[q])::"memory");
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
        for (int q = 0; q < 32; ++q) asm volatile("" : "+f"(part[q])::"memory");
#pragma unroll
        for (int q = 0; q < 32; ++q) acc[half][side][q] += part[q];
      }
    }

    if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty + 8u * slot) : "memory");
    __syncwarp();
    if (++slot == kStages) {
      slot = 0;
      parity ^= 1u;
    }
  }

  const bool pairs = (N % 2 == 0) && ((reinterpret_cast<uintptr_t>(out) & 7) == 0);
  bool odd = false;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int low = 0; low < 2; ++low) {
      const int m = m0 + half * 64 + low * 8;
      if (m < M) {
        float* row = out + (long long)m * N;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int n = n0 + 8 * j + 2 * t;
          const float g0 = acc[half][0][4 * j + 2 * low];
          const float g1 = acc[half][0][4 * j + 2 * low + 1];
          const float v0 = acc[half][1][4 * j + 2 * low];
          const float v1 = acc[half][1][4 * j + 2 * low + 1];
          const float limit = 3.402823466e+38f;
          odd = odd || !(fabsf(g0) <= limit) || !(fabsf(g1) <= limit) || !(fabsf(v0) <= limit) ||
                !(fabsf(v1) <= limit);
          const float y0 = gate_of(g0, v0);
          const float y1 = gate_of(g1, v1);
          if (pairs && n + 1 < N) {
            *reinterpret_cast<float2*>(row + n) = make_float2(y0, y1);
          } else {
            if (n < N) row[n] = y0;
            if (n + 1 < N) row[n + 1] = y1;
          }
        }
      }
    }
  }

  // Infinities, NaN and overflow do not survive the split: such a thread takes the plain sums.
  if (odd) {
#pragma unroll 1
    for (int q = 0; q < 64; ++q) {
      const int m = m0 + (q >> 5) * 64 + ((q >> 4) & 1) * 8;
      const int n = n0 + ((q >> 1) & 7) * 8 + 2 * t + (q & 1);
      if (m < M && n < N) {
        float gate = 0.0f, value = 0.0f;
#pragma unroll 1
        for (int k = 0; k < K; ++k) {
          const float left = x[(long long)m * K + k];
          gate = fmaf(left, W[(long long)k * N + n], gate);
          value = fmaf(left, V[(long long)k * N + n], value);
        }
        out[(long long)m * N + n] = gate_of(gate, value);
      }
    }
  }
}
