// Each row times the matrix of the expert that it was given to. Rows are grouped by expert; both factors are
// scaled by powers of two and split into two f16 parts: v * scale = hi + lo / 2048. The product is computed
// transposed (columns of W are the rows of the product), in tiles of 128 columns x 256 rows a block.

//@ scratch start: i32[E + 2]
//@ scratch order: i32[M + 8 * E + 32]
//@ scratch place: i32[M]
//@ scratch xs: f32[M + 8 * E + 32]
//@ scratch ws: f32[E * N]
//@ scratch bad: i32[E * ceil_div(N, 16) + ceil_div(M, 16)]
//@ scratch xh: i32[ceil_div(K, 32) * 32 * M + ceil_div(K, 32) * 256 * E + ceil_div(K, 32) * 9216 + 64]
//@ scratch wh: i32[E * K * N + 64]
//@ launch prepare_w<<<E + E * ceil_div(N, 16), 512, 65536>>>(expert, W, wh, ws, start, order, place, bad, M, N, K)
//@ launch prepare_x<<<ceil_div(M, 16), 512>>>(x, start, place, xh, xs, bad, M, N, K)
//@ launch expert_product<<<132, 288, 197632, cluster(2, 1, 1)>>>(x, expert, W, out, start, order, xh, wh, xs, ws, bad, M, N, K)
#include <cstdint>
#include <cuda_fp16.h>

#define STAGES 4
#define X_AT 16384
#define STAGE_BYTES 49152

__device__ __forceinline__ bool fits(int N, int K) {
  return K >= 64 && K <= 1024 && K % 64 == 0 && N >= 256 && N % 256 == 0;
}

__device__ __forceinline__ unsigned char* aligned(const void* p) {
  return reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(p) + 127) & ~(uintptr_t)127);
}

// scale = 2^(14 - a), where 2^a <= top < 2^(a + 1); false where the range is left
__device__ __forceinline__ bool scale_of(float top, float& scale, float& inverse) {
  int a = (int)(__float_as_uint(top) >> 23) - 127;
  bool good = true;
  if (top == 0.0f) {
    a = 14;
  } else if (a < -40 || a > 40) {
    a = 14;
    good = false;
  }
  scale = __uint_as_float((uint32_t)(141 - a) << 23);
  inverse = __uint_as_float((uint32_t)(113 + a) << 23);
  return good;
}

// two values to two packed pairs; true where a value is not held well enough
__device__ __forceinline__ bool split(float u, float v, float scale, uint32_t& hi, uint32_t& lo) {
  const float p = u * scale;
  const float q = v * scale;
  const __half2 h = __floats2half2_rn(p, q);
  const float2 hf = __half22float2(h);
  const float rp = p - hf.x;
  const float rq = q - hf.y;
  const __half2 l = __floats2half2_rn(rp * 2048.0f, rq * 2048.0f);
  const float2 lf = __half22float2(l);
  hi = *reinterpret_cast<const uint32_t*>(&h);
  lo = *reinterpret_cast<const uint32_t*>(&l);
  const float ep = fabsf(fmaf(lf.x, -1.0f / 2048.0f, rp));
  const float eq = fabsf(fmaf(lf.y, -1.0f / 2048.0f, rq));
  const bool wp = !(ep <= 1e-6f * fabsf(p));
  const bool wq = !(eq <= 1e-6f * fabsf(q));
  const bool zp = (p == 0.0f) & (u != 0.0f);
  const bool zq = (q == 0.0f) & (v != 0.0f);
  return wp | wq | zp | zq;
}

