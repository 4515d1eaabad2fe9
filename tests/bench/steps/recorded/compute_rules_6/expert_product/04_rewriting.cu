// Each row times the matrix of the expert that it was given to: rows grouped by expert, both factors scaled by
// powers of two (each row of x and each column of W by its own) and split into two f16 parts, then tiles of
// 128 rows x 256 columns by three f16 products with f32 sums.

//@ scratch start: i32[E + 2]
//@ scratch order: i32[M]
//@ scratch x_scale: f32[M, 2]
//@ scratch w_scale: f32[E, ceil_div(N, 256), 512]
//@ scratch x_parts: f32[ceil_div(M, 128) + E, ceil_div(K, 32), 4096]
//@ scratch w_parts: f32[E, ceil_div(N, 256), ceil_div(K, 32), 8192]
//@ launch prepare<<<E + E * ceil_div(N, 32), 512>>>(expert, W, start, order, w_scale, w_parts, M, N, K)
//@ launch spread_rows<<<ceil_div(M, 8), 256>>>(x, start, order, x_scale, x_parts, M, K)
//@ launch expert_product<<<132, 288, 197632>>>(x_parts, w_parts, x_scale, w_scale, out, start, order, N, K)
#include <cstdint>
#include <cuda_fp16.h>

// An image of a tile for 32 values of k has 128 bytes for each row (of x) or column (of W): 32 high parts and then
// 32 low parts, its pieces of 16 bytes permuted by an exclusive or with the row (the swizzling of 128 bytes).

__device__ __forceinline__ float power_of_two(int h) { return __int_as_float((h + 127) << 23); }

// exponent for values of which the largest has these bits (without sign)
__device__ __forceinline__ int exponent_of(unsigned top) {
  const int ex = (int)(top >> 23);
  return ex < 15 ? 15 : ex;
}

// brings the largest value to 2^14 .. 2^15
__device__ __forceinline__ float scale_of(int ex) { return __int_as_float((268 - ex) << 23); }

// the inverse of the scale in two factors
__device__ __forceinline__ float2 inverse_of(int ex) {
  const int p = ex - 141;
  const int h = p >> 1;
  return make_float2(power_of_two(h), power_of_two(p - h));
}

__device__ __forceinline__ void split_pair(float a, float b, uint32_t& hi, uint32_t& lo) {
  const __half2 h = __floats2half2_rn(a, b);
  const float2 f = __half22float2(h);
  const __half2 l = __floats2half2_rn(a - f.x, b - f.y);
  hi = *reinterpret_cast<const uint32_t*>(&h);
  lo = *reinterpret_cast<const uint32_t*>(&l);
}

__device__ __forceinline__ void split_store(const float (&v)[8], float scale, unsigned char* line, int c, int row) {
  uint4 hi, lo;
  split_pair(v[0] * scale, v[1] * scale, hi.x, lo.x);
  split_pair(v[2] * scale, v[3] * scale, hi.y, lo.y);
  split_pair(v[4] * scale, v[5] * scale, hi.z, lo.z);
  split_pair(v[6] * scale, v[7] * scale, hi.w, lo.w);
  *reinterpret_cast<uint4*>(line + ((c ^ (row & 7)) << 4)) = hi;
  *reinterpret_cast<uint4*>(line + (((c | 4) ^ (row & 7)) << 4)) = lo;
}

