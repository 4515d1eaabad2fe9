// Attention of each position to itself and to the W - 1 positions before it: tiles of 128 queries and 64 keys, online
// softmax, products on tensor cores with operands split in two tf32 parts.

//@ launch sliding_attention<<<(H, ceil_div(T, 128)), 256, 197632>>>(q, k, v, out, H, T, D, W)

#include <cstdint>

constexpr int DIM = 64;                 // dimensions of the fast path
constexpr int KEYS = 64;                // keys of a tile
constexpr int PART = 16384;             // bytes of one part of a tile
constexpr int BUFFER = 4 * PART;        // keys high, keys low, values high, values low
constexpr int RAW = 2 * BUFFER;         // where the raw tiles begin
constexpr int RAW_BUFFER = 2 * PART;    // keys, values

__device__ __forceinline__ float power_of_two(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

__device__ __forceinline__ void split(float value, unsigned& high, unsigned& low) {
  high = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;
  const float rest = value - __uint_as_float(high);
  low = (__float_as_uint(rest) + 0x1000u) & 0xffffe000u;
}

__device__ __forceinline__ uint64_t descriptor(unsigned address) {
  // rows of 128 bytes, swizzled by 128 bytes, groups of 8 rows 1024 bytes apart
  return (uint64_t)((address & 0x3ffffu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
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

// All 8 steps of a product of depth 64; a is split, b lies split in shared memory.
__device__ __forceinline__ void product(float (&d)[32], const unsigned (&high)[32], const unsigned (&low)[32],
                                        uint64_t b_high, uint64_t b_low) {
#pragma unroll
  for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(d[i])::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int s = 0; s < 8; ++s) {
    const uint64_t at = (s >> 2) * 512 + (s & 3) * 2;
    multiply(d, low[4 * s], low[4 * s + 1], low[4 * s + 2], low[4 * s + 3], b_high + at, s > 0 ? 1 : 0);
    multiply(d, high[4 * s], high[4 * s + 1], high[4 * s + 2], high[4 * s + 3], b_low + at, 1);
    multiply(d, high[4 * s], high[4 * s + 1], high[4 * s + 2], high[4 * s + 3], b_high + at, 1);
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void finish(float (&d)[32], unsigned (&high)[32], unsigned (&low)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
    asm volatile("" : "+r"(high[i])::"memory");
    asm volatile("" : "+r"(low[i])::"memory");
  }
}

__global__ void __launch_bounds__(256, 1)
sliding_attention(const float* q, const float* k, const float* v, float* out, int H, int T, int D, int W) {
  extern __shared__ unsigned char raw_shared[];
  const int tid = threadIdx.x;
  const int head = blockIdx.x;
  const int q0 = ((int)gridDim.y - 1 - (int)blockIdx.y) * 128;
  const float scale = rsqrtf((float)D);

  if (D != DIM) {
    const int t = q0 + tid;
    if (tid < 128 && t < T) {
      const int first = t - W + 1 < 0 ? 0 : t - W + 1;
      const size_t base = (size_t)head * T;
      const float* query = q + (base + t) * D;
      float* result = out + (base + t) * D;
      float most = -3.0e38f;
      for (int s = first; s <= t; ++s) {
        const float* key = k + (base + s) * D;
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += query[d] * key[d];
        most = fmaxf(most, dot * scale);
      }
      float sum = 0.0f;
      for (int d = 0; d < D; ++d) result[d] = 0.0f;
      for (int s = first; s <= t; ++s) {
        const float* key = k + (base + s) * D;
        const float* value = v + (base + s) * D;
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += query[d] * key[d];
        const float weight = expf(dot * scale - most);
        sum += weight;
        for (int d = 0; d < D; ++d) result[d] += weight * value[d];
      }
      for (int d = 0; d < D; ++d) result[d] /= sum;
    }
    return;
  }

  const unsigned raw_address = (unsigned)__cvta_generic_to_shared(raw_shared);
  const unsigned shift = ((raw_address + 1023u) & ~1023u) - raw_address;
  unsigned char* shared = raw_shared + shift;
  const unsigned address = raw_address + shift;

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int g = lane >> 2;
  const int t4 = lane & 3;
  const int qw = q0 + (warp >> 2) * 64;                 // first query of the warp group
  const int row_a = qw + (warp & 3) * 16 + g;           // the thread's two queries
  const int row_b = row_a + 8;
  const float* q_head = q + (size_t)head * T * DIM;
  const float* k_head = k + (size_t)head * T * DIM;
  const float* v_head = v + (size_t)head * T * DIM;

  const int first = max(0, q0 - W + 1) / KEYS;
  const int last = min(T - 1, q0 + 127) / KEYS;
  const int own_first = max(0, qw - W + 1) / KEYS;
  const int own_last = qw < T ? min(T - 1, qw + 63) / KEYS : -1;

  // Raw tile of keys and values on its way to shared memory; zeros behind the end.
  auto fetch = [&](int tile, int stage) {
    const unsigned to = address + RAW + stage * RAW_BUFFER + tid * 16;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int piece = tid + 256 * i;
      const bool valid = tile <= last && tile * KEYS + (piece >> 4) < T;
      const size_t from = valid ? (size_t)tile * (KEYS * DIM) + piece * 4 : 0;
      const int size = valid ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                   ::"r"(to + i * 4096), "l"(k_head + from), "r"(size) : "memory");
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                   ::"r"(to + PART + i * 4096), "l"(v_head + from), "r"(size) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  // Raw tile to split parts: keys row by row, values transposed, their keys in the order of the fragments of weights.
  auto convert = [&](int stage) {
    const unsigned char* raw_k = shared + RAW + stage * RAW_BUFFER;
    const float* raw_v = reinterpret_cast<const float*>(raw_k + PART);
    unsigned char* to = shared + stage * BUFFER;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int piece = tid + 256 * i;
      const int key = piece >> 4;
      const int chunk = piece & 15;
      const float4 value = *reinterpret_cast<const float4*>(raw_k + piece * 16);
      uint4 high, low;
      split(value.x, high.x, low.x);
      split(value.y, high.y, low.y);
      split(value.z, high.z, low.z);
      split(value.w, high.w, low.w);
      unsigned char* place = to + (chunk >> 3) * 8192 + key * 128 + (((chunk & 7) ^ (key & 7)) << 4);
      *reinterpret_cast<uint4*>(place) = high;
      *reinterpret_cast<uint4*>(place + PART) = low;
    }
    const int d = tid & 63;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int group = (tid >> 6) + 4 * i;              // 4 places along the keys
      const float* from = raw_v + ((group >> 1) * 8 + (group & 1)) * DIM + d;
      uint4 high, low;
      split(from[0], high.x, low.x);
      split(from[2 * DIM], high.y, low.y);
      split(from[4 * DIM], high.z, low.z);
      split(from[6 * DIM], high.w, low.w);
      unsigned char* place = to + 2 * PART + (group >> 3) * 8192 + d * 128 + (((group & 7) ^ (d & 7)) << 4);
      *reinterpret_cast<uint4*>(place) = high;
      *reinterpret_cast<uint4*>(place + PART) = low;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  };

  fetch(first, 0);
  fetch(first + 1, 1);

  unsigned q_high[32], q_low[32];
#pragma unroll
  for (int s = 0; s < 8; ++s) {
    const int d = 8 * s + t4;
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    if (row_a < T) {
      a0 = q_head[(size_t)row_a * DIM + d];
      a2 = q_head[(size_t)row_a * DIM + d + 4];
    }
    if (row_b < T) {
      a1 = q_head[(size_t)row_b * DIM + d];
      a3 = q_head[(size_t)row_b * DIM + d + 4];
    }
    split(a0, q_high[4 * s], q_low[4 * s]);
    split(a1, q_high[4 * s + 1], q_low[4 * s + 1]);
    split(a2, q_high[4 * s + 2], q_low[4 * s + 2]);
    split(a3, q_high[4 * s + 3], q_low[4 * s + 3]);
  }

  float scores[32], partial[32], total[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    scores[i] = 0.0f;
    partial[i] = 0.0f;
    total[i] = 0.0f;
  }
  const float factor = scale * 1.4426950408889634f;
  const float nothing = __int_as_float(0xff800000);
  float most_a = -3.0e38f, most_b = -3.0e38f;            // times factor
  float sum_a = 0.0f, sum_b = 0.0f;

  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
  convert(0);
  __syncthreads();

  int stage = 0;
#pragma unroll 1
  for (int tile = first; tile <= last; ++tile) {
    if (tile >= own_first && tile <= own_last) {
      const unsigned here = address + stage * BUFFER;
      product(scores, q_high, q_low, descriptor(here), descriptor(here + PART));

      // While the tensor cores work: the next tile.
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      __syncthreads();
      fetch(tile + 2, stage);
      convert(stage ^ 1);

      finish(scores, q_high, q_low);

      const int s0 = tile * KEYS;
      if (s0 + KEYS - 1 > qw || s0 < qw + 64 - W) {
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          const int s = s0 + 8 * n + 2 * t4;
          if (s > row_a || s <= row_a - W) scores[4 * n] = nothing;
          if (s + 1 > row_a || s + 1 <= row_a - W) scores[4 * n + 1] = nothing;
          if (s > row_b || s <= row_b - W) scores[4 * n + 2] = nothing;
          if (s + 1 > row_b || s + 1 <= row_b - W) scores[4 * n + 3] = nothing;
        }
      }
      float top_a = nothing, top_b = nothing;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        top_a = fmaxf(top_a, fmaxf(scores[4 * n], scores[4 * n + 1]));
        top_b = fmaxf(top_b, fmaxf(scores[4 * n + 2], scores[4 * n + 3]));
      }
      top_a = fmaxf(top_a, __shfl_xor_sync(0xffffffffu, top_a, 1));
      top_b = fmaxf(top_b, __shfl_xor_sync(0xffffffffu, top_b, 1));
      top_a = fmaxf(top_a, __shfl_xor_sync(0xffffffffu, top_a, 2));
      top_b = fmaxf(top_b, __shfl_xor_sync(0xffffffffu, top_b, 2));
      const float next_a = fmaxf(most_a, top_a * factor);
      const float next_b = fmaxf(most_b, top_b * factor);
      const float old_a = power_of_two(most_a - next_a);
      const float old_b = power_of_two(most_b - next_b);
      most_a = next_a;
      most_b = next_b;
      sum_a *= old_a;
      sum_b *= old_b;

      unsigned p_high[32], p_low[32];
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const float p0 = power_of_two(fmaf(scores[4 * n], factor, -most_a));
        const float p1 = power_of_two(fmaf(scores[4 * n + 1], factor, -most_a));
        const float p2 = power_of_two(fmaf(scores[4 * n + 2], factor, -most_b));
        const float p3 = power_of_two(fmaf(scores[4 * n + 3], factor, -most_b));
        sum_a += p0 + p1;
        sum_b += p2 + p3;
        // the values' keys are ordered so that these are the fragment's columns
        split(p0, p_high[4 * n], p_low[4 * n]);
        split(p2, p_high[4 * n + 1], p_low[4 * n + 1]);
        split(p1, p_high[4 * n + 2], p_low[4 * n + 2]);
        split(p3, p_high[4 * n + 3], p_low[4 * n + 3]);
      }

      product(partial, p_high, p_low, descriptor(here + 2 * PART), descriptor(here + 3 * PART));
      __syncthreads();
      finish(partial, p_high, p_low);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        total[4 * n] = fmaf(total[4 * n], old_a, partial[4 * n]);
        total[4 * n + 1] = fmaf(total[4 * n + 1], old_a, partial[4 * n + 1]);
        total[4 * n + 2] = fmaf(total[4 * n + 2], old_b, partial[4 * n + 2]);
        total[4 * n + 3] = fmaf(total[4 * n + 3], old_b, partial[4 * n + 3]);
      }
    } else {
      // Nothing of this tile for this warp group, which only helps to bring the next one.
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      __syncthreads();
      fetch(tile + 2, stage);
      convert(stage ^ 1);
      __syncthreads();
    }
    stage ^= 1;
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");

  sum_a += __shfl_xor_sync(0xffffffffu, sum_a, 1);
  sum_b += __shfl_xor_sync(0xffffffffu, sum_b, 1);
  sum_a += __shfl_xor_sync(0xffffffffu, sum_a, 2);
  sum_b += __shfl_xor_sync(0xffffffffu, sum_b, 2);
  const float share_a = 1.0f / sum_a;
  const float share_b = 1.0f / sum_b;
  float* out_head = out + (size_t)head * T * DIM;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const int d = 8 * n + 2 * t4;
    if (row_a < T) {
      *reinterpret_cast<float2*>(out_head + (size_t)row_a * DIM + d) =
          make_float2(total[4 * n] * share_a, total[4 * n + 1] * share_a);
    }
    if (row_b < T) {
      *reinterpret_cast<float2*>(out_head + (size_t)row_b * DIM + d) =
          make_float2(total[4 * n + 2] * share_b, total[4 * n + 3] * share_b);
    }
  }
}
