// Each row times the matrix of the expert that it was given to.
// route lists the rows of each expert; expert_product computes tiles of 128 columns x up to 128 rows of one expert
// as W^T (from registers) times x^T (from shared memory), each f32 as the sum of two tf32.

#include <cstdint>

//@ scratch rows: i32[E, M]
//@ scratch count: i32[E]
//@ scratch meta: i32[2]

//@ launch route<<<E, 1024>>>(expert, rows, count, meta, M)
__global__ void __launch_bounds__(1024) route(const int* __restrict__ expert, int* __restrict__ rows,
                                              int* __restrict__ count, int* __restrict__ meta, int M) {
  __shared__ int total;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int e = blockIdx.x;
  if (tid == 0) total = 0;
  __syncthreads();
  int* mine = rows + (size_t)e * M;
  for (int base = 0; base < M; base += 8 * 1024) {
    int v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int i = base + j * 1024 + tid;
      v[j] = i < M ? expert[i] : -1;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const bool hit = v[j] == e;
      const unsigned hits = __ballot_sync(0xffffffffu, hit);
      int at = 0;
      if (lane == 0 && hits != 0u) at = atomicAdd(&total, __popc(hits));
      at = __shfl_sync(0xffffffffu, at, 0);
      if (hit) mine[at + __popc(hits & ((1u << lane) - 1u))] = base + j * 1024 + tid;
    }
  }
  __syncthreads();
  if (tid == 0) {
    count[e] = total;
    if (e == 0) {
      meta[0] = gridDim.x;  // experts
      meta[1] = 0;          // tiles handed out
    }
  }
}

constexpr int EP_WPITCH = 136;                          // floats of a row of the tile of W, padded
constexpr int EP_XBYTES = 128 * 128;                    // 128 rows of 32 floats
constexpr int EP_STAGE = 2 * EP_XBYTES + 32 * EP_WPITCH * 4;  // 50176, a multiple of 1024

// v = hi + lo, both representable in tf32
__device__ __forceinline__ void ep_split(float v, uint32_t& hi, uint32_t& lo) {
  hi = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  lo = (__float_as_uint(v - __uint_as_float(hi)) + 0x1000u) & 0xffffe000u;
}

// rows of 128 bytes, 128-byte swizzle, groups of 8 rows 1024 bytes apart
__device__ __forceinline__ uint64_t ep_desc(uint32_t address) {
  return (uint64_t)((address & 0x3ffffu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

#define EP_D4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define EP_D16(i) EP_D4(i), EP_D4((i) + 4), EP_D4((i) + 8), EP_D4((i) + 12)

__device__ __forceinline__ void ep_mma(float (&d)[64], const uint32_t (&a)[4], uint64_t desc) {
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
      "{%64, %65, %66, %67}, %68, p, 1, 1;\n"
      "}\n"
      : EP_D16(0), EP_D16(16), EP_D16(32), EP_D16(48)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc), "r"(1));
}

__device__ __forceinline__ void ep_mma(float (&d)[32], const uint32_t (&a)[4], uint64_t desc) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, p, 1, 1;\n"
      "}\n"
      : EP_D16(0), EP_D16(16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc), "r"(1));
}

// one tile: NT rows (those in tile_rows, -1 for none), columns n0 .. n0 + 127
template <int NT>
__device__ __forceinline__ void ep_tile(const float* __restrict__ x, const float* __restrict__ We,
                                        float* __restrict__ out, const int* tile_rows, unsigned char* smem,
                                        uint32_t smem_address, int n0, int N, int K) {
  constexpr int J = NT / 64;  // float4 of x that a thread moves in half a step
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;  // warps 0 .. 3 and 4 .. 7 are the two warpgroups, 16 columns a warp

  float d[NT / 2];
#pragma unroll
  for (int i = 0; i < NT / 2; ++i) d[i] = 0.0f;

  // x: thread moves 16 bytes of rows (tid >> 3) + 32 j
  const int slot = tid & 7;
  const int xrow = tid >> 3;
  int xo[2 * J];
#pragma unroll
  for (int j = 0; j < 2 * J; ++j) {
    const int r = tile_rows[xrow + 32 * j];
    xo[j] = r >= 0 ? r * K + slot * 4 : -1;
  }
  const int xdst = xrow * 128 + ((slot ^ (xrow & 7)) << 4);

  // W: thread moves 16 bytes of rows (tid >> 5) + 8 j
  const int wn = n0 + lane * 4;
  const uint32_t wdst = smem_address + 2 * EP_XBYTES + warp * (EP_WPITCH * 4) + lane * 16;

  auto load_x = [&](int j, int k0) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (xo[j] >= 0 && k0 + slot * 4 < K) v = __ldg(reinterpret_cast<const float4*>(x + xo[j] + k0));
    return v;
  };
  auto store_x = [&](int stage, int j, float4 v) {
    uint4 hi, lo;
    ep_split(v.x, hi.x, lo.x);
    ep_split(v.y, hi.y, lo.y);
    ep_split(v.z, hi.z, lo.z);
    ep_split(v.w, hi.w, lo.w);
    unsigned char* to = smem + stage * EP_STAGE + xdst + j * 4096;
    *reinterpret_cast<uint4*>(to) = hi;
    *reinterpret_cast<uint4*>(to + EP_XBYTES) = lo;
  };
  auto load_w = [&](int stage, int k0) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int k = k0 + warp + 8 * j;
      const bool ok = k < K && wn < N;
      const float* src = ok ? We + (size_t)k * N + wn : We;
      const uint32_t dst = wdst + stage * EP_STAGE + j * (8 * EP_WPITCH * 4);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(ok ? 16 : 0) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  load_w(0, 0);