// start[0] is the number of experts, start[1 + e] the number of rows of the experts before e. The rows of
// expert e lie at places from round_up(start[1 + e], 8) + 8 * e on.
__device__ __forceinline__ void group_rows(const int* expert, int* start, int* order, int* place, int E, int e,
                                           int M) {
  __shared__ int equal_sums[16];
  __shared__ int less_sums[16];
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
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
  int to = ((base + 7) / 8) * 8 + 8 * e + before + upto - equal;
  for (int i = first; i < last; ++i) {
    if (expert[i] == e) {
      order[to] = i;
      place[i] = to;
      ++to;
    }
  }
  if (tid == 0) {
    start[1 + e] = base;
    if (e == 0) start[0] = E;
    if (e == E - 1) start[2 + e] = M;
  }
}

// The first E blocks group the rows; each other one converts 16 columns of one expert's matrix.
// wh: for each expert, 128 columns and 32 k: 128 rows (columns of W) of 128 bytes (32 hi, 32 lo), swizzled.
__global__ void __launch_bounds__(512, 2)
prepare_w(const int* __restrict__ expert, const float* __restrict__ W, int* __restrict__ wh, float* __restrict__ ws,
          int* __restrict__ start, int* __restrict__ order, int* __restrict__ place, int* __restrict__ bad, int M,
          int N, int K) {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  __shared__ float tops[16][16];
  if (!fits(N, K)) return;
  const int E = (int)gridDim.x / (1 + (N + 15) / 16);
  const int e = (int)blockIdx.x % E;
  const int y = (int)blockIdx.x / E;
  if (y == 0) {
    group_rows(expert, start, order, place, E, e, M);
    return;
  }
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int n0 = (y - 1) * 16;
  const int chunks = K / 32;
  const int col = lane & 15;
  const int chunk = warp * 2 + (lane >> 4);
  float v[32];
  if (chunk < chunks) {
    const float* from = W + ((size_t)e * K + (size_t)chunk * 32) * N + n0 + col;
#pragma unroll
    for (int i = 0; i < 32; ++i) v[i] = __ldcs(from + (size_t)i * N);
  } else {
#pragma unroll
    for (int i = 0; i < 32; ++i) v[i] = 0.0f;
  }
  float top = 0.0f;
#pragma unroll
  for (int i = 0; i < 32; ++i) top = fmaxf(top, fabsf(v[i]));
  top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 16));
  if (lane < 16) tops[warp][lane] = top;
  __syncthreads();
  top = 0.0f;
#pragma unroll
  for (int w = 0; w < 16; ++w) top = fmaxf(top, tops[w][col]);
  float scale, inverse;
  bool wrong = !scale_of(top, scale, inverse);

  unsigned char* buffer = dynamic + warp * 4096;
  unsigned char* mine = buffer + lane * 128;
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    uint4 h, l;
    wrong |= split(v[u * 8 + 0], v[u * 8 + 1], scale, h.x, l.x);
    wrong |= split(v[u * 8 + 2], v[u * 8 + 3], scale, h.y, l.y);
    wrong |= split(v[u * 8 + 4], v[u * 8 + 5], scale, h.z, l.z);
    wrong |= split(v[u * 8 + 6], v[u * 8 + 7], scale, h.w, l.w);
    *reinterpret_cast<uint4*>(mine + ((u ^ (lane & 7)) << 4)) = h;
    *reinterpret_cast<uint4*>(mine + (((u + 4) ^ (lane & 7)) << 4)) = l;
  }
  __syncwarp();
  unsigned char* to = aligned(wh) + (size_t)(e * (N / 128) + n0 / 128) * chunks * 16384 + (size_t)(n0 % 128) * 128;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int r = j * 4 + (lane >> 3);
    const int c = warp * 2 + (r >> 4);
    if (c < chunks) {
      *reinterpret_cast<uint4*>(to + (size_t)c * 16384 + (r & 15) * 128 + (lane & 7) * 16) =
          *reinterpret_cast<const uint4*>(buffer + j * 512 + lane * 16);
    }
  }
  if (threadIdx.x < 16) ws[(size_t)e * N + n0 + threadIdx.x] = inverse;
  const int any = __syncthreads_or(wrong ? 1 : 0);
  if (threadIdx.x == 0) bad[(y - 1) * E + e] = any ? 1 : 0;
}

