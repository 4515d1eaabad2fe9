// Logarithm of the density of a mixture of K normal distributions with diagonal precisions. A warp takes 8 points
// and all 256 components, of which each lane has 8.

//@ launch gaussian_mixture<<<132, 512, 199680>>>(x, mean, root, offset, out, M, K, D)

#define PITCH 260

__device__ __forceinline__ float exp_of(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v * 1.4426950408889634f));
  return r;
}

template <bool MAXIMUM>
__device__ __forceinline__ float combine(float a, float b) {
  return MAXIMUM ? fmaxf(a, b) : a + b;
}

// reduces 8 values over the warp; the result of value m is in the lanes 4 m .. 4 m + 3
template <bool MAXIMUM>
__device__ __forceinline__ float reduce_8(float (&a)[8], int lane) {
  float b[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float send = (lane & 16) ? a[j] : a[j + 4];
    const float keep = (lane & 16) ? a[j + 4] : a[j];
    b[j] = combine<MAXIMUM>(keep, __shfl_xor_sync(0xffffffffu, send, 16));
  }
  float c[2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const float send = (lane & 8) ? b[j] : b[j + 2];
    const float keep = (lane & 8) ? b[j + 2] : b[j];
    c[j] = combine<MAXIMUM>(keep, __shfl_xor_sync(0xffffffffu, send, 8));
  }
  const float send = (lane & 4) ? c[0] : c[1];
  const float keep = (lane & 4) ? c[1] : c[0];
  float r = combine<MAXIMUM>(keep, __shfl_xor_sync(0xffffffffu, send, 4));
  r = combine<MAXIMUM>(r, __shfl_xor_sync(0xffffffffu, r, 2));
  r = combine<MAXIMUM>(r, __shfl_xor_sync(0xffffffffu, r, 1));
  return r;
}

// 8 points of 64 values, neighbours in memory
__device__ __forceinline__ void bring(float* to, const float* __restrict__ x, int m0, int M, int lane) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int chunk = lane + j * 32;
    const bool inside = m0 + (chunk >> 4) < M;
    const float* from = inside ? x + ((size_t)m0 * 64 + chunk * 4) : x;
    const unsigned address = (unsigned)__cvta_generic_to_shared(to + chunk * 4);
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
  }
}

__global__ void __launch_bounds__(512, 1)
gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ root,
                 const float* __restrict__ offset, float* __restrict__ out, int M, int K, int D) {
  extern __shared__ __align__(16) float shared[];

  if (K != 256 || D != 64) {
    for (int m = blockIdx.x * blockDim.x + threadIdx.x; m < M; m += gridDim.x * blockDim.x) {
      float most = -3.0e38f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          float z = (x[(size_t)m * D + d] - mean[k * D + d]) * root[k * D + d];
          distance += z * z;
        }
        most = fmaxf(most, offset[k] - 0.5f * distance);
      }
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          float z = (x[(size_t)m * D + d] - mean[k * D + d]) * root[k * D + d];
          distance += z * z;
        }
        sum += expf(offset[k] - 0.5f * distance - most);
      }
      out[m] = most + logf(sum);
    }
    return;
  }

  float* roots = shared;               // [64][PITCH], by d and k
  float* shifts = roots + 64 * PITCH;  // -mean * root
  float* offsets = shifts + 64 * PITCH;
  float* points = offsets + 256;

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  float* own = points + warp * 1024;

  const int tasks = (M + 7) / 8;
  const int step = gridDim.x * 16;
  int task = warp * gridDim.x + blockIdx.x;
  if (task < tasks) bring(own, x, task * 8, M, lane);
  asm volatile("cp.async.commit_group;" ::: "memory");

  // the parameters, transposed
#pragma unroll 2
  for (int j = 0; j < 8; ++j) {
    const int part = warp * 8 + j;
    const int k = (part >> 2) * 8 + (lane >> 2);
    const int d = ((part & 3) * 4 + (lane & 3)) * 4;
    const float4 a = *reinterpret_cast<const float4*>(root + k * 64 + d);
    const float4 b = *reinterpret_cast<const float4*>(mean + k * 64 + d);
    roots[d * PITCH + k] = a.x;
    roots[(d + 1) * PITCH + k] = a.y;
    roots[(d + 2) * PITCH + k] = a.z;
    roots[(d + 3) * PITCH + k] = a.w;
    shifts[d * PITCH + k] = -(a.x * b.x);
    shifts[(d + 1) * PITCH + k] = -(a.y * b.y);
    shifts[(d + 2) * PITCH + k] = -(a.z * b.z);
    shifts[(d + 3) * PITCH + k] = -(a.w * b.w);
  }
  if (threadIdx.x < 256) offsets[threadIdx.x] = offset[threadIdx.x];
  __syncthreads();

  int buffer = 0;
#pragma unroll 1
  for (; task < tasks; task += step) {
    if (task + step < tasks) bring(own + (buffer ^ 1) * 512, x, (task + step) * 8, M, lane);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncwarp();

    const float* xs = own + buffer * 512;
    const float* rs = roots + lane * 4;
    const float* ss = shifts + lane * 4;

    float acc[8][8];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
#pragma unroll
      for (int k = 0; k < 8; ++k) acc[m][k] = 0.0f;
    }

#pragma unroll 2
    for (int d = 0; d < 64; d += 2) {
      float2 xv[8];
#pragma unroll
      for (int m = 0; m < 8; ++m) xv[m] = *reinterpret_cast<const float2*>(xs + m * 64 + d);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float4 r0 = *reinterpret_cast<const float4*>(rs + (d + e) * PITCH);
        const float4 s0 = *reinterpret_cast<const float4*>(ss + (d + e) * PITCH);
        const float4 r1 = *reinterpret_cast<const float4*>(rs + (d + e) * PITCH + 128);
        const float4 s1 = *reinterpret_cast<const float4*>(ss + (d + e) * PITCH + 128);
        const float r[8] = {r0.x, r0.y, r0.z, r0.w, r1.x, r1.y, r1.z, r1.w};
        const float s[8] = {s0.x, s0.y, s0.z, s0.w, s1.x, s1.y, s1.z, s1.w};
#pragma unroll
        for (int m = 0; m < 8; ++m) {
          const float value = e == 0 ? xv[m].x : xv[m].y;
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            const float z = fmaf(value, r[k], s[k]);
            acc[m][k] = fmaf(z, z, acc[m][k]);
          }
        }
      }
    }

    const float4 o0 = *reinterpret_cast<const float4*>(offsets + lane * 4);
    const float4 o1 = *reinterpret_cast<const float4*>(offsets + 128 + lane * 4);
    const float o[8] = {o0.x, o0.y, o0.z, o0.w, o1.x, o1.y, o1.z, o1.w};
    float part[8];
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      float most = -3.0e38f;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        acc[m][k] = fmaf(-0.5f, acc[m][k], o[k]);
        most = fmaxf(most, acc[m][k]);
      }
      part[m] = most;
    }
    const float most_here = reduce_8<true>(part, lane);
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      const float most = __shfl_sync(0xffffffffu, most_here, m * 4);
      float sum0 = 0.0f, sum1 = 0.0f;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        sum0 += exp_of(acc[m][k] - most);
        sum1 += exp_of(acc[m][k + 4] - most);
      }
      part[m] = sum0 + sum1;
    }
    const float sum_here = reduce_8<false>(part, lane);
    const int m = task * 8 + (lane >> 2);
    if ((lane & 3) == 0 && m < M) out[m] = most_here + logf(sum_here);
    buffer ^= 1;
    __syncwarp();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}
