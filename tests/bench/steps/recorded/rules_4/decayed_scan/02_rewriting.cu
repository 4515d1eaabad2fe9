// A linear recurrence along the steps; one warp streams 32 channels of a sequence through a deep ring in shared memory.

//@ launch decayed_scan<<<B * ceil_div(C, 32), 32>>>(x, a, out, B, T, C)

#define STEPS 16
#define STAGES 12

__device__ __forceinline__ void copy16(unsigned dst, const float* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wait_group() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

__global__ void __launch_bounds__(32)
decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  __shared__ __align__(128) float ring[STAGES][2][STEPS][32];
  const int lane = threadIdx.x;
  const int groups = (C + 31) / 32;
  const int b = blockIdx.x / groups;
  const int c0 = (blockIdx.x - b * groups) * 32;
  const long long base = (long long)b * T * C + c0;
  const bool live = c0 + lane < C;
  const long long pitch = C;
  float state = 0.0f;

  if ((C & 3) == 0) {
    const int row = lane >> 3;
    const int quad = (lane & 7) * 4;
    const bool wanted = c0 + quad < C;
    const float* px = x + base + (long long)row * pitch + quad;
    const float* pa = a + base + (long long)row * pitch + quad;
    const unsigned ring0 = (unsigned)__cvta_generic_to_shared(&ring[0][0][0][0]);
    const unsigned mine = ring0 + (unsigned)(row * 32 + quad) * 4u;
    const unsigned stage_bytes = 2u * STEPS * 32u * 4u;
    const unsigned array_bytes = STEPS * 32u * 4u;
    const int stages = (T + STEPS - 1) / STEPS;

    int t_load = row;      // step of this lane's first row in the next stage to load
    int slot_load = 0;

    auto load_stage = [&]() {
      const unsigned to = mine + (unsigned)slot_load * stage_bytes;
      if (wanted) {
#pragma unroll
        for (int j = 0; j < STEPS / 4; ++j) {
          if (t_load + 4 * j < T) {
            copy16(to + (unsigned)j * 512u, px + (long long)(4 * j) * pitch);
            copy16(to + array_bytes + (unsigned)j * 512u, pa + (long long)(4 * j) * pitch);
          }
        }
      }
      commit_group();
      t_load += STEPS;
      px += STEPS * pitch;
      pa += STEPS * pitch;
      slot_load = slot_load + 1 == STAGES ? 0 : slot_load + 1;
    };

#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) load_stage();

    float* po = out + base + lane;
    int slot = 0;
    int t = 0;
#pragma unroll 1
    for (int s = 0; s < stages; ++s) {
      wait_group<STAGES - 2>();
      __syncwarp();
      load_stage();
      const float* vx = &ring[slot][0][0][lane];
      const float* va = &ring[slot][1][0][lane];
      if (t + STEPS <= T) {
        float rx[STEPS], ra[STEPS];
#pragma unroll
        for (int j = 0; j < STEPS; ++j) {
          rx[j] = vx[j * 32];
          ra[j] = va[j * 32];
        }
#pragma unroll
        for (int j = 0; j < STEPS; ++j) {
          state = fmaf(ra[j], state, rx[j]);
          rx[j] = state;
        }
        if (live) {
#pragma unroll
          for (int j = 0; j < STEPS; ++j) __stcs(po + j * pitch, rx[j]);
        }
      } else {
        for (int j = 0; t + j < T; ++j) {
          state = fmaf(va[j * 32], state, vx[j * 32]);
          if (live) __stcs(po + j * pitch, state);
        }
      }
      po += STEPS * pitch;
      t += STEPS;
      slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    wait_group<0>();
  } else if (live) {
    const float* px = x + base + lane;
    const float* pa = a + base + lane;
    float* po = out + base + lane;
    int t = 0;
    for (; t + 8 <= T; t += 8) {
      float rx[8], ra[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        rx[j] = px[(t + j) * pitch];
        ra[j] = pa[(t + j) * pitch];
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        state = fmaf(ra[j], state, rx[j]);
        po[(t + j) * pitch] = state;
      }
    }
    for (; t < T; ++t) {
      state = fmaf(pa[t * pitch], state, px[t * pitch]);
      po[t * pitch] = state;
    }
  }
}