// The first E blocks group the rows: start[0] is the number of experts, start[1 + e] the first place in order of the
// rows of expert e. The others convert 32 columns of one expert's matrix each.
__global__ void __launch_bounds__(512, 2)
prepare(const int* __restrict__ expert, const float* __restrict__ W, int* __restrict__ start, int* __restrict__ order,
        float* __restrict__ w_scale, float* __restrict__ w_parts, int M, int N, int K) {
  __shared__ float values[256 * 33];
  __shared__ unsigned tops[16][32];
  __shared__ float scales[32];
  __shared__ int equal_sums[16];
  __shared__ int less_sums[16];

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int groups = (N + 31) / 32;
  const int E = (int)gridDim.x / (1 + groups);

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

  const int id = (int)blockIdx.x - E;
  const int e = id / groups;
  const int n0 = (id % groups) * 32;
  const int n = n0 + lane;
  const bool inside = n < N;
  const int tiles = (N + 255) / 256;
  const int steps = (K + 31) / 32;
  const int padded = steps * 32;
  const float* __restrict__ from = W + (size_t)e * K * N + n;

  unsigned top = 0;
  if (inside) {
#pragma unroll 16
    for (int k = warp; k < K; k += 16) {
      top = max(top, __float_as_uint(from[(size_t)k * N]) & 0x7fffffffu);
    }
  }
  tops[warp][lane] = top;
  __syncthreads();
  if (warp == 0) {
#pragma unroll
    for (int w = 1; w < 16; ++w) top = max(top, tops[w][lane]);
    const int ex = exponent_of(top);
    scales[lane] = scale_of(ex);
    reinterpret_cast<float2*>(w_scale)[(size_t)e * tiles * 256 + n] = inverse_of(ex);
  }

  float r[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int k = warp + 16 * i;
    r[i] = 0.0f;
    if (inside && k < K) r[i] = from[(size_t)k * N];
  }

  unsigned char* image =
      reinterpret_cast<unsigned char*>(w_parts) + (size_t)(e * tiles + (n0 >> 8)) * steps * 32768;

  for (int kb = 0; kb < padded; kb += 256) {
#pragma unroll
    for (int i = 0; i < 16; ++i) values[(warp + 16 * i) * 33 + lane] = r[i];
    __syncthreads();
    if (kb + 256 < padded) {
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int k = kb + 256 + warp + 16 * i;
        r[i] = 0.0f;
        if (inside && k < K) r[i] = from[(size_t)k * N];
      }
    }
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int unit = warp + 16 * u;
      const int step = unit >> 2;
      const int k = kb + step * 32;
      if (k < padded) {
        const int n_local = (unit & 3) * 8 + (lane >> 2);
        const int c = lane & 3;
        float v[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j] = values[(step * 32 + c * 8 + j) * 33 + n_local];
        const int row = (n0 + n_local) & 255;
        split_store(v, scales[n_local], image + ((size_t)(k >> 5) * 256 + row) * 128, c, row);
      }
    }
    __syncthreads();
  }
}

__device__ __forceinline__ void load_eight(float (&v)[8], const float* __restrict__ from, int k, int K, bool vectors) {
  if (vectors && k + 8 <= K) {
    const float4 a = *reinterpret_cast<const float4*>(from + k);
    const float4 b = *reinterpret_cast<const float4*>(from + k + 4);
    v[0] = a.x;
    v[1] = a.y;
    v[2] = a.z;
    v[3] = a.w;
    v[4] = b.x;
    v[5] = b.y;
    v[6] = b.z;
    v[7] = b.w;
  } else {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      v[j] = 0.0f;
      if (k + j < K) v[j] = from[k + j];
    }
  }
}

__device__ __forceinline__ unsigned top_of(unsigned top, const float (&v)[8]) {
#pragma unroll
  for (int j = 0; j < 8; ++j) top = max(top, __float_as_uint(v[j]) & 0x7fffffffu);
  return top;
}

// One warp converts one row of x and puts it at its place among the rows of its expert; each expert begins a new tile.
__global__ void __launch_bounds__(256)
spread_rows(const float* __restrict__ x, const int* __restrict__ start, const int* __restrict__ order,
            float* __restrict__ x_scale, float* __restrict__ x_parts, int M, int K) {
  const int lane = threadIdx.x & 31;
  const int pos = blockIdx.x * 8 + (threadIdx.x >> 5);
  if (pos >= M) return;

  const float* __restrict__ from = x + (size_t)order[pos] * K;
  const bool vectors = K % 4 == 0;
  const int steps = (K + 31) / 32;
  const int padded = steps * 32;

  float v[4][8];
  unsigned top = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) load_eight(v[i], from, i * 256 + lane * 8, K, vectors);
#pragma unroll
  for (int i = 0; i < 4; ++i) top = top_of(top, v[i]);
  for (int k = 1024 + lane * 8; k < K; k += 256) {
    float more[8];
    load_eight(more, from, k, K, vectors);
    top = top_of(top, more);
  }

  int e = 0;
  int tile = 0;
  int begin = start[1];
  int end = start[2];
  while (pos >= end) {
    tile += (end - begin + 127) / 128;
    ++e;
    begin = end;
    end = start[2 + e];
  }
  const int rank = pos - begin;
  tile += rank >> 7;
  const int row = rank & 127;

  __syncwarp();
  top = __reduce_max_sync(0xffffffffu, top);
  const int ex = exponent_of(top);
  const float scale = scale_of(ex);
  if (lane == 0) reinterpret_cast<float2*>(x_scale)[pos] = inverse_of(ex);

  unsigned char* image = reinterpret_cast<unsigned char*>(x_parts) + (size_t)tile * steps * 16384 + row * 128;
  const int c = lane & 3;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int k = i * 256 + lane * 8;
    if (k < padded) split_store(v[i], scale, image + (size_t)(k >> 5) * 16384, c, row);
  }
  for (int k = 1024 + lane * 8; k < padded; k += 256) {
    float more[8];
    load_eight(more, from, k, K, vectors);
    split_store(more, scale, image + (size_t)(k >> 5) * 16384, c, row);
  }
}

