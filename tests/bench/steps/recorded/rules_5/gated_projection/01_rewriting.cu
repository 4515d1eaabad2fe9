// Two products of one input, and one result gated by the other, on the tensor cores with split operands.

//@ scratch halves_x: f32[round_up(M, 256), round_up(K, 32)]
//@ scratch halves_wv: f32[2, round_up(N, 128), round_up(K, 32)]
//@ scratch peaks: i32[M + 2 * N] zero
//@ launch measure<<<ceil_div(round_up(M, 256), 8) + 2 * ceil_div(N, 256) * ceil_div(K, 32), 256>>>(x, W, V, halves_x, peaks, M, N, K)
//@ launch split<<<2 * ceil_div(N, 128) * ceil_div(K, 32), 128>>>(W, V, halves_wv, peaks, M, N, K)
//@ launch project<<<min(132, 2 * ceil_div(M, 256) * ceil_div(N, 128)), 384, 198656, cluster(2, 1, 1)>>>(halves_x, halves_wv, peaks, out, M, N, K)
#include <cstdint>
#include <cstddef>
#include <cuda_fp16.h>

constexpr int STAGES = 4;
constexpr int TILE_BYTES = 16384;             // 128 rows of 32 high and 32 low halves, swizzled
constexpr int STAGE_BYTES = 3 * TILE_BYTES;   // x, W, V

// exponent field of a row's or column's largest magnitude, kept where all scales are normal numbers
__device__ __forceinline__ int field_of(int bits) {
  return min(max((bits & 0x7fffffff) >> 23, 26), 254);
}
__device__ __forceinline__ float scale_up(int bits) {
  return __int_as_float((268 - field_of(bits)) << 23);
}

__device__ __forceinline__ void split_pair(float a, float b, float scale, uint32_t& high, uint32_t& low) {
  a *= scale;
  b *= scale;
  const __half ha = __float2half_rn(a);
  const __half hb = __float2half_rn(b);
  float ra = a - __half2float(ha);
  float rb = b - __half2float(hb);
  if (__hisinf(ha)) ra = 0.0f;
  if (__hisinf(hb)) rb = 0.0f;
  const __half la = __float2half_rn(ra);
  const __half lb = __float2half_rn(rb);
  high = (uint32_t)__half_as_ushort(ha) | ((uint32_t)__half_as_ushort(hb) << 16);
  low = (uint32_t)__half_as_ushort(la) | ((uint32_t)__half_as_ushort(lb) << 16);
}

__device__ __forceinline__ void split_eight(const float (&v)[8], float scale, uint4& high, uint4& low) {
  split_pair(v[0], v[1], scale, high.x, low.x);
  split_pair(v[2], v[3], scale, high.y, low.y);
  split_pair(v[4], v[5], scale, high.z, low.z);
  split_pair(v[6], v[7], scale, high.w, low.w);
}

__device__ __forceinline__ void load_eight(const float* row, int k, int K, bool wide, float (&v)[8]) {
  if (wide && k + 8 <= K) {
    const float4 p = *reinterpret_cast<const float4*>(row + k);
    const float4 q = *reinterpret_cast<const float4*>(row + k + 4);
    v[0] = p.x; v[1] = p.y; v[2] = p.z; v[3] = p.w;
    v[4] = q.x; v[5] = q.y; v[6] = q.z; v[7] = q.w;
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = k + e < K ? row[k + e] : 0.0f;
  }
}

