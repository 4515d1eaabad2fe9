// Two products of one input, and one result gated by the other: one launch, gate and value of an element meet in one thread.

#include <cstdint>

constexpr int TILE_M = 128;
constexpr int TILE_N = 64;            // columns of W and as many of V
constexpr int TILE_K = 32;            // 128 bytes, one swizzled row
constexpr int PART = 128 * TILE_K * 4;  // bytes of one part of one operand
constexpr int STAGE = 4 * PART;       // x high, x low, weights high, weights low
constexpr int SEGMENT = 8;            // tiles summed before they are added to the total

__device__ __forceinline__ float tf32_of(float v) {
  uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
  return __uint_as_float(r);
}

__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return (uint64_t)((address & 0x3FFFF) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

__device__ __forceinline__ void mma_step(float (&d)[64], uint64_t da, uint64_t db) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1, 1, 1;\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(da), "l"(db));
}

__device__ __forceinline__ void hold(float (&d)[64]) {
#pragma unroll
  for (int e = 0; e < 64; ++e) {
    asm volatile("" : "+f"(d[e])::"memory");
  }
}

// x: four rows, four neighbouring k each; weights: one column, sixteen k
__device__ __forceinline__ void load_tile(float4 (&ra)[4], float (&rb)[16], const float* __restrict__ x,
                                          const float* __restrict__ weights, int row0, int col, int k0, int M, int N,
                                          int K) {
  const int tid = threadIdx.x;
  const int ka = k0 + (tid & 7) * 4;
  const bool whole = (K & 3) == 0;
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const int row = row0 + (tid >> 3) + q * 32;
    ra[q] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < M && ka < K) {
      const float* p = x + (size_t)row * K + ka;
      if (whole) {
        ra[q] = __ldg(reinterpret_cast<const float4*>(p));
      } else {
        ra[q].x = p[0];
        if (ka + 1 < K) ra[q].y = p[1];
        if (ka + 2 < K) ra[q].z = p[2];
        if (ka + 3 < K) ra[q].w = p[3];
      }
    }
  }
  const int kb = k0 + (tid >> 7) * 16;
  const float* p = weights + (size_t)kb * N + col;
#pragma unroll
  for (int q = 0; q < 16; ++q) {
    rb[q] = 0.0f;
    if (col < N && kb + q < K) {
      rb[q] = __ldg(p + (size_t)q * N);
    }
  }
}

__device__ __forceinline__ void put_split(char* high, float4 v) {
  float4 h, l;
  h.x = tf32_of(v.x);
  h.y = tf32_of(v.y);
  h.z = tf32_of(v.z);
  h.w = tf32_of(v.w);
  l.x = tf32_of(v.x - h.x);
  l.y = tf32_of(v.y - h.y);
  l.z = tf32_of(v.z - h.z);
  l.w = tf32_of(v.w - h.w);
  *reinterpret_cast<float4*>(high) = h;
  *reinterpret_cast<float4*>(high + PART) = l;
}

__device__ __forceinline__ void store_tile(char* stage, const float4 (&ra)[4], const float (&rb)[16]) {
  const int tid = threadIdx.x;
  const int ca = tid & 7;
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const int r = (tid >> 3) + q * 32;
    put_split(stage + r * 128 + ((ca ^ (r & 7)) << 4), ra[q]);
  }
  const int n = tid & 127;
  const int cb = (tid >> 7) * 4;
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    put_split(stage + 2 * PART + n * 128 + (((cb + q) ^ (n & 7)) << 4),
              make_float4(rb[q * 4], rb[q * 4 + 1], rb[q * 4 + 2], rb[q * 4 + 3]));
  }
}

//@ launch gated_projection<<<(ceil_div(N, 64), ceil_div(M, 128)), 256, 197632>>>(x, W, V, out, M, N, K)
__global__ void __launch_bounds__(256, 1)
    gated_projection(const float* __restrict__ x, const float* __restrict__ W, const float* __restrict__ V,
                     float* __restrict__ out, int M, int N, int K) {
  extern __shared__ char raw[];
  const uint32_t raw_address = (uint32_t)__cvta_generic_to_shared(raw);
  const uint32_t base = (raw_address + 1023u) & ~1023u;
  char* tiles_at = raw + (base - raw_address);

  const int tid = threadIdx.x;
  const int group = tid >> 7;
  const int row0 = blockIdx.y * TILE_M;
  const int col0 = blockIdx.x * TILE_N;
  const int nb = tid & 127;
  const float* weights = nb < TILE_N ? W : V;
  const int col = col0 + (nb & (TILE_N - 1));

  float4 ra[4];
  float rb[16];
  float acc[64];
  float total[64];
#pragma unroll
  for (int e = 0; e < 64; ++e) {
    total[e] = 0.0f;
  }

  const int tiles = (K + TILE_K - 1) / TILE_K;
  load_tile(ra, rb, x, weights, row0, col, 0, M, N, K);
  store_tile(tiles_at, ra, rb);
  if (tiles > 1) {
    load_tile(ra, rb, x, weights, row0, col, TILE_K, M, N, K);
  }
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
  __syncthreads();

  int kt = 0;
  int buffer = 0;
  while (kt < tiles) {
#pragma unroll
    for (int e = 0; e < 64; ++e) {
      acc[e] = 0.0f;
    }
    hold(acc);
    const int stop = min(kt + SEGMENT, tiles);
#pragma unroll 1
    for (; kt < stop; ++kt) {
      const uint32_t stage = base + buffer * STAGE;
      const uint64_t a_high = descriptor(stage + group * 8192);
      const uint64_t a_low = descriptor(stage + PART + group * 8192);
      const uint64_t b_high = descriptor(stage + 2 * PART);
      const uint64_t b_low = descriptor(stage + 3 * PART);
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        mma_step(acc, a_low + 2 * s, b_high + 2 * s);
        mma_step(acc, a_high + 2 * s, b_low + 2 * s);
        mma_step(acc, a_high + 2 * s, b_high + 2 * s);
      }
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
      const int next = buffer == 2 ? 0 : buffer + 1;
      if (kt + 1 < tiles) {
        store_tile(tiles_at + next * STAGE, ra, rb);
        if (kt + 2 < tiles) {
          load_tile(ra, rb, x, weights, row0, col, (kt + 2) * TILE_K, M, N, K);
        }
      }
      asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
      __syncthreads();
      buffer = next;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
    hold(acc);
#pragma unroll
    for (int e = 0; e < 64; ++e) {
      total[e] += acc[e];
    }
  }

  const int lane = tid & 31;
  const int row = row0 + (tid >> 5) * 16 + (lane >> 2);
  const bool pairs = (N & 1) == 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int i = row + h * 8;
    if (i < M) {
      float* o = out + (size_t)i * N;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int c = col0 + j * 8 + (lane & 3) * 2;
        const float g0 = total[j * 4 + h * 2];
        const float g1 = total[j * 4 + h * 2 + 1];
        const float v0 = total[32 + j * 4 + h * 2];
        const float v1 = total[32 + j * 4 + h * 2 + 1];
        const float r0 = g0 / (1.0f + expf(-g0)) * v0;
        const float r1 = g1 / (1.0f + expf(-g1)) * v1;
        if (pairs) {
          if (c < N) {
            *reinterpret_cast<float2*>(o + c) = make_float2(r0, r1);
          }
        } else {
          if (c < N) o[c] = r0;
          if (c + 1 < N) o[c + 1] = r1;
        }
      }
    }
  }
}
