// Squared distances between two sets of points as |q|^2 + |p|^2 - 2 q.p about a centre near the points.
// The dot products run on the tensor cores with each f32 taken apart into three bf16 (h + m + l is
// the f32 exactly): l*h + h*l + m*m + m*h + h*m + h*h, what is left out is below 2^-24 of the product.
// Where the sum cancels, the differences themselves are squared and added.

//@ scratch qs: f32[ceil_div(M, 256) * 2, ceil_div(D, 32), 6144]
//@ scratch ps: f32[ceil_div(N, 128), ceil_div(D, 32), 6144]
//@ scratch q_norms: f32[ceil_div(M, 256) * 256]
//@ scratch p_norms: f32[ceil_div(N, 128) * 128]
//@ launch split<<<ceil_div(M, 256) * 32 + ceil_div(N, 128) * 16, 256>>>(q, p, qs, ps, q_norms, p_norms, M, N, D)
//@ launch squared_distances<<<min(132, 2 * ceil_div(M, 256) * ceil_div(N, 128)), 288, 196608, cluster(2, 1, 1)>>>(q, p, qs, ps, q_norms, p_norms, out, M, N, D)

#include <cstdint>
#include <cstddef>
#include <cfloat>
#include <cuda_bf16.h>

// One tile of either operand: 3 planes (h, m, l) of 4 chunks of 8 dimensions of 128 rows, 16 bytes a row.
constexpr uint32_t TILE_BYTES = 24576;
constexpr uint32_t PLANE_BYTES = 8192;
constexpr uint32_t CHUNK_BYTES = 2048;
constexpr uint32_t STAGE_BYTES = 2 * TILE_BYTES;
constexpr int STAGES = 4;

__device__ __forceinline__ void take_apart(const float (&v)[8], uint4* to) {
  uint32_t h[4], m[4], l[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t hp = 0, mp = 0, lp = 0;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float value = v[2 * i + e];
      const __nv_bfloat16 hb = __float2bfloat16_rn(value);
      const float r1 = value - __bfloat162float(hb);
      const __nv_bfloat16 mb = __float2bfloat16_rn(r1);
      const float r2 = r1 - __bfloat162float(mb);
      const __nv_bfloat16 lb = __float2bfloat16_rn(r2);
      hp |= (uint32_t)__bfloat16_as_ushort(hb) << (16 * e);
      mp |= (uint32_t)__bfloat16_as_ushort(mb) << (16 * e);
      lp |= (uint32_t)__bfloat16_as_ushort(lb) << (16 * e);
    }
    h[i] = hp;
    m[i] = mp;
    l[i] = lp;
  }
  to[0] = make_uint4(h[0], h[1], h[2], h[3]);
  to[512] = make_uint4(m[0], m[1], m[2], m[3]);
  to[1024] = make_uint4(l[0], l[1], l[2], l[3]);
}

// 8 dimensions of one row from k on, zeros behind the end.
__device__ __forceinline__ void load8(const float* __restrict__ row, int k, int D, bool vector,
                                      float (&v)[8]) {
  if (vector && k + 8 <= D) {
    const float4 a = *reinterpret_cast<const float4*>(row + k);
    const float4 b = *reinterpret_cast<const float4*>(row + k + 4);
    v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
    v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = k + e < D ? row[k + e] : 0.0f;
  }
}