#pragma unroll
  for (int j = 0; j < 2 * J; ++j) store_x(0, j, load_x(j, 0));
  asm volatile("cp.async.wait_all;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();

  int s = 0;
#pragma unroll 1
  for (int k0 = 0; k0 < K; k0 += 32) {
    load_w(s ^ 1, k0 + 32);
    const float* wt = reinterpret_cast<const float*>(smem + s * EP_STAGE + 2 * EP_XBYTES) +
                      (lane & 3) * EP_WPITCH + warp * 16 + (lane >> 2);
    const uint64_t desc_hi = ep_desc(smem_address + s * EP_STAGE);
    const uint64_t desc_lo = ep_desc(smem_address + s * EP_STAGE + EP_XBYTES);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float4 xv[J];
#pragma unroll
      for (int j = 0; j < J; ++j) xv[j] = load_x(h * J + j, k0 + 32);

      uint32_t ah[2][4], al[2][4];
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const float* w = wt + (2 * h + q) * 8 * EP_WPITCH;
        ep_split(w[0], ah[q][0], al[q][0]);
        ep_split(w[8], ah[q][1], al[q][1]);
        ep_split(w[4 * EP_WPITCH], ah[q][2], al[q][2]);
        ep_split(w[4 * EP_WPITCH + 8], ah[q][3], al[q][3]);
      }

#pragma unroll
      for (int i = 0; i < NT / 2; ++i) asm volatile("" : "+f"(d[i])::"memory");
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const uint64_t advance = (uint64_t)(2 * (2 * h + q));
        ep_mma(d, al[q], desc_hi + advance);
        ep_mma(d, ah[q], desc_lo + advance);
        ep_mma(d, ah[q], desc_hi + advance);
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

      // the next step's x, while the tensor cores work
#pragma unroll
      for (int j = 0; j < J; ++j) store_x(s ^ 1, h * J + j, xv[j]);

      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
      for (int i = 0; i < NT / 2; ++i) asm volatile("" : "+f"(d[i])::"memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    s ^= 1;
  }

  const int n = n0 + warp * 16 + (lane >> 2);
#pragma unroll
  for (int j = 0; j < NT / 8; ++j) {
    const int2 r = *reinterpret_cast<const int2*>(tile_rows + j * 8 + (lane & 3) * 2);
    if (r.x >= 0) {
      float* o = out + (size_t)r.x * N + n;
      if (n < N) o[0] = d[4 * j];
      if (n + 8 < N) o[8] = d[4 * j + 2];
    }
    if (r.y >= 0) {
      float* o = out + (size_t)r.y * N + n;
      if (n < N) o[0] = d[4 * j + 1];
      if (n + 8 < N) o[8] = d[4 * j + 3];
    }
  }
}

//@ launch expert_product<<<264, 256, 101376>>>(x, expert, W, out, rows, count, meta, M, N, K)
__global__ void __launch_bounds__(256, 2)
expert_product(const float* __restrict__ x, const int* __restrict__ expert, const float* __restrict__ W,
               float* __restrict__ out, const int* __restrict__ rows, const int* __restrict__ count, int* meta,
               int M, int N, int K) {
  extern __shared__ unsigned char ep_shared[];
  __shared__ __align__(16) int tile_rows[128];
  __shared__ int handed;
  const int tid = threadIdx.x;

  if ((K & 3) != 0 || (N & 3) != 0) {
    // rows that 16-byte copies do not fit
    const long long total = (long long)M * N;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + tid; i < total; i += step) {
      const int m = (int)(i / N);
      const int n = (int)(i - (long long)m * N);
      const float* a = x + (size_t)m * K;
      const float* b = W + (size_t)expert[m] * K * N + n;
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += a[k] * b[(size_t)k * N];
      out[i] = sum;
    }
    return;
  }

  const uint32_t raw = (uint32_t)__cvta_generic_to_shared(ep_shared);
  const uint32_t smem_address = (raw + 1023u) & ~1023u;
  unsigned char* smem = ep_shared + (smem_address - raw);

  const int E = meta[0];
  const int n_tiles = (N + 127) / 128;

  for (;;) {
    __syncthreads();
    if (tid == 0) handed = atomicAdd(meta + 1, 1);
    __syncthreads();
    const int t = handed;
    int left = t / n_tiles;
    const int n0 = (t - left * n_tiles) * 128;

    // whole tiles first, then the larger remainders, then the smaller ones
    int found = -1, first = 0, size = 0;
    for (int kind = 0; kind < 3 && found < 0; ++kind) {
      for (int e = 0; e < E; ++e) {
        const int c = count[e];
        const int rest = c & 127;
        const int have = kind == 0 ? (c >> 7) : kind == 1 ? (rest > 64 ? 1 : 0) : (rest > 0 && rest <= 64 ? 1 : 0);
        if (left < have) {
          found = e;
          first = kind == 0 ? left * 128 : c - rest;
          size = kind == 0 ? 128 : rest;
          break;
        }
        left -= have;
      }
    }
    if (found < 0) break;

    if (tid < 128) tile_rows[tid] = tid < size ? rows[(size_t)found * M + first + tid] : -1;
    __syncthreads();

    const float* We = W + (size_t)found * K * N;
    if (size > 64) {
      ep_tile<128>(x, We, out, tile_rows, smem, smem_address, n0, N, K);
    } else {
      ep_tile<64>(x, We, out, tile_rows, smem, smem_address, n0, N, K);
    }
  }
}