// A warp converts a row. xh: for each 32 k: all places, 128 bytes each (32 hi, 32 lo), swizzled.
__global__ void __launch_bounds__(512, 2)
prepare_x(const float* __restrict__ x, const int* __restrict__ start, const int* __restrict__ place,
          int* __restrict__ xh, float* __restrict__ xs, int* __restrict__ bad, int M, int N, int K) {
  if (!fits(N, K)) return;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row = (int)blockIdx.x * 16 + warp;
  const int E = start[0];
  const int places = M + 8 * E + 288;
  bool wrong = false;
  if (row < M) {
    const int pos = place[row];
    const float4* from = reinterpret_cast<const float4*>(x + (size_t)row * K);
    float4 v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int at = j * 32 + lane;
      v[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (at * 4 < K) v[j] = __ldcs(from + at);
    }
    float top = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      top = fmaxf(top, fmaxf(fmaxf(fabsf(v[j].x), fabsf(v[j].y)), fmaxf(fabsf(v[j].z), fabsf(v[j].w))));
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    float scale, inverse;
    wrong = !scale_of(top, scale, inverse);
    unsigned char* to = aligned(xh) + ((size_t)(lane >> 3) * places + pos) * 128 + (lane & 1) * 8;
    const int u = (lane & 7) >> 1;
    const int hi_at = (u ^ (pos & 7)) << 4;
    const int lo_at = ((u + 4) ^ (pos & 7)) << 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if ((j * 32 + lane) * 4 < K) {
        uint2 h, l;
        wrong |= split(v[j].x, v[j].y, scale, h.x, l.x);
        wrong |= split(v[j].z, v[j].w, scale, h.y, l.y);
        unsigned char* here = to + (size_t)(j * 4) * places * 128;
        *reinterpret_cast<uint2*>(here + hi_at) = h;
        *reinterpret_cast<uint2*>(here + lo_at) = l;
      }
    }
    if (lane == 0) xs[pos] = inverse;
  }
  const int any = __syncthreads_or(wrong ? 1 : 0);
  if (threadIdx.x == 0) bad[E * (N / 16) + (int)blockIdx.x] = any ? 1 : 0;
}

__device__ __forceinline__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(uint32_t b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_expect(uint32_t b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_arrive_at(uint32_t b, uint32_t cta) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}\n" ::"r"(b),
      "r"(cta)
      : "memory");
}

__device__ __forceinline__ void barrier_wait(uint32_t b, int parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(b), "r"(parity)
        : "memory");
  } while (done == 0);
}

__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void named_sync(int id, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

__device__ __forceinline__ void named_arrive(int id, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}

__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return (uint64_t)((address & 0x3FFFFu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

__device__ __forceinline__ void products_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_wait_1() { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }
__device__ __forceinline__ void products_wait_0() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
#define P0                                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "              \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define P1                                                                              \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "    \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define P2                                                                              \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "    \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define P3                                                                              \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

__device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" P0 ", " P1 ", " P2 ", " P3
      "}, %128, %129, p, 1, 1, 0, 0;\n}\n"
      : D16(0), D16(16), D16(32), D16(48), D16(64), D16(80), D16(96), D16(112)
      : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ void multiply(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" P0 ", " P1
      "}, %64, %65, p, 1, 1, 0, 0;\n}\n"
      : D16(0), D16(16), D16(32), D16(48)
      : "l"(a), "l"(b), "r"(1));
}

__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" P0
      "}, %32, %33, p, 1, 1, 0, 0;\n}\n"
      : D16(0), D16(16)
      : "l"(a), "l"(b), "r"(1));
}

template <int COUNT>
__device__ __forceinline__ void rescale(float (&d)[COUNT], float by) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("mul.rn.f32 %0, %0, %1;" : "+f"(d[i]) : "f"(by));
}

