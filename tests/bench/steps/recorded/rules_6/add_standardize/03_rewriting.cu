// A residual is added and each row is standardized in one launch: a warp for each row, rows streamed by bulk copies.

//@ launch add_standardize<<<min(M, 132), 448, 229376>>>(x, r, out, M, N)
#include <cstdint>

constexpr int kWarps = 14;
constexpr int kRow = 2048;                  // row length of the streamed path
constexpr int kVectors = kRow / (32 * 4);   // float4 per lane
constexpr uint32_t kRowBytes = kRow * 4;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__device__ __forceinline__ void bulk_load(uint32_t target, const float* source, uint32_t bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(target), "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void request_row(const float* x, const float* r, long long start, uint32_t buffer,
                                            uint32_t barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(2 * kRowBytes)
               : "memory");
  bulk_load(buffer, x + start, kRowBytes, barrier);
  bulk_load(buffer + kRowBytes, r + start, kRowBytes, barrier);
}

__device__ __forceinline__ void wait_row(uint32_t barrier, uint32_t phase) {
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(phase)
        : "memory");
  }
}

__global__ void __launch_bounds__(448, 1) add_standardize(const float* x, const float* r, float* out, int M, int N) {
  extern __shared__ __align__(128) unsigned char arena[];
  __shared__ __align__(8) uint64_t barriers[kWarps];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int first = warp * gridDim.x + blockIdx.x;
  const int step = kWarps * gridDim.x;

  const bool aligned = ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(r) |
                         reinterpret_cast<uintptr_t>(out)) & 15) == 0;

  if (N == kRow && aligned) {
    if (first >= M) return;

    unsigned char* mine = arena + warp * (2 * kRowBytes);
    const float4* xs = reinterpret_cast<const float4*>(mine) + lane;
    const float4* rs = reinterpret_cast<const float4*>(mine + kRowBytes) + lane;
    const uint32_t buffer = static_cast<uint32_t>(__cvta_generic_to_shared(mine));
    const uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&barriers[warp]));

    if (lane == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(barrier) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
      asm volatile("fence.proxy.async;" : : : "memory");
      request_row(x, r, (long long)first * kRow, buffer, barrier);
    }
    __syncwarp();

    uint32_t phase = 0;
    for (int row = first; row < M; row += step) {
      wait_row(barrier, phase);
      phase ^= 1;

      float4 v[kVectors];
      float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        const float4 a = xs[i * 32];
        const float4 b = rs[i * 32];
        v[i].x = a.x + b.x;
        v[i].y = a.y + b.y;
        v[i].z = a.z + b.z;
        v[i].w = a.w + b.w;
        total.x += v[i].x;
        total.y += v[i].y;
        total.z += v[i].z;
        total.w += v[i].w;
      }
      const float mean = warp_sum((total.x + total.y) + (total.z + total.w)) / kRow;

      // The row is in registers now: the buffer is free for the next one.
      asm volatile("fence.proxy.async;" : : : "memory");
      __syncwarp();
      if (lane == 0 && row + step < M) {
        request_row(x, r, (long long)(row + step) * kRow, buffer, barrier);
      }
      __syncwarp();

      float4 square = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        v[i].x -= mean;
        v[i].y -= mean;
        v[i].z -= mean;
        v[i].w -= mean;
        square.x += v[i].x * v[i].x;
        square.y += v[i].y * v[i].y;
        square.z += v[i].z * v[i].z;
        square.w += v[i].w * v[i].w;
      }
      const float variance = warp_sum((square.x + square.y) + (square.z + square.w));
      const float scale = rsqrtf(variance / kRow + 1e-5f);

      float4* target = reinterpret_cast<float4*>(out + (long long)row * kRow) + lane;
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        __stcs(target + i * 32, make_float4(v[i].x * scale, v[i].y * scale, v[i].z * scale, v[i].w * scale));
      }
    }
    return;
  }

  // Any other row length: a warp for each row, the row read again from the caches.
  for (int row = first; row < M; row += step) {
    const long long start = (long long)row * N;
    const float* xr = x + start;
    const float* rr = r + start;
    float* target = out + start;

    float total = 0.0f;
#pragma unroll 4
    for (int j = lane; j < N; j += 32) {
      total += __ldg(xr + j) + __ldg(rr + j);
    }
    const float mean = warp_sum(total) / N;

    float square = 0.0f;
#pragma unroll 4
    for (int j = lane; j < N; j += 32) {
      const float d = (__ldg(xr + j) + __ldg(rr + j)) - mean;
      square += d * d;
    }
    const float scale = rsqrtf(warp_sum(square) / N + 1e-5f);

#pragma unroll 4
    for (int j = lane; j < N; j += 32) {
      target[j] = ((__ldg(xr + j) + __ldg(rr + j)) - mean) * scale;
    }
  }
}
