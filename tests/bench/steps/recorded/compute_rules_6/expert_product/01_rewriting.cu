// Each row times the matrix of the expert that it was given to: rows grouped by expert, then tiles of
// 128 rows x 128 columns, computed transposed (columns of W are the rows of the product).

//@ scratch start: i32[E + 2]
//@ scratch order: i32[M]
//@ launch group_rows<<<E, 1024>>>(expert, start, order, M)
//@ launch expert_product<<<132, 384, 201728>>>(x, expert, W, out, start, order, M, N, K)
#include <cstdint>

// start[0] is the number of experts, start[1 + e] the first place in order of the rows of expert e
__global__ void __launch_bounds__(1024) group_rows(const int* expert, int* start, int* order, int M) {
  __shared__ int equal_sums[32];
  __shared__ int less_sums[32];
  const int e = blockIdx.x;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int per = (M + 1023) / 1024;
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
  for (int w = 0; w < 32; ++w) {
    base += less_sums[w];
    if (w < warp) before += equal_sums[w];
  }
  int place = base + before + upto - equal;
  for (int i = first; i < last; ++i) {
    if (expert[i] == e) order[place++] = i;
  }
  if (tid == 0) {
    start[1 + e] = base;
    if (e == 0) start[0] = gridDim.x;
    if (e == (int)gridDim.x - 1) start[2 + e] = M;
  }
}

#define STAGES 4
#define LO_AT 16384
#define W_AT 32768
#define STAGE_BYTES 50176
#define W_PITCH 136

__device__ __forceinline__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(uint64_t* b, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint64_t* b) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}\n" ::"r"(shared_address(b)) : "memory");
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

__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return (uint64_t)((address & 0x3FFFFu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)

__device__ __forceinline__ void multiply(float (&d)[64], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, {%64, %65, %66, %67}, %68, p, 1, 1;\n}\n"
      : D16(0), D16(16), D16(32), D16(48)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

__device__ __forceinline__ void multiply(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%32, %33, %34, %35}, %36, p, 1, 1;\n}\n"
      : D16(0), D16(16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

// tile of rows number `tile`: the whole ones of all experts first, then the rests
__device__ __forceinline__ bool find_tile(const int* start, int tile, int& e, int& first, int& rows) {
  const int E = start[0];
  for (int i = 0; i < E; ++i) {
    const int begin = start[1 + i];
    const int whole = (start[2 + i] - begin) / 128;
    if (tile < whole) {
      e = i;
      first = begin + tile * 128;
      rows = 128;
      return true;
    }
    tile -= whole;
  }
  for (int i = 0; i < E; ++i) {
    const int begin = start[1 + i];
    const int end = start[2 + i];
    const int rest = (end - begin) % 128;
    if (rest != 0) {
      if (tile == 0) {
        e = i;
        first = end - rest;
        rows = rest;
        return true;
      }
      --tile;
    }
  }
  return false;
}

template <int NB>
__device__ __forceinline__ void consume(unsigned char* stages, uint64_t* full, uint64_t* empty, int& stage, int& phase,
                                        float* __restrict__ out, const int* order, int first, int rows, int n0, int N,
                                        int steps) {
  const int lane = threadIdx.x & 31;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int n_local = (threadIdx.x >> 5) * 16 + g;  // warps 0 .. 7: 16 columns of W each

  float d[NB / 2];
#pragma unroll
  for (int i = 0; i < NB / 2; ++i) {
    d[i] = 0.0f;
    asm volatile("" : "+f"(d[i])::"memory");
  }

#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    barrier_wait(full + stage, phase);
    unsigned char* here = stages + stage * STAGE_BYTES;
    const float* w = reinterpret_cast<const float*>(here + W_AT) + t * W_PITCH + n_local;
    uint32_t hi[4][4], lo[4][4];
#pragma unroll
    for (int s = 0; s < 4; ++s) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float v = w[(s * 8 + (j >> 1) * 4) * W_PITCH + (j & 1) * 8];
        const uint32_t h = __float_as_uint(v) & 0xffffe000u;
        hi[s][j] = h;
        lo[s][j] = __float_as_uint(v - __uint_as_float(h));
      }
    }
#pragma unroll
    for (int s = 0; s < 4; ++s) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        asm volatile("" : "+r"(hi[s][j])::"memory");
        asm volatile("" : "+r"(lo[s][j])::"memory");
      }
    }
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    const uint64_t b_hi = descriptor(shared_address(here));
    const uint64_t b_lo = descriptor(shared_address(here + LO_AT));
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      multiply(d, lo[s], b_hi + s * 2);
      multiply(d, hi[s], b_lo + s * 2);
      multiply(d, hi[s], b_hi + s * 2);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + stage);
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }

#pragma unroll
  for (int i = 0; i < NB / 2; ++i) asm volatile("" : "+f"(d[i])::"memory");

  float* to = out + n0 + n_local;
#pragma unroll
  for (int j = 0; j < NB / 8; ++j) {
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int row = j * 8 + t * 2 + b;
      if (row < rows) {
        const size_t at = (size_t)order[first + row] * N;
        to[at] = d[j * 4 + b];
        to[at + 8] = d[j * 4 + 2 + b];
      }
    }
  }
}

__device__ __forceinline__ void load_rows(float4 (&v)[8], const float* __restrict__ x, const int (&offset)[8], int k0) {
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    v[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (offset[k] >= 0) v[k] = *reinterpret_cast<const float4*>(x + offset[k] + k0);
  }
}

__device__ __forceinline__ float high_part(float v) { return __uint_as_float(__float_as_uint(v) & 0xffffe000u); }

__global__ void __launch_bounds__(384, 1)
expert_product(const float* __restrict__ x, const int* __restrict__ expert, const float* __restrict__ W,
               float* __restrict__ out, const int* __restrict__ start, const int* __restrict__ order, int M, int N,
               int K) {
  extern __shared__ unsigned char dynamic[];
  __shared__ uint64_t full[STAGES];
  __shared__ uint64_t empty[STAGES];

  if (K % 32 != 0 || N % 128 != 0) {
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
      barrier_init(full + s, 256);
      barrier_init(empty + s, 8);
    }
  }
  __syncthreads();

  const int steps = K / 32;
  const int columns = N / 128;
  int stage = 0;
  int phase = 0;

  if (threadIdx.x < 256) {
    for (int item = blockIdx.x;; item += gridDim.x) {
      int e, first, rows;
      if (!find_tile(start, item / columns, e, first, rows)) break;
      const int n0 = (item % columns) * 128;
      if (rows > 64)
        consume<128>(stages, full, empty, stage, phase, out, order, first, rows, n0, N, steps);
      else
        consume<64>(stages, full, empty, stage, phase, out, order, first, rows, n0, N, steps);
    }
  } else {
    const int p = threadIdx.x - 256;
    const int c = p & 7;
    const int r = p >> 3;
    const int x_to = r * 128 + ((c ^ (r & 7)) << 4);
    const int q = p & 31;
    const int wk = p >> 5;
    for (int item = blockIdx.x;; item += gridDim.x) {
      int e, first, rows;
      if (!find_tile(start, item / columns, e, first, rows)) break;
      const int n0 = (item % columns) * 128;
      int offset[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const int row = r + k * 16;
        offset[k] = row < rows ? order[first + row] * K + c * 4 : -1;
      }
      const float* w_from = W + ((size_t)e * K + wk) * N + n0 + q * 4;
      float4 present[8];
      float4 following[8];
      load_rows(present, x, offset, 0);
#pragma unroll 2
      for (int i = 0; i < steps; ++i) {
        if (i + 1 < steps) load_rows(following, x, offset, (i + 1) * 32);
        barrier_wait(empty + stage, phase ^ 1);
        unsigned char* here = stages + stage * STAGE_BYTES;
        const uint32_t w_to = shared_address(here + W_AT) + (uint32_t)(wk * W_PITCH + q * 4) * 4u;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(w_to + (uint32_t)(k * 4 * W_PITCH * 4)),
                       "l"(w_from + (size_t)(k * 4) * N)
                       : "memory");
        }
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(full + stage)) : "memory");
        w_from += (size_t)32 * N;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          const float4 v = present[k];
          float4 h, l;
          h.x = high_part(v.x);
          h.y = high_part(v.y);
          h.z = high_part(v.z);
          h.w = high_part(v.w);
          l.x = v.x - h.x;
          l.y = v.y - h.y;
          l.z = v.z - h.z;
          l.w = v.w - h.w;
          *reinterpret_cast<float4*>(here + x_to + k * 2048) = h;
          *reinterpret_cast<float4*>(here + LO_AT + x_to + k * 2048) = l;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        barrier_arrive(full + stage);
        if (++stage == STAGES) {
          stage = 0;
          phase ^= 1;
        }
#pragma unroll
        for (int k = 0; k < 8; ++k) present[k] = following[k];
      }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
}