// all but the last of the four mixed products of 32 k
template <int COUNT>
__device__ __forceinline__ void mixed_first(float (&d)[COUNT], uint64_t w, uint64_t x) {
  multiply(d, w, x + 4);
  multiply(d, w + 4, x);
  multiply(d, w + 2, x + 6);
}

template <int COUNT>
__device__ __forceinline__ void mixed_last(float (&d)[COUNT], uint64_t w, uint64_t x) {
  multiply(d, w + 6, x + 2);
}

// The items of a cluster: tiles of more than 128 rows dealt in turn, then the small rests, first to the
// clusters that had one tile less.
struct Walk {
  const int* start;
  int E, columns, clusters, me;
  int bigs, smalls, turn, spare, cap;
  int phase, at;

  __device__ __forceinline__ void begin(const int* from, int N) {
    start = from;
    E = start[0];
    columns = N / 256;
    clusters = (int)gridDim.x / 2;
    me = (int)blockIdx.x / 2;
    int b = 0, s = 0;
    for (int i = 0; i < E; ++i) {
      const int count = start[2 + i] - start[1 + i];
      const int rest = count % 256;
      b += count / 256 + (rest > 128 ? 1 : 0);
      s += rest > 0 && rest <= 128 ? 1 : 0;
    }
    bigs = b * columns;
    smalls = s * columns;
    turn = bigs % clusters;
    spare = clusters - turn;
    cap = spare * 3;
    phase = 0;
    at = me;
  }

  __device__ __forceinline__ bool next(int& e, int& first, int& rows, int& column) {
    if (phase == 0 && at >= bigs) {
      phase = 1;
      at = me >= turn ? me - turn : cap;
    }
    if (phase == 1 && at >= min(smalls, cap)) {
      phase = 2;
      at = cap + me;
    }
    if (phase == 2 && at >= smalls) return false;
    const bool small = phase > 0;
    const int item = at;
    at += phase == 1 ? spare : clusters;
    int tile = item / columns;
    column = item % columns;
    e = 0;
    first = 0;
    rows = 0;
    for (int i = 0; i < E; ++i) {
      const int begin = start[1 + i];
      const int count = start[2 + i] - begin;
      const int whole = count / 256;
      const int rest = count % 256;
      const int here = small ? (rest > 0 && rest <= 128 ? 1 : 0) : whole + (rest > 128 ? 1 : 0);
      if (tile < here) {
        const int skip = (small ? whole : tile) * 256;
        e = i;
        first = ((begin + 7) / 8) * 8 + 8 * i + skip;
        rows = min(256, count - skip);
        break;
      }
      tile -= here;
    }
    return true;
  }
};

__device__ __forceinline__ void advance(int& stage, int& phase) {
  if (++stage == STAGES) {
    stage = 0;
    phase ^= 1;
  }
}

__device__ __forceinline__ void release(uint32_t empty, int stage, int lane) {
  __syncwarp();
  if (lane < 2) barrier_arrive_at(empty + stage * 8, (uint32_t)lane);
}

