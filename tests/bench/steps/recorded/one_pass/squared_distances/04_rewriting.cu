// Squared distances between two sets of points; a block takes 128 by 128 pairs.

#include <cstdint>

constexpr int TILE = 128;
constexpr int TILE_D = 32;               // 128 bytes, one swizzled row
constexpr int PART = TILE * TILE_D * 4;  // bytes of one part of one operand
constexpr int STAGE = 4 * PART;          // q high, q low, p high, p low
constexpr int SEGMENT = 4;               // tiles summed before they are added to the total

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

// four rows of a set, four neighbouring d each
__device__ __forceinline__ void load_rows(float4 (&r)[4], const float* __restrict__ v, int row0, int d0, int rows,
                                          int D) {
  const int d = d0 + (threadIdx.x & 7) * 4;
  const bool whole = (D & 3) == 0;
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    const int row = row0 + (threadIdx.x >> 3) + s * 32;
    r[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < rows && d < D) {
      const float* at = v + (size_t)row * D + d;
      if (whole) {
        r[s] = __ldg(reinterpret_cast<const float4*>(at));
      } else {
        r[s].x = at[0];
        if (d + 1 < D) r[s].y = at[1];
        if (d + 2 < D) r[s].z = at[2];
        if (d + 3 < D) r[s].w = at[3];
      }
    }
  }
}

__device__ __forceinline__ void store_rows(char* high, const float4 (&r)[4], float (&norm)[4]) {
  const int c = threadIdx.x & 7;
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    const int row = (threadIdx.x >> 3) + s * 32;
    const float4 v = r[s];
    norm[s] = fmaf(v.x, v.x, norm[s]);
    norm[s] = fmaf(v.y, v.y, norm[s]);
    norm[s] = fmaf(v.z, v.z, norm[s]);
    norm[s] = fmaf(v.w, v.w, norm[s]);
    float4 h, l;
    h.x = tf32_of(v.x);
    h.y = tf32_of(v.y);
    h.z = tf32_of(v.z);
    h.w = tf32_of(v.w);
    l.x = tf32_of(v.x - h.x);
    l.y = tf32_of(v.y - h.y);
    l.z = tf32_of(v.z - h.z);
    l.w = tf32_of(v.w - h.w);
    char* at = high + row * 128 + ((c ^ (row & 7)) << 4);
    *reinterpret_cast<float4*>(at) = h;
    *reinterpret_cast<float4*>(at + PART) = l;
  }
}

__device__ __forceinline__ void put_norms(float* norms, float (&norm)[4]) {
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    float v = norm[s];
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    v += __shfl_xor_sync(0xffffffffu, v, 2);
    v += __shfl_xor_sync(0xffffffffu, v, 4);
    if ((threadIdx.x & 7) == 0) {
      norms[(threadIdx.x >> 3) + s * 32] = v;
    }
  }
}

