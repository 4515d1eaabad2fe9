// Two products of one input, and one result gated by the other, in one launch:
// out^T = (W^T x^T) gated with (V^T x^T), tensor cores with operands split in two (three products).
#include <cstdint>

//@ launch gated_projection<<<(ceil_div(N, 128), ceil_div(M, 128)), 256, 171008>>>(x, W, V, out, M, N, K)

constexpr int BK = 32;
constexpr int PITCH = 136;               // floats in a row of a W or V tile
constexpr int WTILE = BK * PITCH;        // floats
constexpr int STAGES = 3;

__device__ __forceinline__ void wgmma_tf32(float (&d)[64], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                           uint64_t desc) {
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
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(desc), "r"(1));
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
  uint32_t wb[4], ws[4], vb[4], vs[4];
};

__device__ __forceinline__ void load_frag(Frag& f, const float* pw, const float* pv) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int at = (e & 1) * 8 + (e >> 1) * 4 * PITCH;
    split(pw[at], f.wb[e], f.ws[e]);
    split(pv[at], f.vb[e], f.vs[e]);
  }
}

__device__ __forceinline__ void multiply(float (&dw)[64], float (&dv)[64], const Frag& f, uint64_t big, uint64_t small) {
  wgmma_fence();
  wgmma_tf32(dw, f.ws[0], f.ws[1], f.ws[2], f.ws[3], big);
  wgmma_tf32(dv, f.vs[0], f.vs[1], f.vs[2], f.vs[3], big);
  wgmma_tf32(dw, f.wb[0], f.wb[1], f.wb[2], f.wb[3], small);
  wgmma_tf32(dv, f.vb[0], f.vb[1], f.vb[2], f.vb[3], small);
  wgmma_tf32(dw, f.wb[0], f.wb[1], f.wb[2], f.wb[3], big);
  wgmma_tf32(dv, f.vb[0], f.vb[1], f.vb[2], f.vb[3], big);
  wgmma_commit();
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

template <bool VEC>
__device__ __forceinline__ void load_x(float4 (&xr)[4], const float* __restrict__ x, int k0, int m0, int M, int K) {
  const int tid = threadIdx.x;
  const int k = k0 + (tid & 7) * 4;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int m = m0 + (tid >> 3) + 32 * r;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float* from = x + (size_t)m * K + k;
    if (VEC) {
      if (m < M && k < K) v = __ldg(reinterpret_cast<const float4*>(from));
    } else {
      if (m < M) {
        if (k < K) v.x = from[0];
        if (k + 1 < K) v.y = from[1];
        if (k + 2 < K) v.z = from[2];
        if (k + 3 < K) v.w = from[3];
      }
    }
    xr[r] = v;
  }
}

// rows of 128 bytes, 16-byte pieces exchanged as the 128-byte swizzle asks
__device__ __forceinline__ void store_x(char* big, char* small, const float4 (&xr)[4]) {
  const int tid = threadIdx.x;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = (tid >> 3) + 32 * r;
    const int off = row * 128 + (((tid & 7) ^ (row & 7)) << 4);
    uint4 b, s;
    split(xr[r].x, b.x, s.x);
    split(xr[r].y, b.y, s.y);
    split(xr[r].z, b.z, s.z);
    split(xr[r].w, b.w, s.w);
    *reinterpret_cast<uint4*>(big + off) = b;
    *reinterpret_cast<uint4*>(small + off) = s;
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

  char* xbig = smem;                 // two tiles of 16 KiB
  char* xsmall = smem + 32768;       // two tiles of 16 KiB
  float* wtiles = reinterpret_cast<float*>(smem + 65536);
  float* vtiles = wtiles + STAGES * WTILE;
  const uint32_t w_address = (uint32_t)__cvta_generic_to_shared(wtiles);
  const uint32_t v_address = (uint32_t)__cvta_generic_to_shared(vtiles);
  const uint64_t big0 = describe((uint32_t)__cvta_generic_to_shared(xbig));
  const uint64_t small0 = describe((uint32_t)__cvta_generic_to_shared(xsmall));

  float dw[64], dv[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    dw[i] = 0.0f;
    dv[i] = 0.0f;
  }

  const int tiles = (K + BK - 1) / BK;
  float4 xr[4];
  load_x<VEC>(xr, x, 0, m0, M, K);
  load_weights<VEC>(w_address, v_address, W, V, 0, n0, N, K);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  load_weights<VEC>(w_address + WTILE * 4, v_address + WTILE * 4, W, V, BK, n0, N, K);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  store_x(xbig, xsmall, xr);
  load_x<VEC>(xr, x, BK, m0, M, K);

  int stage = 0;
  int fill = 2;
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    asm volatile("fence.proxy.async;\n" ::: "memory");
    __syncthreads();

    const float* pw = wtiles + stage * WTILE + tq * PITCH + col;
    const float* pv = vtiles + stage * WTILE + tq * PITCH + col;
    const uint64_t big = big0 + (uint64_t)((t & 1) * (16384 >> 4));
    const uint64_t small = small0 + (uint64_t)((t & 1) * (16384 >> 4));

    Frag f0, f1;
    load_frag(f0, pw, pv);
    multiply(dw, dv, f0, big, small);

    // the next tiles, while the tensor cores work
    load_weights<VEC>(w_address + fill * (WTILE * 4), v_address + fill * (WTILE * 4), W, V, (t + 2) * BK, n0, N, K);
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    store_x(xbig + ((t + 1) & 1) * 16384, xsmall + ((t + 1) & 1) * 16384, xr);
    load_x<VEC>(xr, x, (t + 2) * BK, m0, M, K);

    load_frag(f1, pw + 8 * PITCH, pv + 8 * PITCH);
    multiply(dw, dv, f1, big + 2, small + 2);
    wgmma_wait<1>();
    load_frag(f0, pw + 16 * PITCH, pv + 16 * PITCH);
    multiply(dw, dv, f0, big + 4, small + 4);
    wgmma_wait<1>();
    load_frag(f1, pw + 24 * PITCH, pv + 24 * PITCH);
    multiply(dw, dv, f1, big + 6, small + 6);
    wgmma_wait<0>();

    if (++stage == STAGES) stage = 0;
    if (++fill == STAGES) fill = 0;
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    asm volatile("" : "+f"(dw[i])::"memory");
    asm volatile("" : "+f"(dv[i])::"memory");
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
  extern __shared__ char raw[];
  const uint32_t address = (uint32_t)__cvta_generic_to_shared(raw);
  char* smem = raw + ((1024u - (address & 1023u)) & 1023u);
  if (((N | K) & 3) == 0) {
    body<true>(smem, x, W, V, out, M, N, K);
  } else {
    body<false>(smem, x, W, V, out, M, N, K);
  }
}
