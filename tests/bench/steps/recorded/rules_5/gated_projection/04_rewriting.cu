// Two products of one input, and one result gated by the other, in one launch:
// out^T = (W^T x^T) gated with (V^T x^T), tensor cores with operands split in two (three products),
// chunks of 32 k summed by the tensor cores, the chunks added in f32.
#include <cstdint>

//@ launch gated_projection<<<(ceil_div(N, 128), ceil_div(M, 128)), 256, 220160>>>(x, W, V, out, M, N, K)

constexpr int BK = 32;
constexpr int PITCH = 136;               // floats in a row of a W or V tile
constexpr int WTILE = BK * PITCH;        // floats
constexpr int STAGES = 3;

__device__ __forceinline__ void wgmma_tf32(float (&d)[64], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                           uint64_t desc, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, "
      "%68, p, 1, 1;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(desc), "r"(keep));
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int LEFT>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(LEFT) : "memory");
}

// v = big + small, big rounded to tf32; what is not finite leaves a NaN in small
__device__ __forceinline__ void split(float v, uint32_t& big, uint32_t& small) {
  big = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  small = __float_as_uint(v - __uint_as_float(big)) & 0xffffe000u;
}

struct Frag {
  uint32_t b[4], s[4];
};

__device__ __forceinline__ void load_frag(Frag& f, const float* p) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int at = (e & 1) * 8 + (e >> 1) * 4 * PITCH;
    split(p[at], f.b[e], f.s[e]);
  }
}

__device__ __forceinline__ void multiply(float (&d)[64], const Frag& f, uint64_t big, uint64_t small, int keep) {
  wgmma_fence();
  wgmma_tf32(d, f.s[0], f.s[1], f.s[2], f.s[3], big, keep);
  wgmma_tf32(d, f.b[0], f.b[1], f.b[2], f.b[3], small, 1);
  wgmma_tf32(d, f.b[0], f.b[1], f.b[2], f.b[3], big, 1);
  wgmma_commit();
}

// after all products are done: the chunk goes to the sums
__device__ __forceinline__ void promote(float (&sum)[64], float (&chunk)[64]) {
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(chunk[i])::"memory");
#pragma unroll
  for (int i = 0; i < 64; ++i) sum[i] += chunk[i];
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(chunk[i])::"memory");
}

__device__ __forceinline__ void copy16(uint32_t to, const float* from, bool ok) {
  const int bytes = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy4(uint32_t to, const float* from, bool ok) {
  const int bytes = ok ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

template <bool VEC>
__device__ __forceinline__ void load_weights(uint32_t to_w, uint32_t to_v, const float* __restrict__ W,
                                             const float* __restrict__ V, int k0, int n0, int N, int K) {
  const int tid = threadIdx.x;
  if (VEC) {
    const int n = n0 + (tid & 31) * 4;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int row = (tid >> 5) + 8 * r;
      const bool ok = n < N && k0 + row < K;
      const size_t at = ok ? (size_t)(k0 + row) * N + n : 0;
      const uint32_t off = (uint32_t)(row * PITCH + (tid & 31) * 4) * 4u;
      copy16(to_w + off, W + at, ok);
      copy16(to_v + off, V + at, ok);
    }
  } else {
    const int n = n0 + (tid & 127);
#pragma unroll 1
    for (int r = 0; r < 16; ++r) {
      const int row = (tid >> 7) + 2 * r;
      const bool ok = n < N && k0 + row < K;
      const size_t at = ok ? (size_t)(k0 + row) * N + n : 0;
      const uint32_t off = (uint32_t)(row * PITCH + (tid & 127)) * 4u;
      copy4(to_w + off, W + at, ok);
      copy4(to_v + off, V + at, ok);
    }
  }
}

// each thread copies the pieces of x that it will split itself
template <bool VEC>
__device__ __forceinline__ void load_x(uint32_t raw, const float* __restrict__ x, int k0, int m0, int M, int K) {
  const int tid = threadIdx.x;
  const int k = k0 + (tid & 7) * 4;
  if (VEC) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int m = m0 + (tid >> 3) + 32 * r;
      const bool ok = m < M && k < K;
      const size_t at = ok ? (size_t)m * K + k : 0;
      copy16(raw + (uint32_t)(r * 256 + tid) * 16u, x + at, ok);
    }
  } else {
#pragma unroll 1
    for (int q = 0; q < 16; ++q) {
      const int r = q >> 2;
      const int e = q & 3;
      const int m = m0 + (tid >> 3) + 32 * r;
      const bool ok = m < M && k + e < K;
      const size_t at = ok ? (size_t)m * K + k + e : 0;
      copy4(raw + (uint32_t)(r * 256 + tid) * 16u + (uint32_t)e * 4u, x + at, ok);
    }
  }
}

