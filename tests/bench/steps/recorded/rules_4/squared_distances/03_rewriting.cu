// Squared distances between two sets of points: lengths and split parts of the rows, then tiles of products on the
// tensor cores; pairs that would lose digits by cancellation are summed directly.

//@ scratch qs: f32[2, round_up(M, 128), round_up(D, 16)]
//@ scratch ps: f32[2, round_up(N, 256), round_up(D, 16)]
//@ scratch qn: f32[round_up(M, 128)]
//@ scratch pn: f32[round_up(N, 256)]
//@ launch split_rows<<<(round_up(M, 128) + round_up(N, 256)) / 8, 256>>>(q, p, qs, ps, qn, pn, M, N, D)
//@ launch squared_distances<<<min(132, ceil_div(M, 128) * ceil_div(N, 256)), 288, 197632>>>(q, p, qs, ps, qn, pn, out, M, N, D)
#include <cstdint>

// One warp for each row. Parts are stored in tiles of 128 rows x (16 high, 16 low), 128 bytes a row, swizzled.
__global__ void __launch_bounds__(256) split_rows(const float* q, const float* p, float* qs, float* ps, float* qn,
                                                  float* pn, int M, int N, int D) {
  int padded = (M + 127) / 128 * 128;
  int blocks = (D + 15) / 16;
  int row = blockIdx.x * 8 + threadIdx.x / 32;
  int lane = threadIdx.x & 31;
  const float* source = q;
  float* target = qs;
  float* norm = qn;
  int rows = M;
  if (row >= padded) {
    row -= padded;
    source = p;
    target = ps;
    norm = pn;
    rows = N;
  }
  float* base = target + (size_t)(row / 128) * blocks * 4096 + (row % 128) * 32;
  float sum = 0.0f;
  for (int k = lane; k < blocks * 16; k += 32) {
    float value = row < rows && k < D ? source[(size_t)row * D + k] : 0.0f;
    float high = __uint_as_float((__float_as_uint(value) + 0x1000u) & 0xffffe000u);
    float rest = value - high;
    float low = __uint_as_float((__float_as_uint(rest) + 0x1000u) & 0xffffe000u);
    int chunk = (k & 15) >> 2;
    float* line = base + (size_t)(k >> 4) * 4096 + (k & 3);
    line[(chunk ^ (row & 7)) << 2] = high;
    line[((chunk + 4) ^ (row & 7)) << 2] = low;
    sum += value * value;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
  if (lane == 0) {
    norm[row] = sum;
  }
}

__device__ __forceinline__ void wait_for(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred ready;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ready, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ready;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (!done);
}

__device__ __forceinline__ void bulk_copy(uint32_t target, const float* source, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n"
               :
               : "r"(target), "l"((uint64_t)__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier)
               : "memory");
}

__device__ __forceinline__ uint64_t describe(uint32_t at) {
  return (uint64_t)((at & 0x3ffffu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

#define ACC8(b)                                                                                          \
  "+f"(d[b]), "+f"(d[b + 1]), "+f"(d[b + 2]), "+f"(d[b + 3]), "+f"(d[b + 4]), "+f"(d[b + 5]), "+f"(d[b + 6]), \
      "+f"(d[b + 7])

__device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, "
      "%72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, "
      "%88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, "
      "%104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, "
      "%120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1;\n"
      "}\n"
      : ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56), ACC8(64), ACC8(72), ACC8(80),
        ACC8(88), ACC8(96), ACC8(104), ACC8(112), ACC8(120)
      : "l"(a), "l"(b), "r"(1));
}