// Rows of x: largest magnitude and split, a warp for each row. Columns of W and V: largest magnitude.
__global__ void __launch_bounds__(256)
measure(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V,
        float* __restrict__ halves_x, int* __restrict__ peaks, int M, int N, int K) {
  const int row_blocks = (M + 255) / 256 * 32;
  if ((int)blockIdx.x < row_blocks) {
    const int lane = threadIdx.x & 31;
    const int m = blockIdx.x * 8 + (threadIdx.x >> 5);
    const int KT = (K + 31) / 32;
    const bool wide = (K & 3) == 0;
    const float* row = x + (size_t)m * K;
    int top = 0;
    if (m < M) {
      for (int k = lane * 8; k < K; k += 256) {
        float v[8];
        load_eight(row, k, K, wide, v);
#pragma unroll
        for (int e = 0; e < 8; ++e) top = max(top, __float_as_int(v[e]) & 0x7fffffff);
      }
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) top = max(top, __shfl_xor_sync(0xffffffffu, top, o));
    if (m < M && lane == 0) peaks[m] = top;
    const float scale = scale_up(top);
    const int r = m & 127;
    char* tiles = reinterpret_cast<char*>(halves_x) + (size_t)(m >> 7) * KT * TILE_BYTES + r * 128;
    for (int chunk = lane; chunk < KT * 4; chunk += 32) {
      float v[8];
      if (m < M) {
        load_eight(row, chunk * 8, K, wide, v);
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) v[e] = 0.0f;
      }
      uint4 high, low;
      split_eight(v, scale, high, low);
      char* to = tiles + (size_t)(chunk >> 2) * TILE_BYTES;
      const int c = chunk & 3;
      *reinterpret_cast<uint4*>(to + ((c ^ (r & 7)) << 4)) = high;
      *reinterpret_cast<uint4*>(to + (((c + 4) ^ (r & 7)) << 4)) = low;
    }
  } else {
    int block = blockIdx.x - row_blocks;
    const int which = block & 1;
    block >>= 1;
    const int column_blocks = (N + 255) / 256;
    const int n = (block % column_blocks) * 256 + threadIdx.x;
    const int k0 = (block / column_blocks) * 32;
    if (n < N) {
      const float* from = (which ? V : W) + (size_t)k0 * N + n;
      int top = 0;
#pragma unroll
      for (int k = 0; k < 32; ++k) {
        if (k0 + k < K) top = max(top, __float_as_int(from[(size_t)k * N]) & 0x7fffffff);
      }
      atomicMax(peaks + M + which * N + n, top);
    }
  }
}

// Split and transpose tiles of 32 steps by 128 columns of W and V.
__global__ void __launch_bounds__(128)
split(const float* __restrict__ W, const float* __restrict__ V, float* __restrict__ halves_wv,
      const int* __restrict__ peaks, int M, int N, int K) {
  __shared__ __align__(128) uint4 tile[TILE_BYTES / 16];
  const int KT = (K + 31) / 32;
  const int which = blockIdx.x & 1;
  const int rest = blockIdx.x >> 1;
  const int NT = (N + 127) / 128;
  const int nt = rest % NT;
  const int kt = rest / NT;
  const int r = threadIdx.x;
  const int n = nt * 128 + r;
  const int k0 = kt * 32;
  const float* from = (which ? V : W) + (size_t)k0 * N + n;
  float v[4][8];
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    v[k >> 3][k & 7] = (n < N && k0 + k < K) ? from[(size_t)k * N] : 0.0f;
  }
  const float scale = n < N ? scale_up(peaks[M + which * N + n]) : 1.0f;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    uint4 high, low;
    split_eight(v[c], scale, high, low);
    tile[r * 8 + (c ^ (r & 7))] = high;
    tile[r * 8 + ((c + 4) ^ (r & 7))] = low;
  }
  __syncthreads();
  uint4* to = reinterpret_cast<uint4*>(reinterpret_cast<char*>(halves_wv) +
                                       (((size_t)nt * KT + kt) * 2 + which) * TILE_BYTES);
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i * 128 + r] = tile[i * 128 + r];
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
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
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
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
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
      "%128, %129, p, 1, 1, 0, 0;\n"
      "}\n"
      : ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56),
        ACC8(64), ACC8(72), ACC8(80), ACC8(88), ACC8(96), ACC8(104), ACC8(112), ACC8(120)
      : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ float scaled(float value, int e) {
  const int e1 = e >> 1;
  const int e2 = e - e1;
  return value * __int_as_float((e1 + 127) << 23) * __int_as_float((e2 + 127) << 23);
}