#define STAGES 4
#define W_AT 16384
#define STAGE_BYTES 49152

__device__ __forceinline__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(uint64_t* b, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint64_t* b) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}\n" ::"r"(shared_address(b)) : "memory");
}

__device__ __forceinline__ void barrier_expect(uint64_t* b, uint32_t bytes) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;\n}\n" ::"r"(shared_address(b)),
               "r"(bytes)
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

__device__ __forceinline__ void bulk_copy(uint32_t to, const void* from, uint32_t bytes, uint64_t* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(b))
               : "memory");
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

__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, 0, 0;\n}\n"
      : D16(0), D16(16)
      : "l"(a), "l"(b), "r"(1));
}

// Which work there is, and which part of it is this block's. Tiles of more than 64 rows are done 256 columns at a
// time (large items), the rests of up to 64 rows 128 columns at a time (small items, a quarter of the work); blocks
// with one large item less take four small ones before all blocks share the others.
struct Plan {
  int E, columns, small_columns, block, blocks;
  int large, early, early_first, early_stride, late_first, small_items;
};

__device__ __forceinline__ Plan make_plan(const int* __restrict__ start, int N) {
  Plan p;
  p.E = start[0];
  p.columns = (N + 255) / 256;
  p.small_columns = (N + 127) / 128;
  p.block = blockIdx.x;
  p.blocks = gridDim.x;
  int tiles = 0, rests = 0;
  for (int i = 0; i < p.E; ++i) {
    const int count = start[2 + i] - start[1 + i];
    const int rest = count & 127;
    tiles += (count >> 7) + (rest > 64 ? 1 : 0);
    rests += (rest > 0 && rest <= 64) ? 1 : 0;
  }
  const int large_items = tiles * p.columns;
  p.small_items = rests * p.small_columns;
  const int over = large_items % p.blocks;
  const int idle = over != 0 ? p.blocks - over : 0;
  p.large = p.block < large_items ? (large_items - p.block + p.blocks - 1) / p.blocks : 0;
  p.early = 0;
  p.early_first = p.block - over;
  p.early_stride = idle;
  if (idle > 0 && p.block >= over && p.early_first < p.small_items) {
    p.early = min(4, (p.small_items - p.early_first + idle - 1) / idle);
  }
  p.late_first = 4 * idle + p.block;
  return p;
}

struct Item {
  bool large;
  int e, tile, first, rows, n0;
};

__device__ __forceinline__ bool find_item(const Plan& p, const int* __restrict__ start, int index, Item& item) {
  int which;
  if (index < p.large) {
    item.large = true;
    which = p.block + index * p.blocks;
  } else {
    item.large = false;
    index -= p.large;
    if (index < p.early) {
      which = p.early_first + index * p.early_stride;
    } else {
      which = p.late_first + (index - p.early) * p.blocks;
      if (which >= p.small_items) return false;
    }
  }
  int left;
  if (item.large) {
    left = which / p.columns;
    item.n0 = (which % p.columns) * 256;
  } else {
    left = which / p.small_columns;
    item.n0 = (which % p.small_columns) * 128;
  }
  int tile = 0;
  for (int i = 0; i < p.E; ++i) {
    const int begin = start[1 + i];
    const int count = start[2 + i] - begin;
    const int whole = count >> 7;
    const int rest = count & 127;
    if (item.large) {
      const int here = whole + (rest > 64 ? 1 : 0);
      if (left < here) {
        item.e = i;
        item.tile = tile + left;
        item.first = begin + left * 128;
        item.rows = min(128, count - left * 128);
        return true;
      }
      left -= here;
    } else if (rest > 0 && rest <= 64) {
      if (left == 0) {
        item.e = i;
        item.tile = tile + whole;
        item.first = begin + whole * 128;
        item.rows = rest;
        return true;
      }
      --left;
    }
    tile += whole + (rest > 0 ? 1 : 0);
  }
  return false;
}

