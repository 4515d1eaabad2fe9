// Each row times the matrix of the expert that it was given to: rows grouped by expert, products on tensor cores with
// operands split in two tf32 parts.

//@ scratch rows: i32[E, M]
//@ scratch counts: i32[E]
//@ launch gather_rows<<<E, 1024>>>(expert, rows, counts, M)
//@ launch expert_product<<<(ceil_div(N, 128), ceil_div(M, 128) + E), 256, 169472>>>(x, W, rows, counts, out, M, N, K, E)

#include <cstdint>

__global__ void __launch_bounds__(1024) gather_rows(const int* expert, int* rows, int* counts, int M) {
  __shared__ int count;
  const int e = blockIdx.x;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  if (tid == 0) count = 0;
  __syncthreads();
  for (int start = 0; start < M; start += 8192) {
    int given[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int m = start + j * 1024 + tid;
      given[j] = m < M ? expert[m] : -1;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const bool mine = given[j] == e;
      const unsigned votes = __ballot_sync(0xffffffffu, mine);
      if (votes) {
        int at = 0;
        if (lane == 0) at = atomicAdd(&count, __popc(votes));
        at = __shfl_sync(0xffffffffu, at, 0);
        if (mine) {
          rows[(size_t)e * M + at + __popc(votes & ((1u << lane) - 1u))] = start + j * 1024 + tid;
        }
      }
    }
  }
  __syncthreads();
  if (tid == 0) counts[e] = count;
}

constexpr int BK = 32;                       // k of a stage
constexpr int W_PITCH = 136;                 // floats of a row of W in shared memory
constexpr int W_STAGE = BK * W_PITCH;        // floats
constexpr int W_STAGES = 4;
constexpr int X_PART = 16384;                // bytes of one part (high or low) of a tile of x
constexpr int X_STAGE = 2 * X_PART;
constexpr int X_STAGES = 3;

__device__ __forceinline__ void split(float value, unsigned& high, unsigned& low) {
  high = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;
  const float rest = value - __uint_as_float(high);
  low = (__float_as_uint(rest) + 0x1000u) & 0xffffe000u;
}

__device__ __forceinline__ uint64_t descriptor(unsigned address) {
  // rows of 128 bytes along k, swizzled by 128 bytes, groups of 8 rows 1024 bytes apart
  return (uint64_t)((address & 0x3ffffu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
}

__device__ __forceinline__ void multiply(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         uint64_t b, int keep) {
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
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(keep));
}

__device__ __forceinline__ void multiply(float (&d)[32], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         uint64_t b, int keep) {
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
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(keep));
}