// rows of 128 bytes, 16-byte pieces exchanged as the 128-byte swizzle asks
__device__ __forceinline__ void convert_x(char* to, const char* raw) {
  const int tid = threadIdx.x;
  const int row = tid >> 3;
  const int off = row * 128 + (((tid & 7) ^ (row & 7)) << 4);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const float4 v = *reinterpret_cast<const float4*>(raw + (r * 256 + tid) * 16);
    uint4 b, s;
    split(v.x, b.x, s.x);
    split(v.y, b.y, s.y);
    split(v.z, b.z, s.z);
    split(v.w, b.w, s.w);
    *reinterpret_cast<uint4*>(to + off + r * 4096) = b;
    *reinterpret_cast<uint4*>(to + 16384 + off + r * 4096) = s;
  }
}

__device__ __forceinline__ uint64_t describe(uint32_t address) {
  return (uint64_t)((address & 0x3ffffu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

template <bool VEC>
__device__ __forceinline__ void body(char* smem, const float* __restrict__ x, const float* __restrict__ W,
                                     const float* __restrict__ V, float* __restrict__ out, int M, int N, int K) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int g = lane >> 2;
  const int tq = lane & 3;
  const int col = (tid >> 5) * 16 + g;  // 8 warps, 16 columns of the output each
  const int n0 = blockIdx.x * 128;
  const int m0 = blockIdx.y * 128;

  char* xs = smem;                                                   // three of (big 16 KiB, small 16 KiB)
  float* wtiles = reinterpret_cast<float*>(smem + STAGES * 32768);   // three of (W, V)
  char* raw = smem + STAGES * 32768 + STAGES * 2 * WTILE * 4;        // 16 KiB, each thread's own pieces
  const uint32_t w_address = (uint32_t)__cvta_generic_to_shared(wtiles);
  const uint32_t raw_address = (uint32_t)__cvta_generic_to_shared(raw);
  const uint64_t desc0 = describe((uint32_t)__cvta_generic_to_shared(xs));
  const float* frag0 = wtiles + tq * PITCH + col;

  float dw[64], dv[64], chunk[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    dw[i] = 0.0f;
    dv[i] = 0.0f;
    chunk[i] = 0.0f;
  }

  const int tiles = (K + BK - 1) / BK;
  load_x<VEC>(raw_address, x, 0, m0, M, K);
  load_weights<VEC>(w_address, w_address + WTILE * 4, W, V, 0, n0, N, K);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  convert_x(xs, raw);
  asm volatile("fence.proxy.async;\n" ::: "memory");
  __syncthreads();
  load_x<VEC>(raw_address, x, BK, m0, M, K);
  load_weights<VEC>(w_address + 2 * WTILE * 4, w_address + 3 * WTILE * 4, W, V, BK, n0, N, K);
  asm volatile("cp.async.commit_group;\n" ::: "memory");

  Frag f0, f1;
  load_frag(f0, frag0);

  int cur = 0;
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    const int nxt = cur == STAGES - 1 ? 0 : cur + 1;
    const int fill = nxt == STAGES - 1 ? 0 : nxt + 1;
    const float* pw = frag0 + cur * (2 * WTILE);
    const float* pv = pw + WTILE;
    const uint64_t big = desc0 + (uint64_t)(cur * (32768 >> 4));
    const uint64_t small = big + (uint64_t)(16384 >> 4);

    // W
    multiply(chunk, f0, big, small, 0);
    load_frag(f1, pw + 8 * PITCH);
    multiply(chunk, f1, big + 2, small + 2, 1);
    wgmma_wait<1>();
    load_frag(f0, pw + 16 * PITCH);
    multiply(chunk, f0, big + 4, small + 4, 1);

    // the next tile of x is split while the tensor cores work
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    convert_x(xs + nxt * 32768, raw);
    asm volatile("fence.proxy.async;\n" ::: "memory");

    wgmma_wait<1>();
    load_frag(f1, pw + 24 * PITCH);
    multiply(chunk, f1, big + 6, small + 6, 1);
    wgmma_wait<1>();
    load_frag(f0, pv);
    wgmma_wait<0>();
    promote(dw, chunk);

    // V
    multiply(chunk, f0, big, small, 0);
    load_frag(f1, pv + 8 * PITCH);
    multiply(chunk, f1, big + 2, small + 2, 1);

    // the next tile is complete, and nobody reads the last one any more
    __syncthreads();
    load_x<VEC>(raw_address, x, (t + 2) * BK, m0, M, K);
    load_weights<VEC>(w_address + fill * (2 * WTILE * 4), w_address + fill * (2 * WTILE * 4) + WTILE * 4, W, V,
                      (t + 2) * BK, n0, N, K);
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    wgmma_wait<1>();
    load_frag(f0, pv + 16 * PITCH);
    multiply(chunk, f0, big + 4, small + 4, 1);
    wgmma_wait<1>();
    load_frag(f1, pv + 24 * PITCH);
    multiply(chunk, f1, big + 6, small + 6, 1);
    wgmma_wait<1>();
    load_frag(f0, frag0 + nxt * (2 * WTILE));
    wgmma_wait<0>();
    promote(dv, chunk);

    cur = nxt;
  }
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");

  bool bad = false;
#pragma unroll
  for (int j = 0; j < 16; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int m = m0 + 8 * j + 2 * tq + (e & 1);
      const int n = n0 + col + 8 * (e >> 1);
      const float gate = dw[4 * j + e];
      const float value = dv[4 * j + e];
      if (m < M && n < N) {
        bad |= !(fabsf(gate) <= 3.402823466e38f) || !(fabsf(value) <= 3.402823466e38f);
        out[(size_t)m * N + n] = gate / (1.0f + expf(-gate)) * value;
      }
    }
  }
  if (bad) {
    // values that are not finite, or nearly so: plain arithmetic
#pragma unroll 1
    for (int q = 0; q < 64; ++q) {
      const int m = m0 + 8 * (q >> 2) + 2 * tq + (q & 1);
      const int n = n0 + col + 8 * ((q >> 1) & 1);
      if (m < M && n < N) {
        float gate = 0.0f, value = 0.0f;
#pragma unroll 1
        for (int k = 0; k < K; ++k) {
          const float xv = x[(size_t)m * K + k];
          gate = fmaf(xv, W[(size_t)k * N + n], gate);
          value = fmaf(xv, V[(size_t)k * N + n], value);
        }
        out[(size_t)m * N + n] = gate / (1.0f + expf(-gate)) * value;
      }
    }
  }
}

__global__ void __launch_bounds__(256, 1) gated_projection(const float* __restrict__ x, const float* __restrict__ W,
                                                           const float* __restrict__ V, float* __restrict__ out, int M,
                                                           int N, int K) {
  extern __shared__ char raw_memory[];
  const uint32_t address = (uint32_t)__cvta_generic_to_shared(raw_memory);
  char* smem = raw_memory + ((1024u - (address & 1023u)) & 1023u);
  if (((N | K) & 3) == 0) {
    body<true>(smem, x, W, V, out, M, N, K);
  } else {
    body<false>(smem, x, W, V, out, M, N, K);
  }
}
