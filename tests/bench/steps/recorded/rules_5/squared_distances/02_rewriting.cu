// Squared distances between two sets of points: norms and products of centred points on the tensor cores,
// direct differences for the pairs where that would cancel.

//@ scratch halves_q: f32[round_up(M, 256), round_up(D, 32)]
//@ scratch halves_p: f32[round_up(N, 256), round_up(D, 32)]
//@ scratch facts_q: f32[round_up(M, 256), 2]
//@ scratch facts_p: f32[round_up(N, 256), 2]
//@ launch prepare<<<ceil_div(round_up(M, 256) + round_up(N, 256), 8), 256, 4 * round_up(D, 32)>>>(q, p, halves_q, halves_p, facts_q, facts_p, M, N, D)
//@ launch squared_distances<<<min(132, 2 * ceil_div(M, 256) * ceil_div(N, 256)), 384, 198656, cluster(2, 1, 1)>>>(q, p, halves_q, halves_p, facts_q, facts_p, out, M, N, D)
#include <cstdint>
#include <cstddef>
#include <cuda_fp16.h>

constexpr int STAGES = 4;
constexpr int TILE_BYTES = 16384;             // 128 rows of 32 high and 32 low halves, swizzled
constexpr int STAGE_BYTES = 3 * TILE_BYTES;   // 128 queries, 2 * 128 points

__device__ __forceinline__ void split_pair(float a, float b, float scale, uint32_t& high, uint32_t& low) {
  a *= scale;
  b *= scale;
  const __half ha = __float2half_rn(a);
  const __half hb = __float2half_rn(b);
  const __half la = __float2half_rn(a - __half2float(ha));
  const __half lb = __float2half_rn(b - __half2float(hb));
  high = (uint32_t)__half_as_ushort(ha) | ((uint32_t)__half_as_ushort(hb) << 16);
  low = (uint32_t)__half_as_ushort(la) | ((uint32_t)__half_as_ushort(lb) << 16);
}

__device__ __forceinline__ void load_eight(const float* row, const float* centre, int k, int D, bool wide, float (&v)[8]) {
  if (wide && k + 8 <= D) {
    const float4 a = *reinterpret_cast<const float4*>(row + k);
    const float4 b = *reinterpret_cast<const float4*>(row + k + 4);
    v[0] = a.x - centre[k];
    v[1] = a.y - centre[k + 1];
    v[2] = a.z - centre[k + 2];
    v[3] = a.w - centre[k + 3];
    v[4] = b.x - centre[k + 4];
    v[5] = b.y - centre[k + 5];
    v[6] = b.z - centre[k + 6];
    v[7] = b.w - centre[k + 7];
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = k + e < D ? row[k + e] - centre[k + e] : 0.0f;
  }
}

// A warp for each row of q and p: centre it, sum its squares, scale and split it into tiles.
__global__ void __launch_bounds__(256)
prepare(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ halves_q,
        float* __restrict__ halves_p, float* __restrict__ facts_q, float* __restrict__ facts_p, int M, int N, int D) {
  extern __shared__ __align__(16) float centre[];
  const int KT = (D + 31) / 32;
  for (int d = threadIdx.x; d < KT * 32; d += 256) {
    float c = 0.0f;
    if (d < D) {
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        c += 0.125f * q[((size_t)M * t / 4) * D + d];
        c += 0.125f * p[((size_t)N * t / 4) * D + d];
      }
    }
    centre[d] = c;
  }
  __syncthreads();

  const int padded_q = (M + 255) / 256 * 256;
  const int lane = threadIdx.x & 31;
  int m = blockIdx.x * 8 + (threadIdx.x >> 5);
  const bool of_p = m >= padded_q;
  if (of_p) m -= padded_q;
  const bool in = m < (of_p ? N : M);
  const float* row = (of_p ? p : q) + (size_t)m * D;
  const bool wide = (D & 3) == 0;

  int top = 0;
  float norm = 0.0f;
  if (in) {
    for (int k = lane * 8; k < D; k += 256) {
      float v[8];
      load_eight(row, centre, k, D, wide, v);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        top = max(top, __float_as_int(v[e]) & 0x7fffffff);
        norm = fmaf(v[e], v[e], norm);
      }
    }
  }
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    top = max(top, __shfl_xor_sync(0xffffffffu, top, o));
    norm += __shfl_xor_sync(0xffffffffu, norm, o);
  }
  // largest magnitude below 2^(field - 126); values scaled below 2^15
  const int field = min(max(top >> 23, 26), 254);
  const float scale = __int_as_float((268 - field) << 23);
  if (lane == 0) {
    float2* facts = reinterpret_cast<float2*>(of_p ? facts_p : facts_q);
    facts[m] = make_float2(norm, __int_as_float((field - 14) << 23));
  }
  const int r = m & 127;
  char* tiles = reinterpret_cast<char*>(of_p ? halves_p : halves_q) + (size_t)(m >> 7) * KT * TILE_BYTES + r * 128;
  for (int chunk = lane; chunk < KT * 4; chunk += 32) {
    float v[8];
    if (in) {
      load_eight(row, centre, chunk * 8, D, wide, v);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] = 0.0f;
    }
    uint4 high, low;
    split_pair(v[0], v[1], scale, high.x, low.x);
    split_pair(v[2], v[3], scale, high.y, low.y);
    split_pair(v[4], v[5], scale, high.z, low.z);
    split_pair(v[6], v[7], scale, high.w, low.w);
    char* to = tiles + (size_t)(chunk >> 2) * TILE_BYTES;
    const int c = chunk & 3;
    *reinterpret_cast<uint4*>(to + ((c ^ (r & 7)) << 4)) = high;
    *reinterpret_cast<uint4*>(to + (((c + 4) ^ (r & 7)) << 4)) = low;
  }
}

