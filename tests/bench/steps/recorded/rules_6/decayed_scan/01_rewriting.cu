#include <cstdint>

// A linear recurrence along the steps. A block owns 64 channels of one sequence; loader warps keep a deep
// ring of tiles (32 steps x 64 channels of x and of a) in flight, compute warps walk the steps in order.

//@ launch decayed_scan<<<B * ceil_div(C, 64), 192, 131072>>>(x, a, out, B, T, C)

constexpr int kChannels = 64;                  // channels of a block = compute threads
constexpr int kSteps = 32;                     // steps of a stage
constexpr int kStages = 8;                     // stages of the ring
constexpr int kLoaders = 128;                  // loader threads
constexpr int kTile = kChannels * kSteps;      // floats of one input in one stage

__device__ __forceinline__ void copy_16(uint32_t to, const float* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void copy_4(uint32_t to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void commit_group() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}

template <int kPending>
__device__ __forceinline__ void wait_group() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

// xb and ab point at the first channel of the block at step 0; `left` is the number of channels from there to C.
__device__ __forceinline__ void load_stage(const float* xb, const float* ab, uint32_t ring, int stage, int loader,
                                           int T, int C, int left, bool wide) {
  const int first = stage * kSteps;
  const uint32_t slot = ring + (uint32_t)(stage % kStages) * (2u * kTile * 4u);
  if (wide) {
    const int chunk = (loader & 15) * 4;
    const int row0 = loader >> 4;
    if (chunk < left) {
#pragma unroll
      for (int k = 0; k < kSteps / (kLoaders / 16); ++k) {
        const int row = row0 + k * (kLoaders / 16);
        const int t = first + row;
        if (t < T) {
          const long long at = (long long)t * C + chunk;
          const uint32_t to = slot + (uint32_t)(row * kChannels + chunk) * 4u;
          copy_16(to, xb + at);
          copy_16(to + kTile * 4u, ab + at);
        }
      }
    }
  } else {
    const int channel = loader & (kChannels - 1);
    const int row0 = loader / kChannels;
    if (channel < left) {
      for (int row = row0; row < kSteps; row += kLoaders / kChannels) {
        const int t = first + row;
        if (t < T) {
          const long long at = (long long)t * C + channel;
          const uint32_t to = slot + (uint32_t)(row * kChannels + channel) * 4u;
          copy_4(to, xb + at);
          copy_4(to + kTile * 4u, ab + at);
        }
      }
    }
  }
}

__global__ void __launch_bounds__(192, 1)
decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  extern __shared__ __align__(128) float ring[];

  const int groups = (C + kChannels - 1) / kChannels;
  const int sequence = blockIdx.x / groups;
  const int c0 = (blockIdx.x % groups) * kChannels;
  const int left = C - c0;
  const long long base = (long long)sequence * T * C + c0;
  const int stages = (T + kSteps - 1) / kSteps;

  const bool loads = threadIdx.x >= kChannels;
  const int loader = (int)threadIdx.x - kChannels;
  const bool active = (int)threadIdx.x < left;

  const bool wide = (C % 4 == 0) && ((reinterpret_cast<uintptr_t>(x) & 15) == 0) &&
                    ((reinterpret_cast<uintptr_t>(a) & 15) == 0);
  const float* xb = x + base;
  const float* ab = a + base;
  const uint32_t ring_address = (uint32_t)__cvta_generic_to_shared(ring);

  if (loads) {
    for (int s = 0; s < kStages - 1; ++s) {
      if (s < stages) load_stage(xb, ab, ring_address, s, loader, T, C, left, wide);
      commit_group();
    }
  }

  float state = 0.0f;
  float* to = out + base + threadIdx.x;

  for (int i = 0; i < stages; ++i) {
    if (loads) wait_group<kStages - 2>();
    __syncthreads();
    if (loads) {
      const int next = i + kStages - 1;
      if (next < stages) load_stage(xb, ab, ring_address, next, loader, T, C, left, wide);
      commit_group();
    } else if (active) {
      const float* xs = ring + (i % kStages) * (2 * kTile) + threadIdx.x;
      const float* as = xs + kTile;
      const int steps = T - i * kSteps;
      if (steps >= kSteps) {
        float xv[kSteps];
        float av[kSteps];
#pragma unroll
        for (int k = 0; k < kSteps; ++k) {
          xv[k] = xs[k * kChannels];
          av[k] = as[k * kChannels];
        }
#pragma unroll
        for (int k = 0; k < kSteps; ++k) {
          state = fmaf(av[k], state, xv[k]);
          __stcs(to, state);
          to += C;
        }
      } else {
        for (int k = 0; k < steps; ++k) {
          state = fmaf(as[k * kChannels], state, xs[k * kChannels]);
          __stcs(to, state);
          to += C;
        }
      }
    }
  }
}