template <int NB>
__device__ __forceinline__ void consume(uint32_t stages, uint32_t full, uint32_t empty, int& stage, int& phase,
                                        float* __restrict__ out, const int* __restrict__ order,
                                        const float* __restrict__ xs, const float* __restrict__ ws, int2* table,
                                        int wg, int e, int first, int rows, int n0, int N, int steps) {
  const int lane = threadIdx.x & 31;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int n = n0 + wg * 64 + ((threadIdx.x >> 5) & 3) * 16 + g;
  const int own = 1 + wg;
  const int other = 2 - wg;
  const float up = 2048.0f;
  const float down = 1.0f / 2048.0f;

  named_sync(3 + wg, 128);  // the table of the tile before is no longer read
  for (int r = threadIdx.x & 127; r < NB; r += 128) {
    int2 entry = make_int2(-1, 0);
    if (r < rows) {
      entry.x = order[first + r];
      entry.y = __float_as_int(xs[first + r]);
    }
    table[r] = entry;
  }
  const float w0 = ws[(size_t)e * N + n] * down;
  const float w1 = ws[(size_t)e * N + n + 8] * down;

  float d[NB / 2];
#pragma unroll
  for (int i = 0; i < NB / 2; ++i) {
    d[i] = 0.0f;
    asm volatile("" : "+f"(d[i])::"memory");
  }

  int a = stage;
  barrier_wait(full + stage * 8, phase);
  advance(stage, phase);
  uint64_t wa = descriptor(stages + a * STAGE_BYTES + wg * 8192);
  uint64_t xa = descriptor(stages + a * STAGE_BYTES + X_AT);
  named_sync(own, 256);
  products_fence();
  mixed_first(d, wa, xa);
  products_commit();
  mixed_last(d, wa, xa);
  products_commit();
  products_wait_1();
  named_arrive(other, 256);
  products_wait_0();

#pragma unroll 1
  for (int i = 2; i < steps; i += 2) {
    rescale(d, down);
    const int b = stage;
    barrier_wait(full + stage * 8, phase);
    advance(stage, phase);
    const uint64_t wb = descriptor(stages + b * STAGE_BYTES + wg * 8192);
    const uint64_t xb = descriptor(stages + b * STAGE_BYTES + X_AT);
    named_sync(own, 256);
    products_fence();
    multiply(d, wa, xa);
    multiply(d, wa + 2, xa + 2);
    multiply(d, wb, xb);
    products_commit();
    multiply(d, wb + 2, xb + 2);
    products_commit();
    products_wait_1();
    named_arrive(other, 256);
    products_wait_0();
    release(empty, a, lane);

    rescale(d, up);
    a = stage;
    barrier_wait(full + stage * 8, phase);
    advance(stage, phase);
    wa = descriptor(stages + a * STAGE_BYTES + wg * 8192);
    xa = descriptor(stages + a * STAGE_BYTES + X_AT);
    named_sync(own, 256);
    products_fence();
    mixed_first(d, wb, xb);
    mixed_last(d, wb, xb);
    mixed_first(d, wa, xa);
    products_commit();
    mixed_last(d, wa, xa);
    products_commit();
    products_wait_1();
    named_arrive(other, 256);
    products_wait_0();
    release(empty, b, lane);
  }

  {
    rescale(d, down);
    const int b = stage;
    barrier_wait(full + stage * 8, phase);
    advance(stage, phase);
    const uint64_t wb = descriptor(stages + b * STAGE_BYTES + wg * 8192);
    const uint64_t xb = descriptor(stages + b * STAGE_BYTES + X_AT);
    named_sync(own, 256);
    products_fence();
    multiply(d, wa, xa);
    multiply(d, wa + 2, xa + 2);
    multiply(d, wb, xb);
    products_commit();
    multiply(d, wb + 2, xb + 2);
    products_commit();
    products_wait_1();
    named_arrive(other, 256);
    products_wait_0();
    release(empty, a, lane);

    rescale(d, up);
    named_sync(own, 256);
    products_fence();
    mixed_first(d, wb, xb);
    products_commit();
    mixed_last(d, wb, xb);
    products_commit();
    products_wait_1();
    named_arrive(other, 256);
    products_wait_0();
    release(empty, b, lane);
  }

#pragma unroll
  for (int i = 0; i < NB / 2; ++i) asm volatile("" : "+f"(d[i])::"memory");

  named_sync(3 + wg, 128);  // the table is written
  float* to = out + n;
#pragma unroll
  for (int j = 0; j < NB / 8; ++j) {
    const int4 two = *reinterpret_cast<const int4*>(table + j * 8 + t * 2);
    if (two.x >= 0) {
      const float f = __int_as_float(two.y);
      const size_t at = (size_t)two.x * N;
      to[at] = d[j * 4] * (f * w0);
      to[at + 8] = d[j * 4 + 2] * (f * w1);
    }
    if (two.z >= 0) {
      const float f = __int_as_float(two.w);
      const size_t at = (size_t)two.z * N;
      to[at] = d[j * 4 + 1] * (f * w0);
      to[at + 8] = d[j * 4 + 3] * (f * w1);
    }
  }
}