__device__ __forceinline__ void bar_init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred ready;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ready, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ready;\n"
        "}\n"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (!done);
}
__device__ __forceinline__ void bar_arrive_at(uint32_t bar, uint32_t cta) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(bar), "r"(cta)
      : "memory");
}
__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;\n" ::: "memory");
}
__device__ __forceinline__ uint64_t describe(uint32_t at) {
  return (uint64_t)((at & 0x3FFFF) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

#define ACC8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

__device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
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
      "%128, %129, add, 1, 1, 0, 0;\n"
      "}\n"
      : ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56),
        ACC8(64), ACC8(72), ACC8(80), ACC8(88), ACC8(96), ACC8(104), ACC8(112), ACC8(120)
      : "l"(a), "l"(b), "r"(1));
}

// The distance out of both norms and the product; a bit is set where it cannot be trusted.
__device__ __forceinline__ float distance(float product, float2 a, float2 b, uint32_t& doubtful, uint32_t bit) {
  const float both = a.x + b.x;
  const float far = fmaf(product * (-2.0f * a.y), b.y, both);
  const bool good = far >= 0.0625f * both && both > 1e-16f && both < 1e37f;
  if (!good) doubtful |= bit;
  return far;
}

__global__ void __launch_bounds__(384, 1)
squared_distances(const float* __restrict__ q, const float* __restrict__ p, const float* __restrict__ halves_q,
                  const float* __restrict__ halves_p, const float* __restrict__ facts_q,
                  const float* __restrict__ facts_p, float* __restrict__ out, int M, int N, int D) {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  __shared__ __align__(8) uint64_t full[STAGES];
  __shared__ __align__(8) uint64_t empty[STAGES];

  const int KT = (D + 31) / 32;
  const int MT2 = (M + 255) / 256;
  const int NT = (N + 255) / 256;
  const int total = MT2 * NT;
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int cluster = blockIdx.x >> 1;
  const int clusters = gridDim.x >> 1;
  const uint32_t ring = ((uint32_t)__cvta_generic_to_shared(dynamic) + 1023u) & ~1023u;
  const uint32_t full_at = (uint32_t)__cvta_generic_to_shared(full);
  const uint32_t empty_at = (uint32_t)__cvta_generic_to_shared(empty);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      bar_init(full_at + s * 8, 1);
      bar_init(empty_at + s * 8, 16);  // 8 consumer warps of each of the 2 blocks
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  cluster_meet();

  const int group = threadIdx.x >> 7;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      const char* qs = reinterpret_cast<const char*>(halves_q);
      const char* ps = reinterpret_cast<const char*>(halves_p);
      int s = 0;
      uint32_t phase = 0;
      for (int t = cluster; t < total; t += clusters) {
        const int mt = (t % MT2) * 2 + (int)rank;
        const int nt = (t / MT2) * 2 + (int)rank;
        const char* from_q = qs + (size_t)mt * KT * TILE_BYTES;
        const char* from_p = ps + (size_t)nt * KT * TILE_BYTES;
        for (int kt = 0; kt < KT; ++kt) {
          bar_wait(empty_at + s * 8, phase ^ 1);
          const uint32_t bar = full_at + s * 8;
          const uint32_t stage = ring + s * STAGE_BYTES;
          bar_expect(bar, STAGE_BYTES);
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(stage),
              "l"(from_q), "r"(TILE_BYTES), "r"(bar)
              : "memory");
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
                  stage + TILE_BYTES * (1 + rank)),
              "l"(from_p), "r"(TILE_BYTES), "r"(bar), "h"((unsigned short)3)
              : "memory");
          from_q += TILE_BYTES;
          from_p += TILE_BYTES;
          if (++s == STAGES) {
            s = 0;
            phase ^= 1;
          }
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int part = group - 1;
    const int lane = threadIdx.x & 31;
    const int warp = (threadIdx.x >> 5) & 3;
    const bool pairs = (N & 1) == 0;
    float d[128];
    int s = 0;
    uint32_t phase = 0;
    for (int t = cluster; t < total; t += clusters) {
      const int mt = (t % MT2) * 2 + (int)rank;
      const int nt = t / MT2;
#pragma unroll
      for (int i = 0; i < 128; ++i) d[i] = 0.0f;
      int previous = 0;
#pragma unroll 1
      for (int kt = 0; kt < KT; ++kt) {
        bar_wait(full_at + s * 8, phase);
        const uint32_t stage = ring + s * STAGE_BYTES;
        const uint64_t a = describe(stage + part * 8192);
        const uint64_t b = describe(stage + TILE_BYTES);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(d, a, b + 4);          // high * low
        multiply(d, a + 4, b);          // low * high
        multiply(d, a, b);              // high * high
        multiply(d, a + 2, b + 6);
        multiply(d, a + 6, b + 2);
        multiply(d, a + 2, b + 2);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (kt > 0 && lane < 2) bar_arrive_at(empty_at + previous * 8, lane);
        previous = s;
        if (++s == STAGES) {
          s = 0;
          phase ^= 1;
        }
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
      for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(d[i])::"memory");
      if (lane < 2) bar_arrive_at(empty_at + previous * 8, lane);

      const int m0 = mt * 128 + part * 64 + warp * 16 + (lane >> 2);
      const int m1 = m0 + 8;
      const int n0 = nt * 256 + (lane & 3) * 2;
      const float2 q0 = reinterpret_cast<const float2*>(facts_q)[m0];
      const float2 q1 = reinterpret_cast<const float2*>(facts_q)[m1];
      float* row0 = out + (size_t)m0 * N;
      float* row1 = out + (size_t)m1 * N;
      uint32_t doubtful[4] = {0u, 0u, 0u, 0u};
#pragma unroll
      for (int j = 0; j < 32; ++j) {
        const int n = n0 + j * 8;
        if (n < N) {
          const bool second = n + 1 < N;
          const float4 facts = *reinterpret_cast<const float4*>(facts_p + 2 * (size_t)n);
          const float2 p0 = make_float2(facts.x, facts.y);
          const float2 p1 = make_float2(facts.z, facts.w);
          const uint32_t bit = 1u << ((j & 7) * 4);
          const float y0 = distance(d[4 * j], q0, p0, doubtful[j >> 3], bit);
          const float y1 = distance(d[4 * j + 1], q0, p1, doubtful[j >> 3], bit << 1);
          const float y2 = distance(d[4 * j + 2], q1, p0, doubtful[j >> 3], bit << 2);
          const float y3 = distance(d[4 * j + 3], q1, p1, doubtful[j >> 3], bit << 3);
          if (m0 < M) {
            if (pairs) {
              __stcs(reinterpret_cast<float2*>(row0 + n), make_float2(y0, y1));
            } else {
              row0[n] = y0;
              if (second) row0[n + 1] = y1;
            }
          }
          if (m1 < M) {
            if (pairs) {
              __stcs(reinterpret_cast<float2*>(row1 + n), make_float2(y2, y3));
            } else {
              row1[n] = y2;
              if (second) row1[n + 1] = y3;
            }
          }
        }
      }
      // the pairs where norms and product cancel, or leave the range: by their differences
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        uint32_t left = doubtful[w];
        while (left) {
          const int bit = __ffs((int)left) - 1;
          left &= left - 1;
          const int m = (bit & 2) ? m1 : m0;
          const int n = n0 + (w * 8 + (bit >> 2)) * 8 + (bit & 1);
          if (m < M && n < N) {
            const float* one = q + (size_t)m * D;
            const float* other = p + (size_t)n * D;
            float sum = 0.0f;
#pragma unroll 4
            for (int k = 0; k < D; ++k) {
              const float difference = one[k] - other[k];
              sum = fmaf(difference, difference, sum);
            }
            out[(size_t)m * N + n] = sum;
          }
        }
      }
      __syncwarp();
    }
  }
  __syncwarp();
  cluster_meet();
}