// One tile: 128 columns of out, ROWS rows of one expert.
template <int ROWS>
__device__ __forceinline__ void tile_product(const float* x, const float* W_expert, float* out, const int* row_list,
                                             unsigned char* x_shared, float* w_shared, int n0, int N, int K) {
  constexpr int XL = ROWS / 32;              // 16-byte loads of x for each thread and stage
  constexpr int ACC = ROWS / 2;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int column = (warp >> 2) * 64 + (warp & 3) * 16 + g;   // of W within the tile
  const int steps = (K + BK - 1) / BK;

  // x: thread takes 16 bytes at k = 4 * x_chunk of rows x_row + 32 i
  const int x_row = tid >> 3;
  const int x_chunk = tid & 7;
  int x_from[XL];
#pragma unroll
  for (int i = 0; i < XL; ++i) {
    const int m = row_list[x_row + 32 * i];
    x_from[i] = m < 0 ? -1 : m * K + 4 * x_chunk;
  }
  unsigned char* x_to = x_shared + x_row * 128 + ((x_chunk ^ (x_row & 7)) << 4);

  // W: thread takes 16 bytes at column w_column of rows w_row + 8 i
  const int w_row = tid >> 5;
  const int w_column = 4 * lane;
  const bool w_valid = n0 + w_column < N;
  const float* w_from = W_expert + (size_t)w_row * N + n0 + w_column;
  const unsigned w_to = (unsigned)__cvta_generic_to_shared(w_shared) + (w_row * W_PITCH + w_column) * 4;
  const unsigned x_address = (unsigned)__cvta_generic_to_shared(x_shared);

  float4 xr[XL];

  auto load_x = [&](int step) {
    const int k = step * BK;
    const bool k_valid = k + 4 * x_chunk < K;
#pragma unroll
    for (int i = 0; i < XL; ++i) {
      xr[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (k_valid && x_from[i] >= 0) xr[i] = __ldg(reinterpret_cast<const float4*>(x + x_from[i] + k));
    }
  };
  auto store_x = [&](int buffer) {
    unsigned char* to = x_to + buffer * X_STAGE;
#pragma unroll
    for (int i = 0; i < XL; ++i) {
      uint4 high, low;
      split(xr[i].x, high.x, low.x);
      split(xr[i].y, high.y, low.y);
      split(xr[i].z, high.z, low.z);
      split(xr[i].w, high.w, low.w);
      *reinterpret_cast<uint4*>(to + i * 4096) = high;
      *reinterpret_cast<uint4*>(to + i * 4096 + X_PART) = low;
    }
  };
  auto copy_w = [&](int step) {
    const unsigned to = w_to + (step % W_STAGES) * (W_STAGE * 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int k = step * BK + w_row + 8 * i;
      const bool valid = w_valid && k < K;
      const float* from = valid ? w_from + (size_t)(step * BK + 8 * i) * N : W_expert;
      const int size = valid ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                   ::"r"(to + i * (8 * W_PITCH * 4)), "l"(from), "r"(size) : "memory");
    }
  };
  auto load_a = [&](int step, unsigned (&high)[16], unsigned (&low)[16]) {
    const float* w = w_shared + (step % W_STAGES) * W_STAGE + t * W_PITCH + column;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      split(w[(8 * s) * W_PITCH], high[4 * s], low[4 * s]);
      split(w[(8 * s) * W_PITCH + 8], high[4 * s + 1], low[4 * s + 1]);
      split(w[(8 * s + 4) * W_PITCH], high[4 * s + 2], low[4 * s + 2]);
      split(w[(8 * s + 4) * W_PITCH + 8], high[4 * s + 3], low[4 * s + 3]);
    }
  };

  float acc[ACC], total[ACC];
#pragma unroll
  for (int i = 0; i < ACC; ++i) {
    acc[i] = 0.0f;
    total[i] = 0.0f;
  }

  // Before the loop: three stages of W under way, the first of x in place, the second in registers.