// One warpgroup computes 64 rows from row m_at of the tile by NB columns from column n_at of the tile.
template <int NB>
__device__ __forceinline__ void consume(uint32_t stages, uint64_t* full, uint64_t* empty, int& stage, int& phase,
                                        const Item& item, int m_at, int n_at, const float* __restrict__ x_scale,
                                        const float* __restrict__ w_scale, float* __restrict__ out,
                                        const int* __restrict__ order, int columns, int N, int steps) {
  const int lane = threadIdx.x & 31;

  float d[NB / 2];
#pragma unroll
  for (int i = 0; i < NB / 2; ++i) {
    d[i] = 0.0f;
    asm volatile("" : "+f"(d[i])::"memory");
  }

  int previous = 0;
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    barrier_wait(full + stage, phase);
    const uint32_t here = stages + (uint32_t)stage * STAGE_BYTES;
    const uint64_t a = descriptor(here + (uint32_t)m_at * 128u);
    const uint64_t b = descriptor(here + W_AT + (uint32_t)n_at * 128u);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      multiply(d, a + 4 + s * 2, b + s * 2);
      multiply(d, a + s * 2, b + 4 + s * 2);
      multiply(d, a + s * 2, b + s * 2);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (i > 0 && lane == 0) barrier_arrive(empty + previous);
    __syncwarp();
    previous = stage;
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < NB / 2; ++i) asm volatile("" : "+f"(d[i])::"memory");
  if (lane == 0) barrier_arrive(empty + previous);
  __syncwarp();

  const int g = lane >> 2;
  const int t = lane & 3;
  const int warp = (threadIdx.x >> 5) & 3;
  const int n_first = item.n0 + n_at + t * 2;
  const float* scale_from = w_scale + (size_t)item.e * columns * 512;
  const bool pairs = N % 2 == 0;

  float* to[2];
  float2 rs[2];
  bool valid[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = m_at + warp * 16 + g + h * 8;
    valid[h] = row < item.rows;
    to[h] = out;
    rs[h] = make_float2(0.0f, 0.0f);
    if (valid[h]) {
      to[h] = out + (size_t)order[item.first + row] * N;
      rs[h] = reinterpret_cast<const float2*>(x_scale)[item.first + row];
    }
  }
#pragma unroll
  for (int j = 0; j < NB / 8; ++j) {
    const int n = n_first + j * 8;
    if (n < N) {
      const float4 cs = *reinterpret_cast<const float4*>(scale_from + (size_t)n * 2);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (valid[h]) {
          const float v0 = (d[j * 4 + h * 2] * (rs[h].x * cs.x)) * (rs[h].y * cs.y);
          const float v1 = (d[j * 4 + h * 2 + 1] * (rs[h].x * cs.z)) * (rs[h].y * cs.w);
          if (pairs) {
            *reinterpret_cast<float2*>(to[h] + n) = make_float2(v0, v1);
          } else {
            to[h][n] = v0;
            if (n + 1 < N) to[h][n + 1] = v1;
          }
        }
      }
    }
  }
}

__global__ void __launch_bounds__(288, 1)
expert_product(const float* __restrict__ x_parts, const float* __restrict__ w_parts, const float* __restrict__ x_scale,
               const float* __restrict__ w_scale, float* __restrict__ out, const int* __restrict__ start,
               const int* __restrict__ order, int N, int K) {
  extern __shared__ unsigned char dynamic[];
  __shared__ uint64_t full[STAGES];
  __shared__ uint64_t empty[STAGES];

  const uint32_t stages = (shared_address(dynamic) + 1023u) & ~1023u;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(full + s, 1);
      barrier_init(empty + s, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  const Plan plan = make_plan(start, N);
  const int steps = (K + 31) / 32;
  int stage = 0;
  int phase = 0;

  if (threadIdx.x < 256) {
    const int group = __shfl_sync(0xffffffffu, (int)(threadIdx.x >> 7), 0);
    for (int index = 0;; ++index) {
      Item item;
      if (!find_item(plan, start, index, item)) break;
      if (item.large)
        consume<256>(stages, full, empty, stage, phase, item, group * 64, 0, x_scale, w_scale, out, order, plan.columns,
                     N, steps);
      else
        consume<64>(stages, full, empty, stage, phase, item, 0, group * 64, x_scale, w_scale, out, order, plan.columns,
                    N, steps);
    }
  } else if (threadIdx.x == 256) {
    for (int index = 0;; ++index) {
      Item item;
      if (!find_item(plan, start, index, item)) break;
      const uint32_t x_bytes = item.large ? 16384u : 8192u;
      const uint32_t w_bytes = item.large ? 32768u : 16384u;
      const unsigned char* x_from =
          reinterpret_cast<const unsigned char*>(x_parts) + (size_t)item.tile * steps * 16384;
      const unsigned char* w_from = reinterpret_cast<const unsigned char*>(w_parts) +
                                    (size_t)(item.e * plan.columns + (item.n0 >> 8)) * steps * 32768 +
                                    (size_t)(item.n0 & 255) * 128;
#pragma unroll 1
      for (int i = 0; i < steps; ++i) {
        barrier_wait(empty + stage, phase ^ 1);
        const uint32_t here = stages + (uint32_t)stage * STAGE_BYTES;
        barrier_expect(full + stage, x_bytes + w_bytes);
        bulk_copy(here, x_from, x_bytes, full + stage);
        bulk_copy(here + W_AT, w_from, w_bytes, full + stage);
        x_from += 16384;
        w_from += 32768;
        if (++stage == STAGES) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
  }
}
