// A linear recurrence along the steps, one lane for each channel of each sequence, fed by a ring of asynchronous copies.

__device__ __forceinline__ void copy16(unsigned dst, const float* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}

//@ launch decayed_scan<<<ceil_div(B * C, 32), 32>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(32) decayed_scan(const float* __restrict__ x, const float* __restrict__ a, float* __restrict__ out, int B, int T, int C) {
  constexpr int STEPS = 16;
  constexpr int STAGES = 8;
  __shared__ __align__(128) float ring[STAGES][2][STEPS][32];

  const int lane = threadIdx.x;
  const int channel = blockIdx.x * 32 + lane;

  if (C % 32 == 0) {
    const int group = blockIdx.x * 32;
    const size_t first = (size_t)(group / C) * T * C + group % C;
    const float* xs = x + first;
    const float* as = a + first;
    float* os = out + first + lane;

    const int sub_row = lane >> 3;
    const int sub_col = (lane & 7) * 4;
    const unsigned ring_base = (unsigned)__cvta_generic_to_shared(&ring[0][0][0][0]);
    const unsigned lane_off = (unsigned)((sub_row * 32 + sub_col) * sizeof(float));
    const unsigned array_bytes = STEPS * 32 * sizeof(float);
    const unsigned stage_bytes = 2 * array_bytes;
    const int stages = (T + STEPS - 1) / STEPS;

    auto fetch = [&](int s, int slot) {
      if (s < stages) {
        const int t0 = s * STEPS + sub_row;
        const unsigned dst = ring_base + slot * stage_bytes + lane_off;
        const size_t src = (size_t)t0 * C + sub_col;
#pragma unroll
        for (int k = 0; k < STEPS / 4; ++k) {
          if (t0 + k * 4 < T) {
            copy16(dst + k * 4 * 32 * sizeof(float), as + src + (size_t)(k * 4) * C);
            copy16(dst + array_bytes + k * 4 * 32 * sizeof(float), xs + src + (size_t)(k * 4) * C);
          }
        }
      }
      asm volatile("cp.async.commit_group;\n" ::: "memory");
    };

#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
      fetch(s, s);
    }

    float state = 0.0f;
    for (int s = 0; s < stages; ++s) {
      asm volatile("cp.async.wait_group %0;\n" ::"n"(STAGES - 2) : "memory");
      __syncwarp();
      fetch(s + STAGES - 1, (s + STAGES - 1) % STAGES);

      const int slot = s % STAGES;
      const int t0 = s * STEPS;
      float* o = os + (size_t)t0 * C;
      if (t0 + STEPS <= T) {
        float av[STEPS], xv[STEPS];
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
          av[k] = ring[slot][0][k][lane];
          xv[k] = ring[slot][1][k][lane];
        }
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
          state = av[k] * state + xv[k];
          __stcs(o + (size_t)k * C, state);
        }
      } else {
        for (int k = 0; t0 + k < T; ++k) {
          state = ring[slot][0][k][lane] * state + ring[slot][1][k][lane];
          __stcs(o + (size_t)k * C, state);
        }
      }
    }
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  } else if (channel < B * C) {
    const size_t first = (size_t)(channel / C) * T * C + channel % C;
    float state = 0.0f;
    int t = 0;
    for (; t + 8 <= T; t += 8) {
      float av[8], xv[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        av[k] = a[first + (size_t)(t + k) * C];
        xv[k] = x[first + (size_t)(t + k) * C];
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        state = av[k] * state + xv[k];
        out[first + (size_t)(t + k) * C] = state;
      }
    }
    for (; t < T; ++t) {
      state = a[first + (size_t)t * C] * state + x[first + (size_t)t * C];
      out[first + (size_t)t * C] = state;
    }
  }
}