#pragma unroll
  for (int s = 0; s < W_STAGES - 1; ++s) {
    copy_w(s);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  load_x(0);
  store_x(0);
  load_x(1);
  asm volatile("cp.async.wait_group 2;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  unsigned high_a[16], low_a[16], high_b[16], low_b[16];
  load_a(0, high_a, low_a);
  int buffer = 0;

  auto step = [&](int i, unsigned (&high)[16], unsigned (&low)[16], unsigned (&next_high)[16],
                  unsigned (&next_low)[16]) {
    const uint64_t x_high = descriptor(x_address + buffer * X_STAGE);
    const uint64_t x_low = descriptor(x_address + buffer * X_STAGE + X_PART);
#pragma unroll
    for (int j = 0; j < ACC; ++j) asm volatile("" : "+f"(acc[j])::"memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      multiply(acc, low[4 * s], low[4 * s + 1], low[4 * s + 2], low[4 * s + 3], x_high + 2 * s, s > 0 ? 1 : 0);
      multiply(acc, high[4 * s], high[4 * s + 1], high[4 * s + 2], high[4 * s + 3], x_low + 2 * s, 1);
      multiply(acc, high[4 * s], high[4 * s + 1], high[4 * s + 2], high[4 * s + 3], x_high + 2 * s, 1);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

    // While the tensor cores work: everything for the next stage.
    buffer = buffer == X_STAGES - 1 ? 0 : buffer + 1;
    store_x(buffer);
    load_x(i + 2);
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    copy_w(i + W_STAGES - 1);
    asm volatile("cp.async.commit_group;" ::: "memory");
    load_a(i + 1, next_high, next_low);

    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int j = 0; j < ACC; ++j) asm volatile("" : "+f"(acc[j])::"memory");
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      asm volatile("" : "+r"(high[j])::"memory");
      asm volatile("" : "+r"(low[j])::"memory");
    }
#pragma unroll
    for (int j = 0; j < ACC; ++j) total[j] += acc[j];
  };

#pragma unroll 1
  for (int i = 0; i < steps; i += 2) {
    step(i, high_a, low_a, high_b, low_b);
    if (i + 1 < steps) step(i + 1, high_b, low_b, high_a, low_a);
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");

  const int n = n0 + column;
  const bool n_first = n < N;
  const bool n_second = n + 8 < N;
#pragma unroll
  for (int j = 0; j < ROWS / 8; ++j) {
    const int m0 = row_list[8 * j + 2 * t];
    const int m1 = row_list[8 * j + 2 * t + 1];
    if (m0 >= 0) {
      float* to = out + (size_t)m0 * N + n;
      if (n_first) to[0] = total[4 * j];
      if (n_second) to[8] = total[4 * j + 2];
    }
    if (m1 >= 0) {
      float* to = out + (size_t)m1 * N + n;
      if (n_first) to[0] = total[4 * j + 1];
      if (n_second) to[8] = total[4 * j + 3];
    }
  }
}

__global__ void __launch_bounds__(256, 1)
expert_product(const float* x, const float* W, const int* rows, const int* counts, float* out, int M, int N, int K,
               int E) {
  extern __shared__ unsigned char raw_shared[];
  const int tid = threadIdx.x;
  const int n0 = blockIdx.x * 128;

  // Which tile: first all tiles of 128 rows (the last of an expert with more than 64), then those of up to 64 rows.
  const int id = blockIdx.y;
  int e = -1, first = 0, number = 0, seen = 0;
  for (int i = 0; i < E; ++i) {
    const int count = __ldg(counts + i);
    const int here = count / 128 + (count % 128 > 64 ? 1 : 0);
    if (id >= seen && id < seen + here) {
      e = i;
      first = (id - seen) * 128;
      number = min(128, count - first);
    }
    seen += here;
  }
  bool half = false;
  if (e < 0) {
    int left = id - seen;
    for (int i = 0; i < E; ++i) {
      const int count = __ldg(counts + i);
      const int rest = count % 128;
      if (rest > 0 && rest <= 64) {
        if (left == 0) {
          e = i;
          first = count - rest;
          number = rest;
          half = true;
        }
        --left;
      }
    }
  }
  if (e < 0) return;

  const int* list = rows + (size_t)e * M + first;
  const float* W_expert = W + (size_t)e * K * N;

  const bool fast = K % 4 == 0 && N % 4 == 0 && (long long)M * K < 2000000000LL;
  if (!fast) {
    for (int index = tid; index < number * 128; index += 256) {
      const int n = n0 + (index & 127);
      if (n < N) {
        const int m = list[index >> 7];
        const float* row = x + (size_t)m * K;
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += row[k] * W_expert[(size_t)k * N + n];
        out[(size_t)m * N + n] = sum;
      }
    }
    return;
  }

  const unsigned raw = (unsigned)__cvta_generic_to_shared(raw_shared);
  unsigned char* aligned = raw_shared + (((raw + 1023u) & ~1023u) - raw);
  unsigned char* x_shared = aligned;
  float* w_shared = reinterpret_cast<float*>(aligned + X_STAGES * X_STAGE);
  int* row_list = reinterpret_cast<int*>(aligned + X_STAGES * X_STAGE + W_STAGES * W_STAGE * 4);
  if (tid < 128) row_list[tid] = tid < number ? list[tid] : -1;
  __syncthreads();

  if (half) {
    tile_product<64>(x, W_expert, out, row_list, x_shared, w_shared, n0, N, K);
  } else {
    tile_product<128>(x, W_expert, out, row_list, x_shared, w_shared, n0, N, K);
  }
}