// One block takes 8 rows: centres them, takes them apart and sums their squares.
__global__ void __launch_bounds__(256) split(const float* __restrict__ q, const float* __restrict__ p,
                                             float* __restrict__ qs, float* __restrict__ ps,
                                             float* __restrict__ q_norms, float* __restrict__ p_norms,
                                             int M, int N, int D) {
  __shared__ float partial[8][8];
  const int k_tiles = (D + 31) / 32;
  const int q_blocks = (M + 255) / 256 * 32;
  const bool of_q = (int)blockIdx.x < q_blocks;
  const int block = of_q ? (int)blockIdx.x : (int)blockIdx.x - q_blocks;
  const float* points = of_q ? q : p;
  uint4* parts = reinterpret_cast<uint4*>(of_q ? qs : ps);
  float* norms = of_q ? q_norms : p_norms;
  const int count = of_q ? M : N;

  const int row8 = threadIdx.x & 7;
  const int row = block * 8 + row8;
  const int tile = row / 128;
  const int row_in_tile = row % 128;
  const bool inside = row < count;
  const bool vector = (D & 3) == 0 && (reinterpret_cast<uintptr_t>(q) & 15) == 0 &&
                      (reinterpret_cast<uintptr_t>(p) & 15) == 0;
  const float* mine = points + (size_t)(inside ? row : 0) * D;
  const float* first = p;
  const float* middle = p + (size_t)(N / 2) * D;
  const float* last = p + (size_t)(N - 1) * D;

  float norm = 0.0f;
  for (int chunk = threadIdx.x >> 3; chunk < k_tiles * 4; chunk += 32) {
    const int k = chunk * 8;
    float v[8];
    if (inside) {
      float a[8], b[8], c[8];
      load8(mine, k, D, vector, v);
      load8(first, k, D, vector, a);
      load8(middle, k, D, vector, b);
      load8(last, k, D, vector, c);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        // any centre is right; the middle one of three points is rarely far off
        float centre = fmaxf(fminf(a[e], b[e]), fminf(fmaxf(a[e], b[e]), c[e]));
        if (!(fabsf(centre) <= FLT_MAX)) centre = 0.0f;
        v[e] = v[e] - centre;
        norm = fmaf(v[e], v[e], norm);
      }
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] = 0.0f;
    }
    take_apart(v, parts + ((size_t)tile * k_tiles + (chunk >> 2)) * (TILE_BYTES / 16) +
                      (chunk & 3) * 128 + row_in_tile);
  }

  norm += __shfl_xor_sync(0xFFFFFFFFu, norm, 8);
  norm += __shfl_xor_sync(0xFFFFFFFFu, norm, 16);
  if ((threadIdx.x & 31) < 8) partial[threadIdx.x / 32][row8] = norm;
  __syncthreads();
  if (threadIdx.x < 8) {
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) sum += partial[w][threadIdx.x];
    norms[block * 8 + threadIdx.x] = sum;
  }
}

__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
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
  } while (!done);
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory");
}

// Operands without swizzle: 8 rows of 16 bytes lie together, the next 8 rows 128 bytes on,
// the next 8 dimensions CHUNK_BYTES on.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return (uint64_t)((address & 0x3FFFF) >> 4) | ((uint64_t)(CHUNK_BYTES >> 4) << 16) |
         ((uint64_t)(128 >> 4) << 32);
}

__device__ __forceinline__ void multiply(float (&d)[64], uint64_t a, uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(keep));
}

// Keeps the compiler from moving uses of the accumulators over this point.
__device__ __forceinline__ void hold(float (&d)[64]) {
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Whether the sum of norms and product says as much as the differences would.
__device__ __forceinline__ bool trusted(float distance, float norms) {
  return distance >= norms * 0.0625f && norms >= 1e-30f && distance <= FLT_MAX;
}

// The elements named by the bits of again, each by the whole warp from the differences.
__device__ __forceinline__ void repeat(uint32_t again, int base, const float* __restrict__ q,
                                       const float* __restrict__ p, float* __restrict__ out, int row0,
                                       int col0, int lane, int N, int D) {
  uint32_t lanes = __ballot_sync(0xFFFFFFFFu, again != 0);
#pragma unroll 1
  while (lanes) {
    const int leader = __ffs((int)lanes) - 1;
    const uint32_t bits = __shfl_sync(0xFFFFFFFFu, again, leader);
    const int at = base + __ffs((int)bits) - 1;
    const int row = __shfl_sync(0xFFFFFFFFu, row0, leader) + ((at >> 1) & 1) * 8;
    const int col = __shfl_sync(0xFFFFFFFFu, col0, leader) + (at >> 2) * 8 + (at & 1);
    const float* qr = q + (size_t)row * D;
    const float* pr = p + (size_t)col * D;
    float sum = 0.0f;
#pragma unroll 1
    for (int d = lane; d < D; d += 32) {
      const float difference = qr[d] - pr[d];
      sum = fmaf(difference, difference, sum);
    }
#pragma unroll
    for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, half);
    if (lane == leader) {
      out[(size_t)row * N + col] = sum;
      again &= again - 1;
    }
    lanes = __ballot_sync(0xFFFFFFFFu, again != 0);
  }
}

