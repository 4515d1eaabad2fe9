// Each row times the matrix of the expert that it was given to. Rows are grouped by expert; x and W are
// split into two f16 parts each (scaled by powers of two), and tiles of 128 rows x 256 columns are
// computed as three f16 products with f32 sums.

//@ scratch start: i32[E + 2]
//@ scratch order: i32[M]
//@ scratch row_power: f32[M]
//@ scratch column_power: f32[E * N]
//@ scratch xs: f32[(ceil_div(M, 128) + E) * 128 * K]
//@ scratch ws: f32[E * K * N]
//@ launch group_and_split<<<E + E * ceil_div(N, 32), 512, 135168>>>(expert, W, start, order, ws, column_power, M, N, K)
//@ launch split_rows<<<ceil_div(M, 8), 256>>>(x, expert, start, order, xs, row_power, M, N, K)
//@ launch expert_product<<<132, 288, 197632, cluster(2, 1, 1)>>>(x, expert, W, out, start, order, xs, ws, row_power, column_power, M, N, K)
#include <cstdint>
#include <cuda_fp16.h>

#define STAGES 4
#define W_AT 16384
#define STAGE_BYTES 49152
#define COLUMN_PITCH 33

// the sizes that the tensor cores take; all others go a plain way
__device__ __forceinline__ bool tiled_size(int N, int K) { return K % 32 == 0 && K <= 1024 && N % 512 == 0; }

// exponent (biased) of the largest magnitude, within what the scales can undo
__device__ __forceinline__ uint32_t exponent_of(uint32_t top) {
  const uint32_t b = top >> 23;
  return b < 15u ? 15u : b;
}

// brings a value of that exponent to 2^14 .. 2^15
__device__ __forceinline__ float scale_of(uint32_t b) { return __uint_as_float((268u - b) << 23); }

__device__ __forceinline__ void split_pair(float a, float b, uint32_t& high, uint32_t& low) {
  const __half2 h = __floats2half2_rn(a, b);
  const float2 back = __half22float2(h);
  const __half2 l = __floats2half2_rn(a - back.x, b - back.y);
  high = *reinterpret_cast<const uint32_t*>(&h);
  low = *reinterpret_cast<const uint32_t*>(&l);
}

__device__ __forceinline__ uint32_t magnitude(float v) { return __float_as_uint(v) & 0x7fffffffu; }

// Blocks 0 .. E - 1 group the rows: start[0] is the number of experts, start[1 + e] the first place in order
// of the rows of expert e. The other blocks split 32 columns of one expert's matrix each:
// ws holds chunks of 256 columns x 32 k, a column being 128 bytes: 32 high parts, 32 low parts, swizzled.
__global__ void __launch_bounds__(512)
group_and_split(const int* __restrict__ expert, const float* __restrict__ W, int* __restrict__ start,
                int* __restrict__ order, float* __restrict__ ws, float* __restrict__ column_power, int M, int N,
                int K) {
  extern __shared__ float columns_kept[];
  __shared__ int equal_sums[16];
  __shared__ int less_sums[16];
  __shared__ uint32_t tops[16][32];
  __shared__ float scales[32];

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int E = (int)gridDim.x / (1 + (N + 31) / 32);

  if ((int)blockIdx.x < E) {
    const int e = blockIdx.x;
    const int per = (M + 511) / 512;
    const int first = min(tid * per, M);
    const int last = min(first + per, M);
    int equal = 0, less = 0;
    for (int i = first; i < last; ++i) {
      const int v = expert[i];
      equal += v == e ? 1 : 0;
      less += v < e ? 1 : 0;
    }
    int upto = equal;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, upto, d);
      if (lane >= d) upto += other;
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) less += __shfl_xor_sync(0xffffffffu, less, d);
    if (lane == 31) equal_sums[warp] = upto;
    if (lane == 0) less_sums[warp] = less;
    __syncthreads();
    int base = 0, before = 0;
#pragma unroll
    for (int w = 0; w < 16; ++w) {
      base += less_sums[w];
      if (w < warp) before += equal_sums[w];
    }
    int place = base + before + upto - equal;
    for (int i = first; i < last; ++i) {
      if (expert[i] == e) order[place++] = i;
    }
    if (tid == 0) {
      start[1 + e] = base;
      if (e == 0) start[0] = E;
      if (e == E - 1) start[2 + e] = M;
    }
    return;
  }

  if (!tiled_size(N, K)) return;

  const int index = (int)blockIdx.x - E;
  const int groups = N / 32;
  const int e = index / groups;
  const int n0 = (index - e * groups) * 32;
  const int quad = lane & 7;

  const float* from = W + (size_t)e * K * N + n0 + quad * 4;
  uint32_t top0 = 0, top1 = 0, top2 = 0, top3 = 0;
