// Logarithm of the density of a mixture of K normal distributions with diagonal precisions; a warp takes 8 points and all
// components, each lane 8 of them.

//@ launch gaussian_mixture<<<132, 512, 205824>>>(x, mean, root, offset, out, M, K, D)

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int DIM = 64;              // dimensions of the fast path
constexpr int COMPONENTS = 256;      // components of the fast path, at most
constexpr int PITCH = DIM + 4;       // floats of a component in shared memory
constexpr int POINTS = 8;            // points of a warp
constexpr int EACH = 8;              // components of a lane

__device__ __forceinline__ float power_of_two(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

// Combines 8 values over the lanes; lane gets the result of value lane / 4.
template <bool MAXIMUM>
__device__ __forceinline__ float combine(float a, float b) {
  return MAXIMUM ? fmaxf(a, b) : a + b;
}

template <bool MAXIMUM>
__device__ __forceinline__ float reduce_points(const float (&v)[POINTS], int lane) {
  const unsigned all = 0xffffffffu;
  float a[4], b[2];
  const bool up16 = lane & 16;
  const bool up8 = lane & 8;
  const bool up4 = lane & 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float keep = up16 ? v[i + 4] : v[i];
    const float send = up16 ? v[i] : v[i + 4];
    a[i] = combine<MAXIMUM>(keep, __shfl_xor_sync(all, send, 16));
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float keep = up8 ? a[i + 2] : a[i];
    const float send = up8 ? a[i] : a[i + 2];
    b[i] = combine<MAXIMUM>(keep, __shfl_xor_sync(all, send, 8));
  }
  const float keep = up4 ? b[1] : b[0];
  const float send = up4 ? b[0] : b[1];
  float c = combine<MAXIMUM>(keep, __shfl_xor_sync(all, send, 4));
  c = combine<MAXIMUM>(c, __shfl_xor_sync(all, c, 2));
  c = combine<MAXIMUM>(c, __shfl_xor_sync(all, c, 1));
  return c;
}

__global__ void __launch_bounds__(512, 1)
gaussian_mixture(const float* x, const float* mean, const float* root, const float* offset, float* out, int M, int K,
                 int D) {
  extern __shared__ float4 shared_memory[];
  const int tid = threadIdx.x;

  if (D != DIM || K > COMPONENTS) {
    for (long long m = (long long)blockIdx.x * THREADS + tid; m < M; m += (long long)gridDim.x * THREADS) {
      const float* point = x + m * D;
      float most = -3.0e38f;
      float sum = 0.0f;
      for (int pass = 0; pass < 2; ++pass) {
        for (int k = 0; k < K; ++k) {
          const float* centre = mean + (size_t)k * D;
          const float* scale = root + (size_t)k * D;
          float distance = 0.0f;
          for (int d = 0; d < D; ++d) {
            const float z = (point[d] - centre[d]) * scale[d];
            distance += z * z;
          }
          const float value = offset[k] - 0.5f * distance;
          if (pass == 0) {
            most = fmaxf(most, value);
          } else {
            sum += expf(value - most);
          }
        }
      }
      out[m] = most + logf(sum);
    }
    return;
  }

  float* roots = reinterpret_cast<float*>(shared_memory);
  float* shifts = roots + COMPONENTS * PITCH;
  float* offsets = shifts + COMPONENTS * PITCH;
  float* points = offsets + COMPONENTS;

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int tiles = (M + POINTS - 1) / POINTS;
  const int stride = gridDim.x * WARPS;
  int tile = warp * gridDim.x + blockIdx.x;

  // Each warp has two buffers of 8 points of its own.
  float* mine = points + warp * (2 * POINTS * DIM);
  const unsigned mine_address = (unsigned)__cvta_generic_to_shared(mine);

  auto fetch = [&](int which, int buffer) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int piece = lane + 32 * i;                     // 16 pieces of 16 bytes for each point
      const long long m = (long long)which * POINTS + (piece >> 4);
      const bool valid = which < tiles && m < M;
      const float* from = valid ? x + m * DIM + (piece & 15) * 4 : x;
      const int size = valid ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                   ::"r"(mine_address + buffer * (POINTS * DIM * 4) + piece * 16), "l"(from), "r"(size)
                   : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  fetch(tile, 0);

#pragma unroll
  for (int i = 0; i < COMPONENTS * DIM / 4 / THREADS; ++i) {
    const int index = tid + i * THREADS;
    const int k = index >> 4;
    const int d = (index & 15) * 4;
    float4 r = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 c = r;
    if (k < K) {
      r = *reinterpret_cast<const float4*>(root + k * DIM + d);
      c = *reinterpret_cast<const float4*>(mean + k * DIM + d);
    }
    *reinterpret_cast<float4*>(roots + k * PITCH + d) = r;
    *reinterpret_cast<float4*>(shifts + k * PITCH + d) =
        make_float4(-c.x * r.x, -c.y * r.y, -c.z * r.z, -c.w * r.w);
  }
  if (tid < COMPONENTS) offsets[tid] = tid < K ? offset[tid] : __int_as_float(0xff800000);
  __syncthreads();

  const float log2e = 1.4426950408889634f;
  int buffer = 0;
  for (; tile < tiles; tile += stride) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncwarp();
    fetch(tile + stride, buffer ^ 1);

    float acc[POINTS][EACH];
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
#pragma unroll
      for (int j = 0; j < EACH; ++j) acc[p][j] = 0.0f;
    }

    const float* xs = mine + buffer * (POINTS * DIM);
    const float* rs = roots + lane * PITCH;