//@ launch squared_distances<<<(ceil_div(N, 128), ceil_div(M, 128)), 256, 198656>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(256, 1)
    squared_distances(const float* __restrict__ q, const float* __restrict__ p, float* __restrict__ out, int M, int N,
                      int D) {
  extern __shared__ char raw[];
  const uint32_t raw_address = (uint32_t)__cvta_generic_to_shared(raw);
  const uint32_t base = (raw_address + 1023u) & ~1023u;
  char* stages = raw + (base - raw_address);
  float* norms = reinterpret_cast<float*>(stages + 3 * STAGE);  // 128 of q, 128 of p

  const int tid = threadIdx.x;
  const int group = tid >> 7;
  const int row0 = blockIdx.y * TILE;
  const int col0 = blockIdx.x * TILE;

  float4 rq[4], rp[4];
  float norm_q[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float norm_p[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  float acc[64];
  float total[64];
#pragma unroll
  for (int e = 0; e < 64; ++e) {
    total[e] = 0.0f;
  }

  const int tiles = (D + TILE_D - 1) / TILE_D;
  load_rows(rq, q, row0, 0, M, D);
  load_rows(rp, p, col0, 0, N, D);
  store_rows(stages, rq, norm_q);
  store_rows(stages + 2 * PART, rp, norm_p);
  if (tiles > 1) {
    load_rows(rq, q, row0, TILE_D, M, D);
    load_rows(rp, p, col0, TILE_D, N, D);
  }
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
  __syncthreads();

  int t = 0;
  int buffer = 0;
  while (t < tiles) {
#pragma unroll
    for (int e = 0; e < 64; ++e) {
      acc[e] = 0.0f;
    }
    hold(acc);
    const int stop = min(t + SEGMENT, tiles);
#pragma unroll 1
    for (; t < stop; ++t) {
      const uint32_t stage = base + buffer * STAGE;
      const uint64_t q_high = descriptor(stage + group * 8192);
      const uint64_t q_low = descriptor(stage + PART + group * 8192);
      const uint64_t p_high = descriptor(stage + 2 * PART);
      const uint64_t p_low = descriptor(stage + 3 * PART);
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        mma_step(acc, q_low + 2 * s, p_high + 2 * s);
        mma_step(acc, q_high + 2 * s, p_low + 2 * s);
        mma_step(acc, q_high + 2 * s, p_high + 2 * s);
      }
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
      const int next = buffer == 2 ? 0 : buffer + 1;
      if (t + 1 < tiles) {
        char* target = stages + next * STAGE;
        store_rows(target, rq, norm_q);
        store_rows(target + 2 * PART, rp, norm_p);
        if (t + 2 < tiles) {
          load_rows(rq, q, row0, (t + 2) * TILE_D, M, D);
          load_rows(rp, p, col0, (t + 2) * TILE_D, N, D);
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

  put_norms(norms, norm_q);
  put_norms(norms + TILE, norm_p);
  __syncthreads();

  const int lane = tid & 31;
  const int r0 = (tid >> 5) * 16 + (lane >> 2);
  const int c0 = (lane & 3) * 2;
  const bool pairs = (N & 1) == 0;
  unsigned long long again = 0;  // pairs to be computed from the differences
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int i = row0 + r0 + h * 8;
    if (i < M) {
      const float nq = norms[r0 + h * 8];
      float* o = out + (size_t)i * N;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const int c = c0 + j * 8;
        const int col = col0 + c;
        const float2 np = *reinterpret_cast<const float2*>(norms + TILE + c);
        const float s0 = nq + np.x;
        const float s1 = nq + np.y;
        const float v0 = fmaf(-2.0f, total[j * 4 + h * 2], s0);
        const float v1 = fmaf(-2.0f, total[j * 4 + h * 2 + 1], s1);
        const bool good0 = v0 >= 0.125f * s0 && s0 > 1e-30f && s0 < 1e37f;
        const bool good1 = v1 >= 0.125f * s1 && s1 > 1e-30f && s1 < 1e37f;
        if (!good0 && col < N) again |= 1ull << (j * 4 + h * 2);
        if (!good1 && col + 1 < N) again |= 1ull << (j * 4 + h * 2 + 1);
        if (pairs) {
          if (col < N) {
            __stcs(reinterpret_cast<float2*>(o + col), make_float2(v0, v1));
          }
        } else {
          if (col < N) o[col] = v0;
          if (col + 1 < N) o[col + 1] = v1;
        }
      }
    }
  }

  while (again != 0) {
    const int e = __ffsll((long long)again) - 1;
    again &= again - 1;
    const int i = row0 + r0 + ((e >> 1) & 1) * 8;
    const int j = col0 + c0 + (e >> 2) * 8 + (e & 1);
    const float* a = q + (size_t)i * D;
    const float* b = p + (size_t)j * D;
    float sum = 0.0f;
#pragma unroll 4
    for (int d = 0; d < D; ++d) {
      const float difference = a[d] - b[d];
      sum += difference * difference;
    }
    out[(size_t)i * N + j] = sum;
  }
}