#pragma unroll 8
  for (int k = warp * 4 + (lane >> 3); k < K; k += 64) {
    const float4 v = __ldg(reinterpret_cast<const float4*>(from + (size_t)k * N));
    float* to = columns_kept + k * COLUMN_PITCH + quad * 4;
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
    top0 = max(top0, magnitude(v.x));
    top1 = max(top1, magnitude(v.y));
    top2 = max(top2, magnitude(v.z));
    top3 = max(top3, magnitude(v.w));
  }
#pragma unroll
  for (int d = 8; d < 32; d *= 2) {
    top0 = max(top0, __shfl_xor_sync(0xffffffffu, top0, d));
    top1 = max(top1, __shfl_xor_sync(0xffffffffu, top1, d));
    top2 = max(top2, __shfl_xor_sync(0xffffffffu, top2, d));
    top3 = max(top3, __shfl_xor_sync(0xffffffffu, top3, d));
  }
  if (lane < 8) {
    tops[warp][lane * 4] = top0;
    tops[warp][lane * 4 + 1] = top1;
    tops[warp][lane * 4 + 2] = top2;
    tops[warp][lane * 4 + 3] = top3;
  }
  __syncthreads();
  if (tid < 32) {
    uint32_t top = 0;
#pragma unroll
    for (int w = 0; w < 16; ++w) top = max(top, tops[w][tid]);
    const uint32_t b = exponent_of(top);
    scales[tid] = scale_of(b);
    column_power[(size_t)e * N + n0 + tid] = __uint_as_float(b << 23);
  }
  __syncthreads();

  const int steps = K / 32;
  const int kc = lane & 3;
  unsigned char* chunks = reinterpret_cast<unsigned char*>(ws) + (size_t)(e * (N / 256) + (n0 >> 8)) * steps * 32768;
  for (int w = warp; w < steps * 4; w += 16) {
    const int kb = w >> 2;
    const int n = (w & 3) * 8 + (lane >> 2);
    const float* c = columns_kept + (kb * 32 + kc * 8) * COLUMN_PITCH + n;
    const float f = scales[n];
    uint32_t h[4], l[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      split_pair(c[(2 * i) * COLUMN_PITCH] * f, c[(2 * i + 1) * COLUMN_PITCH] * f, h[i], l[i]);
    }
    const int row = (n0 + n) & 255;
    unsigned char* to = chunks + (size_t)kb * 32768 + row * 128;
    *reinterpret_cast<uint4*>(to + ((kc ^ (row & 7)) << 4)) = make_uint4(h[0], h[1], h[2], h[3]);
    *reinterpret_cast<uint4*>(to + (((kc + 4) ^ (row & 7)) << 4)) = make_uint4(l[0], l[1], l[2], l[3]);
  }
}

// A warp splits a row: xs holds chunks of 128 grouped rows x 32 k, a row being 128 bytes as in ws;
// the rows of every expert begin a new tile of 128.
__global__ void __launch_bounds__(256)
split_rows(const float* __restrict__ x, const int* __restrict__ expert, const int* __restrict__ start,
           const int* __restrict__ order, float* __restrict__ xs, float* __restrict__ row_power, int M, int N, int K) {
  if (!tiled_size(N, K)) return;
  const int lane = threadIdx.x & 31;
  const int p = (int)blockIdx.x * 8 + ((int)threadIdx.x >> 5);
  if (p >= M) return;
  const int m = order[p];
  const float* from = x + (size_t)m * K + lane * 4;
  float4 v[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    v[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (j * 128 + lane * 4 < K) v[j] = __ldg(reinterpret_cast<const float4*>(from + j * 128));
  }
  const int e = expert[m];
  int tile = 0;
  for (int i = 0; i < e; ++i) tile += (start[2 + i] - start[1 + i] + 127) / 128;
  const int local = p - start[1 + e];
  tile += local >> 7;
  const int row = local & 127;

  uint32_t top = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    top = max(top, max(max(magnitude(v[j].x), magnitude(v[j].y)), max(magnitude(v[j].z), magnitude(v[j].w))));
  }
  top = __reduce_max_sync(0xffffffffu, top);
  const uint32_t b = exponent_of(top);
  const float f = scale_of(b);
  if (lane == 0) row_power[p] = __uint_as_float(b << 23);

  const int steps = K / 32;
  const int kc = (lane & 7) >> 1;
  const int high_at = ((kc ^ (row & 7)) << 4) + (lane & 1) * 8;
  const int low_at = (((kc + 4) ^ (row & 7)) << 4) + (lane & 1) * 8;
  unsigned char* to =
      reinterpret_cast<unsigned char*>(xs) + ((size_t)tile * steps + (lane >> 3)) * 16384 + row * 128;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    if (j * 128 + lane * 4 < K) {
      uint32_t h0, h1, l0, l1;
      split_pair(v[j].x * f, v[j].y * f, h0, l0);
      split_pair(v[j].z * f, v[j].w * f, h1, l1);
      *reinterpret_cast<uint2*>(to + j * 65536 + high_at) = make_uint2(h0, h1);
      *reinterpret_cast<uint2*>(to + j * 65536 + low_at) = make_uint2(l0, l1);
    }
  }
}

