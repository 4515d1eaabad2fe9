#include <cstdint>

// Seven points of a grid in three dimensions; faces stay as they are. A block takes 8 rows (all of Z) and marches
// along 77 planes of X; one bulk copy brings the 10 rows of a plane into a ring in shared memory.

//@ launch heat_step<<<(ceil_div(Y, 8), ceil_div(X, 77)), 224, 76800>>>(u, out, k, X, Y, Z)

constexpr int kRows = 8;                        // rows of a block
constexpr int kPlanes = 77;                     // planes of a block
constexpr int kWidest = 384;                    // longest row that the ring holds
constexpr int kStages = 5;
constexpr int kSlot = (kRows + 2) * kWidest;    // floats of a slot
constexpr int kConsumers = 192;                 // 2 groups of 96 threads, 4 rows each

__device__ __forceinline__ void wait_barrier(uint32_t barrier, uint32_t parity) {
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
  } while (done == 0);
}

__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ float step_of(float centre, float k, float before, float after, float up, float down,
                                         float left, float right) {
  return centre + k * (before + after + up + down + left + right - 6.0f * centre);
}

__global__ void __launch_bounds__(224, 2)
heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  extern __shared__ __align__(128) float ring[];
  __shared__ __align__(8) uint64_t barriers[2 * kStages];

  const int j0 = blockIdx.x * kRows;
  const int p0 = blockIdx.y * kPlanes;
  const int p1 = min(p0 + kPlanes, X);

  const bool streams = Z % 4 == 0 && Z <= kWidest && (reinterpret_cast<uintptr_t>(u) & 15) == 0 &&
                       (reinterpret_cast<uintptr_t>(out) & 15) == 0;

  if (!streams) {
    const long long plane = (long long)Y * Z;
    const int rows = min(kRows, Y - j0);
    for (int i = p0; i < p1; ++i) {
      for (int r = 0; r < rows; ++r) {
        const int j = j0 + r;
        const bool face = i == 0 || i == X - 1 || j == 0 || j == Y - 1;
        for (int l = threadIdx.x; l < Z; l += blockDim.x) {
          const long long at = i * plane + (long long)j * Z + l;
          const float centre = u[at];
          if (face || l == 0 || l == Z - 1) {
            out[at] = centre;
          } else {
            out[at] = step_of(centre, k, u[at - plane], u[at + plane], u[at - Z], u[at + Z], u[at - 1], u[at + 1]);
          }
        }
      }
    }
    return;
  }

  const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers);
  const uint32_t empty = full + 8u * kStages;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full + 8u * s), "r"(1) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(empty + 8u * s), "r"(kConsumers / 32) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();

  const int first = max(p0 - 1, 0);        // planes that are read
  const int last = min(p1, X - 1);

  if (threadIdx.x >= kConsumers) {
    if (threadIdx.x == kConsumers) {
      const int low = max(j0 - 1, 0);      // rows that are read
      const int high = min(j0 + kRows, Y - 1);
      const uint32_t bytes = (uint32_t)((high - low + 1) * Z) * 4u;
      const uint32_t target = (uint32_t)__cvta_generic_to_shared(ring) + (uint32_t)((low - j0 + 1) * Z) * 4u;
      const float* from = u + ((long long)first * Y + low) * Z;
      int slot = 0;
      uint32_t parity = 1;                 // a wait on a fresh barrier for this parity returns at once
      for (int p = first; p <= last; ++p) {
        wait_barrier(empty + 8u * slot, parity);
        const uint32_t barrier = full + 8u * slot;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                target + (uint32_t)slot * (kSlot * 4u)),
            "l"(from), "r"(bytes), "r"(barrier)
            : "memory");
        from += (long long)Y * Z;
        if (++slot == kStages) {
          slot = 0;
          parity ^= 1u;
        }
      }
    }
    return;
  }

  const int lane = threadIdx.x & 31;
  const int group = threadIdx.x / 96;
  const int column = threadIdx.x - group * 96;
  const int columns = Z / 4;
  const bool active = column < columns;
  const int c = active ? column : columns - 1;
  const int row0 = group * 4;              // first row of this thread within the block
  const bool left_edge = lane == 0 && c > 0;
  const bool right_edge = lane == 31 && c < columns - 1;

  // The thread's four rows within a slot start one row below the slot's first.
  const float* mine = ring + (row0 + 1) * Z + 4 * c;

  float4 before[4], now[4], after[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    before[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    after[r] = before[r];
  }

  int slot = 0;
  uint32_t parity = 0;

  if (p0 > 0) {
    wait_barrier(full + 8u * slot, parity);
#pragma unroll
    for (int r = 0; r < 4; ++r) before[r] = *reinterpret_cast<const float4*>(mine + r * Z);
    __syncwarp();
    if (lane == 0) arrive(empty + 8u * slot);
    ++slot;
  }
  wait_barrier(full + 8u * slot, parity);
#pragma unroll
  for (int r = 0; r < 4; ++r) now[r] = *reinterpret_cast<const float4*>(mine + slot * kSlot + r * Z);
  int now_slot = slot;
  ++slot;

  float* to = out + ((long long)p0 * Y + j0 + row0) * Z + 4 * c;

#pragma unroll 1
  for (int p = p0; p < p1; ++p) {
    const float* here = mine + now_slot * kSlot;
    int after_slot = now_slot;
    if (p + 1 < X) {
      wait_barrier(full + 8u * slot, parity);
      after_slot = slot;
      if (++slot == kStages) {
        slot = 0;
        parity ^= 1u;
      }
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 4; ++r) after[r] = *reinterpret_cast<const float4*>(mine + after_slot * kSlot + r * Z);
    const float4 above = *reinterpret_cast<const float4*>(here - Z);
    const float4 below = *reinterpret_cast<const float4*>(here + 4 * Z);
    const bool outer = p == 0 || p == X - 1;

#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int j = j0 + row0 + r;
      const float4 centre = now[r];
      const float4 up = r == 0 ? above : now[r > 0 ? r - 1 : 0];
      const float4 down = r == 3 ? below : now[r < 3 ? r + 1 : 3];
      float left = __shfl_up_sync(0xffffffffu, centre.w, 1);
      float right = __shfl_down_sync(0xffffffffu, centre.x, 1);
      if (left_edge) left = here[r * Z - 1];
      if (right_edge) right = here[r * Z + 4];

      float4 result = centre;
      if (!(outer || j == 0 || j >= Y - 1)) {
        result.x = step_of(centre.x, k, before[r].x, after[r].x, up.x, down.x, left, centre.y);
        result.y = step_of(centre.y, k, before[r].y, after[r].y, up.y, down.y, centre.x, centre.z);
        result.z = step_of(centre.z, k, before[r].z, after[r].z, up.z, down.z, centre.y, centre.w);
        result.w = step_of(centre.w, k, before[r].w, after[r].w, up.w, down.w, centre.z, right);
        if (c == 0) result.x = centre.x;
        if (c == columns - 1) result.w = centre.w;
      }
      if (active && j < Y) __stcs(reinterpret_cast<float4*>(to + r * Z), result);
    }

    __syncwarp();
    if (lane == 0) arrive(empty + 8u * now_slot);
    now_slot = after_slot;
    to += (long long)Y * Z;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      before[r] = now[r];
      now[r] = after[r];
    }
  }
}