__device__ __forceinline__ float gated(float gate, float value) {
  return gate / (1.0f + expf(-gate)) * value;
}

__global__ void __launch_bounds__(384, 1)
project(const float* __restrict__ halves_x, const float* __restrict__ halves_wv, const int* __restrict__ peaks,
        float* __restrict__ out, int M, int N, int K) {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  __shared__ __align__(8) uint64_t full[STAGES];
  __shared__ __align__(8) uint64_t empty[STAGES];

  const int KT = (K + 31) / 32;
  const int MT2 = (M + 255) / 256;
  const int NT = (N + 127) / 128;
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
      const char* xs = reinterpret_cast<const char*>(halves_x);
      const char* ws = reinterpret_cast<const char*>(halves_wv);
      int s = 0;
      uint32_t phase = 0;
      for (int t = cluster; t < total; t += clusters) {
        const int mt = (t % MT2) * 2 + (int)rank;
        const int nt = t / MT2;
        const char* from_x = xs + (size_t)mt * KT * TILE_BYTES;
        const char* from_w = ws + ((size_t)nt * KT * 2 + rank) * TILE_BYTES;
        for (int kt = 0; kt < KT; ++kt) {
          bar_wait(empty_at + s * 8, phase ^ 1);
          const uint32_t bar = full_at + s * 8;
          const uint32_t stage = ring + s * STAGE_BYTES;
          bar_expect(bar, STAGE_BYTES);
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(stage),
              "l"(from_x), "r"(TILE_BYTES), "r"(bar)
              : "memory");
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
                  stage + TILE_BYTES * (1 + rank)),
              "l"(from_w), "r"(TILE_BYTES), "r"(bar), "h"((unsigned short)3)
              : "memory");
          from_x += TILE_BYTES;
          from_w += 2 * TILE_BYTES;
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
      const int n0 = nt * 128 + (lane & 3) * 2;
      const int ex0 = m0 < M ? field_of(peaks[m0]) - 282 : 0;  // both shifts of 141
      const int ex1 = m1 < M ? field_of(peaks[m1]) - 282 : 0;
      const int* of_w = peaks + M;
      const int* of_v = peaks + M + N;
      const bool pairs = (N & 1) == 0;
      float* row0 = out + (size_t)m0 * N;
      float* row1 = out + (size_t)m1 * N;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const int n = n0 + j * 8;
        if (n < N) {
          const bool second = n + 1 < N;
          const int ew0 = field_of(of_w[n]);
          const int ev0 = field_of(of_v[n]);
          const int ew1 = second ? field_of(of_w[n + 1]) : 141;
          const int ev1 = second ? field_of(of_v[n + 1]) : 141;
          if (m0 < M) {
            const float y0 = gated(scaled(d[4 * j], ex0 + ew0), scaled(d[64 + 4 * j], ex0 + ev0));
            const float y1 = gated(scaled(d[4 * j + 1], ex0 + ew1), scaled(d[65 + 4 * j], ex0 + ev1));
            if (pairs) {
              *reinterpret_cast<float2*>(row0 + n) = make_float2(y0, y1);
            } else {
              row0[n] = y0;
              if (second) row0[n + 1] = y1;
            }
          }
          if (m1 < M) {
            const float y0 = gated(scaled(d[4 * j + 2], ex1 + ew0), scaled(d[66 + 4 * j], ex1 + ev0));
            const float y1 = gated(scaled(d[4 * j + 3], ex1 + ew1), scaled(d[67 + 4 * j], ex1 + ev1));
            if (pairs) {
              *reinterpret_cast<float2*>(row1 + n) = make_float2(y0, y1);
            } else {
              row1[n] = y0;
              if (second) row1[n + 1] = y1;
            }
          }
        }
      }
    }
  }
  __syncwarp();
  cluster_meet();
}