__device__ __forceinline__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(uint64_t* b, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_expect(uint64_t* b, int bytes) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;\n}\n" ::"r"(
                   shared_address(b)),
               "r"(bytes)
               : "memory");
}

// arrives at the barrier of that place in block `rank` of the cluster
__device__ __forceinline__ void barrier_arrive_at(uint64_t* b, int rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}\n" ::"r"(shared_address(b)),
      "r"(rank)
      : "memory");
}

__device__ __forceinline__ void barrier_wait(uint64_t* b, int parity) {
  const uint32_t address = shared_address(b);
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  } while (done == 0);
}

__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
}

__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return (uint64_t)((address & 0x3FFFFu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)

__device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}\n"
      : D16(0), D16(16), D16(32), D16(48), D16(64), D16(80), D16(96), D16(112)
      : "l"(a), "l"(b), "r"(1));
}

// tile of rows number `item`: the whole ones of all experts first, then the large rests, then the small ones;
// `tile` is its place in xs
__device__ __forceinline__ bool find_tile(const int* __restrict__ start, int item, int& e, int& first, int& rows,
                                          int& tile) {
  const int E = start[0];
  int base = 0;
  for (int i = 0; i < E; ++i) {
    const int begin = start[1 + i];
    const int count = start[2 + i] - begin;
    const int whole = count / 128;
    if (item < whole) {
      e = i;
      first = begin + item * 128;
      rows = 128;
      tile = base + item;
      return true;
    }
    item -= whole;
    base += (count + 127) / 128;
  }
  for (int kind = 0; kind < 2; ++kind) {
    base = 0;
    for (int i = 0; i < E; ++i) {
      const int begin = start[1 + i];
      const int end = start[2 + i];
      const int count = end - begin;
      const int rest = count % 128;
      const bool counts = kind == 0 ? rest > 64 : (rest > 0 && rest <= 64);
      if (counts) {
        if (item == 0) {
          e = i;
          first = end - rest;
          rows = rest;
          tile = base + count / 128;
          return true;
        }
        --item;
      }
      base += (count + 127) / 128;
    }
  }
  return false;
}