#pragma unroll 1
    for (int d = 0; d < DIM; d += 4) {
      float4 v[POINTS];
#pragma unroll
      for (int p = 0; p < POINTS; ++p) v[p] = *reinterpret_cast<const float4*>(xs + p * DIM + d);
#pragma unroll
      for (int j = 0; j < EACH; ++j) {
        const float4 r = *reinterpret_cast<const float4*>(rs + j * (32 * PITCH) + d);
        const float4 s = *reinterpret_cast<const float4*>(rs + COMPONENTS * PITCH + j * (32 * PITCH) + d);
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
          const float z = fmaf(v[p].x, r.x, s.x);
          acc[p][j] = fmaf(z, z, acc[p][j]);
        }
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
          const float z = fmaf(v[p].y, r.y, s.y);
          acc[p][j] = fmaf(z, z, acc[p][j]);
        }
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
          const float z = fmaf(v[p].z, r.z, s.z);
          acc[p][j] = fmaf(z, z, acc[p][j]);
        }
#pragma unroll
        for (int p = 0; p < POINTS; ++p) {
          const float z = fmaf(v[p].w, r.w, s.w);
          acc[p][j] = fmaf(z, z, acc[p][j]);
        }
      }
    }

    // Logarithms of the terms, their maximum, the sum of their exponentials.
    float part[POINTS];
#pragma unroll
    for (int p = 0; p < POINTS; ++p) part[p] = -3.0e38f;
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
      const float o = offsets[lane + 32 * j];
#pragma unroll
      for (int p = 0; p < POINTS; ++p) {
        acc[p][j] = fmaf(-0.5f, acc[p][j], o);
        part[p] = fmaxf(part[p], acc[p][j]);
      }
    }
    const float most = reduce_points<true>(part, lane);
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
      const float top = __shfl_sync(0xffffffffu, most, p * 4);
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < EACH; ++j) sum += power_of_two((acc[p][j] - top) * log2e);
      part[p] = sum;
    }
    const float sum = reduce_points<false>(part, lane);
    if ((lane & 3) == 0) {
      const long long m = (long long)tile * POINTS + (lane >> 2);
      if (m < M) out[m] = most + logf(sum);
    }
    buffer ^= 1;
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}