__global__ void __launch_bounds__(288, 1)
squared_distances(const float* q, const float* p, const float* qs, const float* ps, const float* qn, const float* pn,
                  float* out, int M, int N, int D) {
  extern __shared__ unsigned char ring[];
  __shared__ __align__(8) uint64_t full[4];
  __shared__ __align__(8) uint64_t empty[4];
  uint32_t stages = ((uint32_t)__cvta_generic_to_shared(ring) + 1023u) & ~1023u;
  uint32_t full_at = (uint32_t)__cvta_generic_to_shared(full);
  uint32_t empty_at = (uint32_t)__cvta_generic_to_shared(empty);
  int tid = threadIdx.x;
  int warp = tid / 32;
  int lane = tid & 31;
  if (tid == 0) {
    for (int s = 0; s < 4; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" : : "r"(full_at + s * 8), "r"(1) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" : : "r"(empty_at + s * 8), "r"(8) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;\n" : : : "memory");
    asm volatile("fence.proxy.async.shared::cta;\n" : : : "memory");
  }
  __syncthreads();

  int tiles_n = (N + 255) / 256;
  int tiles = (M + 127) / 128 * tiles_n;
  int blocks = (D + 15) / 16;
  uint32_t step = 0;

  if (warp == 8) {
    if (lane == 0) {
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const float* a = qs + (size_t)(tile / tiles_n) * blocks * 4096;
        const float* b0 = ps + (size_t)(tile % tiles_n) * 2 * blocks * 4096;
        const float* b1 = b0 + (size_t)blocks * 4096;
        for (int kb = 0; kb < blocks; ++kb, ++step) {
          uint32_t s = step & 3;
          uint32_t at = stages + s * 49152;
          uint32_t barrier = full_at + s * 8;
          wait_for(empty_at + s * 8, ((step >> 2) & 1) ^ 1);
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                       :
                       : "r"(barrier), "r"(49152)
                       : "memory");
          bulk_copy(at, a + (size_t)kb * 4096, 16384, barrier);
          bulk_copy(at + 16384, b0 + (size_t)kb * 4096, 16384, barrier);
          bulk_copy(at + 32768, b1 + (size_t)kb * 4096, 16384, barrier);
        }
      }
    }
  } else {
    int group = warp / 4;
    float d[128];
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      #pragma unroll
      for (int r = 0; r < 128; ++r) {
        d[r] = 0.0f;
      }
      for (int kb = 0; kb < blocks; ++kb, ++step) {
        uint32_t s = step & 3;
        wait_for(full_at + s * 8, (step >> 2) & 1);
        uint64_t a = describe(stages + s * 49152 + group * 8192);
        uint64_t b = describe(stages + s * 49152 + 16384);
        asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
          multiply(d, a + 4 + 2 * half, b + 2 * half);
          multiply(d, a + 2 * half, b + 4 + 2 * half);
          multiply(d, a + 2 * half, b + 2 * half);
        }
        asm volatile("wgmma.commit_group.sync.aligned;\n" : : : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;\n" : : : "memory");
        if (lane == 0) {
          asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" : : "r"(empty_at + s * 8) : "memory");
        }
      }

      int row = tile / tiles_n * 128 + group * 64 + (warp & 3) * 16 + lane / 4;
      int col = tile % tiles_n * 256 + (lane & 3) * 2;
      float lengths[2] = {qn[row], qn[row + 8]};
      bool pairs = (N & 1) == 0;
      uint32_t again = 0;
      #pragma unroll
      for (int g = 0; g < 32; ++g) {
        int c = col + g * 8;
        float2 other = *reinterpret_cast<const float2*>(pn + c);
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
          int r = row + h * 8;
          float s0 = lengths[h] + other.x;
          float s1 = lengths[h] + other.y;
          float v0 = fmaf(-2.0f, d[g * 4 + h * 2], s0);
          float v1 = fmaf(-2.0f, d[g * 4 + h * 2 + 1], s1);
          bool good0 = s0 > 1e-20f && s0 < 1e30f && v0 >= 0.0625f * s0;
          bool good1 = s1 > 1e-20f && s1 < 1e30f && v1 >= 0.0625f * s1;
          if (r < M) {
            float* to = out + (size_t)r * N + c;
            if (pairs) {
              if (c < N) {
                *reinterpret_cast<float2*>(to) = make_float2(v0, v1);
                if (!(good0 && good1)) {
                  again |= 1u << g;
                }
              }
            } else {
              if (c < N) {
                to[0] = v0;
                if (!good0) {
                  again |= 1u << g;
                }
              }
              if (c + 1 < N) {
                to[1] = v1;
                if (!good1) {
                  again |= 1u << g;
                }
              }
            }
          }
        }
      }
      while (again) {
        int g = __ffs(again) - 1;
        again &= again - 1;
        #pragma unroll 1
        for (int e = 0; e < 4; ++e) {
          int r = row + (e >> 1) * 8;
          int c = col + g * 8 + (e & 1);
          if (r < M && c < N) {
            const float* from = q + (size_t)r * D;
            const float* to = p + (size_t)c * D;
            float sum = 0.0f;
            #pragma unroll 4
            for (int k = 0; k < D; ++k) {
              float difference = from[k] - to[k];
              sum += difference * difference;
            }
            out[(size_t)r * N + c] = sum;
          }
        }
      }
    }
  }
}
