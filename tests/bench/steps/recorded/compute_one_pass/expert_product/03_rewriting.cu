// Each row times the matrix of the expert that it was given to.
// Rows are grouped by expert; a block computes 128 columns of 136 rows of one expert, transposed:
// the columns of W are the rows of the tensor cores' product, the rows of x its columns.

#include <cstdint>

//@ scratch rows_of: i32[E, M]
//@ scratch count_of: i32[E]
//@ launch expert_rows<<<E, 1024>>>(expert, rows_of, count_of, M)
//@ launch expert_product<<<(ceil_div(N, 128), ceil_div(M, 136) + E, 1), 256, 105472>>>(x, expert, W, out, rows_of, count_of, M, N, K)

__global__ void __launch_bounds__(1024) expert_rows(const int* __restrict__ expert, int* __restrict__ rows_of, int* __restrict__ count_of, int M) {
  __shared__ int counts[32];
  const int e = (int)blockIdx.x;
  const int lane = (int)threadIdx.x & 31;
  const int warp = (int)threadIdx.x >> 5;
  const int per = ((M + 31) / 32 + 31) / 32 * 32;   // rows of a warp, a multiple of 32
  const int first = warp * per;
  int count = 0;
#pragma unroll 8
  for (int b = 0; b < per; b += 32) {
    const int m = first + b + lane;
    const bool mine = m < M && expert[m] == e;
    count += __popc(__ballot_sync(0xffffffffu, mine));
  }
  if (lane == 0) counts[warp] = count;
  __syncthreads();
  int at = 0, total = 0;
  for (int w = 0; w < 32; ++w) {
    const int c = counts[w];
    if (w < warp) at += c;
    total += c;
  }
  int* list = rows_of + (size_t)e * M;
#pragma unroll 8
  for (int b = 0; b < per; b += 32) {
    const int m = first + b + lane;
    const bool mine = m < M && expert[m] == e;
    const unsigned all = __ballot_sync(0xffffffffu, mine);
    if (mine) list[at + __popc(all & ((1u << lane) - 1u))] = m;
    at += __popc(all);
  }
  if (threadIdx.x == 0) count_of[e] = total;
}

constexpr int EP_ROWS = 136;                         // rows of x in a tile
constexpr int EP_PART = EP_ROWS * 128;               // bytes of one part of 32 columns of them
constexpr int EP_PITCH = 136;                        // floats of a row of W's tile, padded
constexpr int EP_STAGE = 2 * EP_PART + 32 * EP_PITCH * 4;

__device__ __forceinline__ void ep_split(float v, uint32_t& high, uint32_t& low) {
  high = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(v - __uint_as_float(high));
}

#define EP_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])

__device__ __forceinline__ void ep_wgmma(float (&d)[68], const uint32_t (&a)[4], uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %73, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n136k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
      "%60, %61, %62, %63, %64, %65, %66, %67}, "
      "{%68, %69, %70, %71}, %72, p, 1, 1;\n"
      "}\n"
      : EP_D4(0), EP_D4(4), EP_D4(8), EP_D4(12), EP_D4(16), EP_D4(20), EP_D4(24), EP_D4(28), EP_D4(32),
        EP_D4(36), EP_D4(40), EP_D4(44), EP_D4(48), EP_D4(52), EP_D4(56), EP_D4(60), EP_D4(64)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}

__global__ void __launch_bounds__(256, 1)
expert_product(const float* __restrict__ x, const int* __restrict__ expert, const float* __restrict__ W, float* __restrict__ out,
               const int* __restrict__ rows_of, const int* __restrict__ count_of, int M, int N, int K) {
  extern __shared__ unsigned char ep_shared[];
  __shared__ int rows[EP_ROWS];
  __shared__ int found[3];

  const int tid = (int)threadIdx.x;

  if ((N & 3) != 0 || (K & 3) != 0) {
    const long long total = (long long)M * N;
    const long long step = (long long)gridDim.x * gridDim.y * 256;
    for (long long p = ((long long)blockIdx.y * gridDim.x + blockIdx.x) * 256 + tid; p < total; p += step) {
      const int m = (int)(p / N);
      const int n = (int)(p - (long long)m * N);
      const int e = expert[m];
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += x[m * K + k] * W[(e * K + k) * N + n];
      out[p] = sum;
    }
    return;
  }

  const int lane = tid & 31;
  const int warp = tid >> 5;

  // which expert and which of its rows
  if (tid == 0) found[0] = -1;
  __syncthreads();
  if (warp == 0) {
    const int experts = (int)gridDim.y - (M + EP_ROWS - 1) / EP_ROWS;
    const int t = (int)blockIdx.y;
    int base = 0;
    for (int e0 = 0; e0 < experts; e0 += 32) {
      const int e = e0 + lane;
      const int count = e < experts ? count_of[e] : 0;
      const int tiles = (count + EP_ROWS - 1) / EP_ROWS;
      int upto = tiles;
#pragma unroll
      for (int o = 1; o < 32; o *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, upto, o);
        if (lane >= o) upto += other;
      }
      const int begin = base + upto - tiles;
      if (t >= begin && t < begin + tiles) {
        found[0] = e;
        found[1] = (t - begin) * EP_ROWS;
        found[2] = count;
      }
      base += __shfl_sync(0xffffffffu, upto, 31);
    }
  }
  __syncthreads();
  const int e = found[0];
  if (e < 0) return;
  {
    const int first = found[1];
    const int count = found[2];
    if (tid < EP_ROWS) rows[tid] = first + tid < count ? rows_of[(size_t)e * M + first + tid] : -1;
  }
  __syncthreads();

  const uint32_t raw = (uint32_t)__cvta_generic_to_shared(ep_shared);
  const uint32_t shift = (1024u - (raw & 1023u)) & 1023u;
  unsigned char* stages = ep_shared + shift;
  const uint32_t stages_at = raw + shift;

  const int n0 = (int)blockIdx.x * 128;

  // what this thread brings of x: 16 bytes of each of up to 5 rows
  const int chunk = tid & 7;
  const int row0 = tid >> 3;
  int row_of[5];