__global__ void __launch_bounds__(288, 1)
    squared_distances(const float* __restrict__ q, const float* __restrict__ p,
                      const float* __restrict__ qs, const float* __restrict__ ps,
                      const float* __restrict__ q_norms, const float* __restrict__ p_norms,
                      float* __restrict__ out, int M, int N, int D) {
  extern __shared__ __align__(1024) unsigned char ring[];
  __shared__ __align__(8) uint64_t full_barriers[STAGES];
  __shared__ __align__(8) uint64_t empty_barriers[STAGES];

  const uint32_t ring_at = (uint32_t)__cvta_generic_to_shared(ring);
  const uint32_t full_at = (uint32_t)__cvta_generic_to_shared(full_barriers);
  const uint32_t empty_at = (uint32_t)__cvta_generic_to_shared(empty_barriers);
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));

  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;

  if (threadIdx.x == 0) {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(full_at + s * 8), "r"(1) : "memory");
      // 8 computing warps of each of the two blocks
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(empty_at + s * 8), "r"(16) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
  }
  __syncthreads();
  cluster_sync();

  const int k_tiles = (D + 31) / 32;
  const int m_pairs = (M + 255) / 256;
  const int pairs = m_pairs * ((N + 127) / 128);
  const int cluster = blockIdx.x / 2;
  const int clusters = gridDim.x / 2;

  if (warp == 8) {
    if (lane == 0) {
      int stage = 0;
      uint32_t round = 0;
      const char* q_bytes = reinterpret_cast<const char*>(qs);
      const char* p_bytes = reinterpret_cast<const char*>(ps);
      for (int pair = cluster; pair < pairs; pair += clusters) {
        const int m_tile = pair % m_pairs * 2 + (int)rank;
        const int n_tile = pair / m_pairs;
        const char* a_from = q_bytes + (size_t)m_tile * k_tiles * TILE_BYTES;
        const char* b_from = p_bytes + (size_t)n_tile * k_tiles * TILE_BYTES + rank * (TILE_BYTES / 2);
        for (int kt = 0; kt < k_tiles; ++kt) {
          const uint32_t full = full_at + stage * 8;
          if (round > 0) barrier_wait(empty_at + stage * 8, (round - 1) & 1);
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(full),
                       "r"(STAGE_BYTES)
                       : "memory");
          const uint32_t a_to = ring_at + stage * STAGE_BYTES;
          const uint32_t b_to = a_to + TILE_BYTES + rank * (TILE_BYTES / 2);
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(a_to),
              "l"(a_from), "r"(TILE_BYTES), "r"(full)
              : "memory");
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
              "[%3], %4;\n" ::"r"(b_to),
              "l"(b_from), "r"(TILE_BYTES / 2), "r"(full), "h"((uint16_t)3)
              : "memory");
          a_from += TILE_BYTES;
          b_from += TILE_BYTES;
          if (++stage == STAGES) {
            stage = 0;
            ++round;
          }
        }
      }
    }
    __syncwarp();
  } else {
    const int group = warp / 4;  // rows 64 * group of the tile
    int stage = 0;
    uint32_t parity = 0;
    float acc[64];
    float sum[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) acc[i] = 0.0f;

    for (int pair = cluster; pair < pairs; pair += clusters) {
      const int m_tile = pair % m_pairs * 2 + (int)rank;
      const int n_tile = pair / m_pairs;
      const int row0 = m_tile * 128 + group * 64 + (warp % 4) * 16 + lane / 4;
      const int col0 = n_tile * 128 + (lane % 4) * 2;
      const float nq0 = q_norms[row0];
      const float nq1 = q_norms[row0 + 8];
#pragma unroll
      for (int i = 0; i < 64; ++i) sum[i] = 0.0f;

      for (int kt = 0; kt < k_tiles; ++kt) {
        barrier_wait(full_at + stage * 8, parity);
        __syncwarp();
        const uint32_t a_at = ring_at + stage * STAGE_BYTES;
        const uint64_t a_desc = descriptor(a_at + group * 1024);
        const uint64_t b_desc = descriptor(a_at + TILE_BYTES);

        hold(acc);
        asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
        // the small products first, so that they lose nothing beside the large one
#pragma unroll
        for (int product = 0; product < 6; ++product) {
          const int pa = product == 0 ? 2 : product == 1 ? 0 : product == 2 ? 1 : product == 3 ? 1 : 0;
          const int pb = product == 0 ? 0 : product == 1 ? 2 : product == 2 ? 1 : product == 3 ? 0
                         : product == 4 ? 1 : 0;
#pragma unroll
          for (int step = 0; step < 2; ++step) {
            multiply(acc, a_desc + ((pa * PLANE_BYTES + step * 2 * CHUNK_BYTES) >> 4),
                     b_desc + ((pb * PLANE_BYTES + step * 2 * CHUNK_BYTES) >> 4),
                     (product == 0 && step == 0) ? 0 : 1);
          }
        }
        asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
        hold(acc);

        // free the stage in both blocks of the cluster
        if (lane < 2) {
          asm volatile(
              "{\n"
              ".reg .b32 remote;\n"
              "mapa.shared::cluster.u32 remote, %0, %1;\n"
              "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
              "}\n" ::"r"(empty_at + stage * 8),
              "r"(lane)
              : "memory");
        }
        __syncwarp();

#pragma unroll
        for (int i = 0; i < 64; ++i) sum[i] += acc[i];

        if (++stage == STAGES) {
          stage = 0;
          parity ^= 1;
        }
      }

      const bool even = (N & 1) == 0 && (reinterpret_cast<uintptr_t>(out) & 7) == 0;
      uint32_t again_low = 0;
      uint32_t again_high = 0;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const int col = col0 + j * 8;
        const float np0 = p_norms[col];
        const float np1 = p_norms[col + 1];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int at = j * 4 + half * 2;
          const int row = row0 + half * 8;
          const float nq = half == 0 ? nq0 : nq1;
          const float n0 = nq + np0;
          const float n1 = nq + np1;
          const float d0 = fmaf(-2.0f, sum[at], n0);
          const float d1 = fmaf(-2.0f, sum[at + 1], n1);
          if (row < M && col < N) {
            float* to = out + (size_t)row * N + col;
            if (!trusted(d0, n0)) {
              if (at < 32) again_low |= 1u << (at & 31);
              else again_high |= 1u << (at & 31);
            }
            if (col + 1 < N) {
              if (!trusted(d1, n1)) {
                if (at < 32) again_low |= 1u << ((at + 1) & 31);
                else again_high |= 1u << ((at + 1) & 31);
              }
              if (even) {
                __stcs(reinterpret_cast<float2*>(to), make_float2(d0, d1));
              } else {
                to[0] = d0;
                to[1] = d1;
              }
            } else {
              to[0] = d0;
            }
          }
        }
      }
      __syncwarp();
      repeat(again_low, 0, q, p, out, row0, col0, lane, N, D);
      repeat(again_high, 32, q, p, out, row0, col0, lane, N, D);
      __syncwarp();
    }
  }

  // No block leaves while the other may still write to it or release its stages.
  cluster_sync();
}