__global__ void __launch_bounds__(288, 1)
expert_product(const float* __restrict__ x, const int* __restrict__ expert, const float* __restrict__ W,
               float* __restrict__ out, const int* __restrict__ start, const int* __restrict__ order,
               const float* __restrict__ xs, const float* __restrict__ ws, const float* __restrict__ row_power,
               const float* __restrict__ column_power, int M, int N, int K) {
  extern __shared__ unsigned char dynamic[];
  __shared__ uint64_t full[STAGES];
  __shared__ uint64_t empty[STAGES];

  if (!tiled_size(N, K)) {
    const long long total = (long long)M * N;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const int m = (int)(i / N);
      const int n = (int)(i - (long long)m * N);
      const float* a = x + (size_t)m * K;
      const float* b = W + (size_t)expert[m] * K * N + n;
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum = fmaf(a[k], b[(size_t)k * N], sum);
      out[i] = sum;
    }
    return;
  }

  unsigned char* stages = dynamic + ((1024u - (shared_address(dynamic) & 1023u)) & 1023u);
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(full + s, 1);
      barrier_init(empty + s, 16);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  cluster_meet();

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int rank = blockIdx.x & 1;
  const int cluster = blockIdx.x >> 1;
  const int clusters = gridDim.x >> 1;
  const int steps = K / 32;
  const int pairs = N / 512;
  int stage = 0;
  int phase = 0;

  if (warp < 8) {
    const int half = warp >> 2;  // warpgroup 0: rows 0 .. 63, 1: rows 64 .. 127
    const int g = lane >> 2;
    const int t = lane & 3;
    for (int round = 0;; ++round) {
      const int item = round * clusters + ((round & 1) ? clusters - 1 - cluster : cluster);
      int e, first, rows, tile;
      if (!find_tile(start, item / pairs, e, first, rows, tile)) break;
      const int n0 = ((item % pairs) * 2 + rank) * 256;

      if (half == 1 && rows <= 64) {
        for (int i = 0; i < steps; ++i) {
          barrier_wait(full + stage, phase);
          __syncwarp();
          if (lane < 2) barrier_arrive_at(empty + stage, lane);
          if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
          }
        }
        continue;
      }

      float d[128];
#pragma unroll
      for (int i = 0; i < 128; ++i) {
        d[i] = 0.0f;
        asm volatile("" : "+f"(d[i])::"memory");
      }

#pragma unroll 1
      for (int i = 0; i < steps; ++i) {
        barrier_wait(full + stage, phase);
        unsigned char* here = stages + stage * STAGE_BYTES;
        const uint64_t a = descriptor(shared_address(here + half * 8192));
        const uint64_t b = descriptor(shared_address(here + W_AT));
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          multiply(d, a + 4 + s * 2, b + s * 2);
          multiply(d, a + s * 2, b + 4 + s * 2);
          multiply(d, a + s * 2, b + s * 2);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (i > 0) {
          __syncwarp();
          if (lane < 2) barrier_arrive_at(empty + ((stage + STAGES - 1) % STAGES), lane);
        }
        if (++stage == STAGES) {
          stage = 0;
          phase ^= 1;
        }
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      __syncwarp();
      if (lane < 2) barrier_arrive_at(empty + ((stage + STAGES - 1) % STAGES), lane);

#pragma unroll
      for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(d[i])::"memory");

      const float unscale = 3.7252902984619140625e-09f;  // 2^-28
      const int row0 = half * 64 + (warp & 3) * 16 + g;
      const int row1 = row0 + 8;
      const bool has0 = row0 < rows;
      const bool has1 = row1 < rows;
      float power0 = 0.0f, power1 = 0.0f;
      float* to0 = out;
      float* to1 = out;
      if (has0) {
        power0 = row_power[first + row0];
        to0 = out + (size_t)order[first + row0] * N + n0 + t * 2;
      }
      if (has1) {
        power1 = row_power[first + row1];
        to1 = out + (size_t)order[first + row1] * N + n0 + t * 2;
      }
      const float* powers = column_power + (size_t)e * N + n0 + t * 2;
#pragma unroll
      for (int j = 0; j < 32; ++j) {
        const float2 w = __ldg(reinterpret_cast<const float2*>(powers + j * 8));
        if (has0) {
          *reinterpret_cast<float2*>(to0 + j * 8) =
              make_float2((d[j * 4] * unscale) * (power0 * w.x), (d[j * 4 + 1] * unscale) * (power0 * w.y));
        }
        if (has1) {
          *reinterpret_cast<float2*>(to1 + j * 8) =
              make_float2((d[j * 4 + 2] * unscale) * (power1 * w.x), (d[j * 4 + 3] * unscale) * (power1 * w.y));
        }
      }
    }
  } else if (lane == 0) {
    const uint16_t both = 3;
    for (int round = 0;; ++round) {
      const int item = round * clusters + ((round & 1) ? clusters - 1 - cluster : cluster);
      int e, first, rows, tile;
      if (!find_tile(start, item / pairs, e, first, rows, tile)) break;
      const int block = (item % pairs) * 2 + rank;
      const unsigned char* x_from =
          reinterpret_cast<const unsigned char*>(xs) + (size_t)tile * steps * 16384 + rank * 8192;
      const unsigned char* w_from =
          reinterpret_cast<const unsigned char*>(ws) + (size_t)(e * (N / 256) + block) * steps * 32768;
#pragma unroll 1
      for (int i = 0; i < steps; ++i) {
        barrier_wait(empty + stage, phase ^ 1);
        const uint32_t here = shared_address(stages + stage * STAGE_BYTES);
        const uint32_t bar = shared_address(full + stage);
        barrier_expect(full + stage, STAGE_BYTES);
        // half of the rows, for both blocks of the cluster
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
            "[%3], %4;" ::"r"(here + (uint32_t)rank * 8192u),
            "l"(x_from), "r"(8192), "r"(bar), "h"(both)
            : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(here +
                                                                                                            W_AT),
            "l"(w_from), "r"(32768), "r"(bar)
            : "memory");
        x_from += 16384;
        w_from += 32768;
        if (++stage == STAGES) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
  }
  __syncwarp();
  cluster_meet();
}