#pragma unroll
  for (int j = 0; j < 5; ++j) {
    const int r = row0 + 32 * j;
    row_of[j] = r < EP_ROWS ? rows[r] : -1;
  }
  // row & 7 is the same for all 5, as they are 32 apart
  const int x_at = row0 * 128 + ((chunk ^ (row0 & 7)) * 16);

  float4 held[5];
  auto fetch_x = [&](int k0) {
    const int k = k0 + chunk * 4;
#pragma unroll
    for (int j = 0; j < 5; ++j) {
      held[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (row_of[j] >= 0 && k < K) held[j] = *reinterpret_cast<const float4*>(x + (size_t)row_of[j] * K + k);
    }
  };
  auto store_x = [&](int slot) {
    unsigned char* to = stages + slot * EP_STAGE + x_at;
#pragma unroll
    for (int j = 0; j < 5; ++j) {
      if (row0 + 32 * j < EP_ROWS) {
        uint4 high, low;
        ep_split(held[j].x, high.x, low.x);
        ep_split(held[j].y, high.y, low.y);
        ep_split(held[j].z, high.z, low.z);
        ep_split(held[j].w, high.w, low.w);
        *reinterpret_cast<uint4*>(to + j * 4096) = high;
        *reinterpret_cast<uint4*>(to + j * 4096 + EP_PART) = low;
      }
    }
  };
  auto copy_w = [&](int k0, int slot) {
    const int n = n0 + (tid & 31) * 4;
    const uint32_t to = stages_at + slot * EP_STAGE + 2 * EP_PART + (tid & 31) * 16;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int r = (tid >> 5) + 8 * j;
      const int k = k0 + r;
      const bool ok = k < K && n < N;
      const float* from = ok ? W + ((size_t)e * K + k) * N + n : W;
      const int bytes = ok ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + r * (EP_PITCH * 4)), "l"(from), "r"(bytes) : "memory");
    }
  };

  float acc[68], sum[68];
#pragma unroll
  for (int i = 0; i < 68; ++i) {
    acc[i] = 0.0f;
    sum[i] = 0.0f;
  }

  const int g = lane >> 2;
  const int tig = lane & 3;
  const int column = warp * 16 + g;                  // of the 128 columns, warps 0..3 and 4..7 are the two groups
  const int steps = (K + 31) / 32;

  copy_w(0, 0);
  asm volatile("cp.async.commit_group;" ::: "memory");
  fetch_x(0);
  store_x(0);
  asm volatile("fence.proxy.async;" ::: "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();

#pragma unroll 1
  for (int kt = 0; kt < steps; ++kt) {
    const int slot = kt & 1;
    const bool more = kt + 1 < steps;
    if (more) {
      copy_w((kt + 1) * 32, slot ^ 1);
      fetch_x((kt + 1) * 32);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");

    const float* w_tile = reinterpret_cast<const float*>(stages + slot * EP_STAGE + 2 * EP_PART) + tig * EP_PITCH + column;
    const uint32_t b_at = stages_at + slot * EP_STAGE;
    const uint64_t fixed = (uint64_t(1) << 62) | (uint64_t(64) << 32) | (uint64_t(1) << 16);
    const uint64_t b_high = fixed | (uint64_t)((b_at & 0x3ffffu) >> 4);
    const uint64_t b_low = fixed | (uint64_t)(((b_at + EP_PART) & 0x3ffffu) >> 4);

    uint32_t ah[4][4], al[4][4];
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const float* from = w_tile + s * 8 * EP_PITCH;
      ep_split(from[0], ah[s][0], al[s][0]);
      ep_split(from[8], ah[s][1], al[s][1]);
      ep_split(from[4 * EP_PITCH], ah[s][2], al[s][2]);
      ep_split(from[4 * EP_PITCH + 8], ah[s][3], al[s][3]);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      ep_wgmma(acc, al[s], b_high + 2 * s, (s > 0 || (kt & 3) != 0) ? 1 : 0);
      ep_wgmma(acc, ah[s], b_low + 2 * s, 1);
      ep_wgmma(acc, ah[s], b_high + 2 * s, 1);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }

    if (more) store_x(slot ^ 1);
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 68; ++i) asm volatile("" : "+f"(acc[i])::"memory");
    __syncthreads();

    // runs of 128 products are added in f32
    if ((kt & 3) == 3 || !more) {
#pragma unroll
      for (int i = 0; i < 68; ++i) sum[i] += acc[i];
    }
  }

  const int n = n0 + column;
#pragma unroll
  for (int j = 0; j < 17; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int m = rows[j * 8 + tig * 2 + c];
      if (m >= 0) {
        float* to = out + (size_t)m * N;
        if (n < N) to[n] = sum[j * 4 + c];
        if (n + 8 < N) to[n + 8] = sum[j * 4 + 2 + c];
      }
    }
  }
}