__global__ void __launch_bounds__(288, 1)
expert_product(const float* __restrict__ x, const int* __restrict__ expert, const float* __restrict__ W,
               float* __restrict__ out, const int* __restrict__ start, const int* __restrict__ order,
               const int* __restrict__ xh, const int* __restrict__ wh, const float* __restrict__ xs,
               const float* __restrict__ ws, const int* __restrict__ bad, int M, int N, int K) {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  __shared__ __align__(16) int2 tables[2][256];
  __shared__ __align__(8) uint64_t full_barriers[STAGES];
  __shared__ __align__(8) uint64_t empty_barriers[STAGES];

  bool slow = !fits(N, K);
  if (!slow) {
    const int flags = start[0] * (N / 16) + (M + 15) / 16;
    int any = 0;
    for (int i = threadIdx.x; i < flags; i += 288) any |= bad[i];
    slow = __syncthreads_or(any) != 0;
  }
  if (slow) {
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

  const uint32_t stages = (shared_address(dynamic) + 1023u) & ~1023u;
  const uint32_t full = shared_address(full_barriers);
  const uint32_t empty = shared_address(empty_barriers);
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(full + s * 8, 1);
      barrier_init(empty + s * 8, 16);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  cluster_meet();

  const int rank = (int)blockIdx.x & 1;
  const int steps = K / 32;
  int stage = 0;
  int phase = 0;
  Walk walk;
  walk.begin(start, N);
  int e, first, rows, column;

  if (threadIdx.x < 256) {
    const int wg = __shfl_sync(0xffffffffu, (int)(threadIdx.x >> 7), 0);
    if (wg == 1) named_arrive(1, 256);
    while (walk.next(e, first, rows, column)) {
      const int n0 = (column * 2 + rank) * 128;
      if (rows > 128)
        consume<256>(stages, full, empty, stage, phase, out, order, xs, ws, tables[wg], wg, e, first, rows, n0, N,
                     steps);
      else if (rows > 64)
        consume<128>(stages, full, empty, stage, phase, out, order, xs, ws, tables[wg], wg, e, first, rows, n0, N,
                     steps);
      else
        consume<64>(stages, full, empty, stage, phase, out, order, xs, ws, tables[wg], wg, e, first, rows, n0, N,
                    steps);
    }
    if (wg == 0) named_sync(1, 256);
  } else if (threadIdx.x == 256) {
    const size_t x_step = (size_t)(M + 8 * walk.E + 288) * 128;
    while (walk.next(e, first, rows, column)) {
      const int nb = rows > 128 ? 256 : rows > 64 ? 128 : 64;
      const uint32_t half_bytes = (uint32_t)nb * 64u;
      const unsigned char* w_from = aligned(wh) + (size_t)(e * (N / 128) + column * 2 + rank) * steps * 16384;
      const unsigned char* x_from = aligned(xh) + (size_t)first * 128 + (size_t)rank * half_bytes;
      for (int i = 0; i < steps; ++i) {
        barrier_wait(empty + stage * 8, phase ^ 1);
        const uint32_t here = stages + stage * STAGE_BYTES;
        const uint32_t signal = full + stage * 8;
        barrier_expect(signal, 16384u + half_bytes * 2u);
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(here),
            "l"(w_from), "r"(16384u), "r"(signal)
            : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
            "[%3], %4;" ::"r"(here + X_AT + (uint32_t)rank * half_bytes),
            "l"(x_from), "r"(half_bytes), "r"(signal), "h"((unsigned short)3)
            : "memory");
        w_from += 16384;
        x_from += x_step;
        advance(stage, phase);
      }
    }
  }
  __syncwarp();
  cluster_meet();
}
