// Logarithm of the density of a mixture of K normal distributions with diagonal precisions. With c a common centre,
// offset - 0.5 * sum ((x - mean) * root)^2 = constant + sum (x - c)^2 * (-0.5 root^2) + sum (x - c) * (root^2 (mean - c)).

//@ scratch parts: f32[ceil_div(K, 128), M, 2]
//@ launch gaussian_mixture<<<(66, ceil_div(K, 128)), 256, 132096>>>(x, mean, root, offset, out, parts, M, K, D)
//@ launch gaussian_mixture_join<<<ceil_div(M, 256), 256>>>(parts, out, M, K, D)
#include <cstdint>
#include <math_constants.h>

// Rounded to 11 bits.
__device__ __forceinline__ unsigned mixture_round(float v) {
  return (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
}

__device__ __forceinline__ void mixture_split(float v, unsigned& big, unsigned& small) {
  big = mixture_round(v);
  small = mixture_round(v - __uint_as_float(big));
}

__device__ __forceinline__ float mixture_exp(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v * 1.4426950408889634f));
  return r;
}

__device__ __forceinline__ void mixture_wgmma(float (&d)[64], const unsigned (&a)[4], uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, 1, 0;\n"
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
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__global__ void __launch_bounds__(256, 1) gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ root,
                                                           const float* __restrict__ offset, float* out, float* parts,
                                                           int M, int K, int D) {
  extern __shared__ __align__(1024) unsigned char mixture_shared[];
  __shared__ __align__(16) float centre[64];
  __shared__ __align__(16) float constant[128];
  __shared__ float gather[256];

  if (D != 64) {
    // Any number of dimensions.
    if (blockIdx.y != 0) return;
    for (int m = blockIdx.x * 256 + threadIdx.x; m < M; m += gridDim.x * 256) {
      float most = -3.0e38f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          float z = (x[(size_t)m * D + d] - mean[(size_t)k * D + d]) * root[(size_t)k * D + d];
          distance += z * z;
        }
        most = fmaxf(most, offset[k] - 0.5f * distance);
      }
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        float distance = 0.0f;
        for (int d = 0; d < D; ++d) {
          float z = (x[(size_t)m * D + d] - mean[(size_t)k * D + d]) * root[(size_t)k * D + d];
          distance += z * z;
        }
        sum += expf(offset[k] - 0.5f * distance - most);
      }
      out[m] = most + logf(sum);
    }
    return;
  }

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int k0 = blockIdx.y * 128;

  // A common centre, so that a common shift of all points and means costs no accuracy.
  {
    const int d = tid & 63;
    float s = 0.0f;
#pragma unroll 8
    for (int k = tid >> 6; k < K; k += 4) s += mean[(size_t)k * 64 + d];
    gather[tid] = s;
    __syncthreads();
    if (tid < 64) centre[tid] = ((gather[tid] + gather[tid + 64]) + (gather[tid + 128] + gather[tid + 192])) / (float)K;
    __syncthreads();
  }

  // The weights of 128 components: four blocks of 128 rows x 32 values (swizzled by 128 bytes), big parts, then small parts.
  const unsigned raw_base = (unsigned)__cvta_generic_to_shared(mixture_shared);
  const unsigned base = (raw_base + 1023u) & ~1023u;
  unsigned char* weights = mixture_shared + (base - raw_base);
#pragma unroll 2
  for (int n = warp; n < 128; n += 8) {
    const int k = k0 + n;
    float squares = 0.0f;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int d = lane + 32 * h;
      float r = 0.0f, u = 0.0f;
      if (k < K) {
        r = root[(size_t)k * 64 + d];
        u = mean[(size_t)k * 64 + d] - centre[d];
      }
      const float r2 = r * r;
      const float linear = r2 * u;
      const float square = -0.5f * r2;
      const float z = r * u;
      squares = fmaf(z, z, squares);
      // The order of dimensions is the one in which the threads hold them.
      const int q = d >> 4, t = (d >> 2) & 3, e = d & 3;
      const int column = (2 * q + (e >> 1)) * 8 + t + 4 * (e & 1);
      const int at = (column >> 5) * 16384 + n * 128 + ((((column & 31) >> 2) ^ (n & 7)) << 4) + (column & 3) * 4;
      unsigned big, small;
      mixture_split(linear, big, small);
      *reinterpret_cast<unsigned*>(weights + at) = big;
      *reinterpret_cast<unsigned*>(weights + 65536 + at) = small;
      mixture_split(square, big, small);
      *reinterpret_cast<unsigned*>(weights + 32768 + at) = big;
      *reinterpret_cast<unsigned*>(weights + 65536 + 32768 + at) = small;
    }
#pragma unroll
    for (int o = 16; o > 0; o /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, o);
    if (lane == 0) constant[n] = k < K ? offset[k] - 0.5f * squares : -CUDART_INF_F;
  }
  asm volatile("fence.proxy.async;\n" ::: "memory");
  __syncthreads();

  const int group = warp >> 2;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int tiles = (M + 63) / 64;
  const int stride = gridDim.x * 2;
  const uint64_t desc = (uint64_t)((base & 0x3FFFFu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
  const float4* centre4 = reinterpret_cast<const float4*>(centre);
  const float2* constant2 = reinterpret_cast<const float2*>(constant);
  float2* mine = reinterpret_cast<float2*>(parts) + (size_t)blockIdx.y * M;

  int tile = blockIdx.x * 2 + group;
  float4 raw[2][4];
  if (tile < tiles) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int m = min(tile * 64 + (warp & 3) * 16 + g + 8 * h, M - 1);
      const float4* from = reinterpret_cast<const float4*>(x + (size_t)m * 64) + t;
#pragma unroll
      for (int q = 0; q < 4; ++q) raw[h][q] = from[q * 4];
    }
  }

#pragma unroll 1
  for (; tile < tiles; tile += stride) {
    unsigned big[16][4], small[16][4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float4 c = centre4[q * 4 + t];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float v0 = raw[h][q].x - c.x;
        const float v1 = raw[h][q].y - c.y;
        const float v2 = raw[h][q].z - c.z;
        const float v3 = raw[h][q].w - c.w;
        mixture_split(v0, big[2 * q][h], small[2 * q][h]);
        mixture_split(v1, big[2 * q][h + 2], small[2 * q][h + 2]);
        mixture_split(v2, big[2 * q + 1][h], small[2 * q + 1][h]);
        mixture_split(v3, big[2 * q + 1][h + 2], small[2 * q + 1][h + 2]);
        mixture_split(v0 * v0, big[8 + 2 * q][h], small[8 + 2 * q][h]);
        mixture_split(v1 * v1, big[8 + 2 * q][h + 2], small[8 + 2 * q][h + 2]);
        mixture_split(v2 * v2, big[8 + 2 * q + 1][h], small[8 + 2 * q + 1][h]);
        mixture_split(v3 * v3, big[8 + 2 * q + 1][h + 2], small[8 + 2 * q + 1][h + 2]);
      }
    }

    float acc[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) acc[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc[i])::"memory");
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
    for (int s = 0; s < 16; ++s) mixture_wgmma(acc, small[s], desc + (s >> 2) * 1024 + (s & 3) * 2);
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#pragma unroll
    for (int s = 0; s < 16; ++s) mixture_wgmma(acc, big[s], desc + 4096 + (s >> 2) * 1024 + (s & 3) * 2);
#pragma unroll
    for (int s = 0; s < 16; ++s) mixture_wgmma(acc, big[s], desc + (s >> 2) * 1024 + (s & 3) * 2);
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");

    // The points of the next tile, meanwhile.
    if (tile + stride < tiles) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int m = min((tile + stride) * 64 + (warp & 3) * 16 + g + 8 * h, M - 1);
        const float4* from = reinterpret_cast<const float4*>(x + (size_t)m * 64) + t;
#pragma unroll
        for (int q = 0; q < 4; ++q) raw[h][q] = from[q * 4];
      }
    }

    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc[i])::"memory");

    float most0 = -3.0e38f, most1 = -3.0e38f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const float2 c = constant2[j * 4 + t];
      acc[4 * j] += c.x;
      acc[4 * j + 1] += c.y;
      acc[4 * j + 2] += c.x;
      acc[4 * j + 3] += c.y;
      most0 = fmaxf(most0, fmaxf(acc[4 * j], acc[4 * j + 1]));
      most1 = fmaxf(most1, fmaxf(acc[4 * j + 2], acc[4 * j + 3]));
    }
    most0 = fmaxf(most0, __shfl_xor_sync(0xffffffffu, most0, 1));
    most1 = fmaxf(most1, __shfl_xor_sync(0xffffffffu, most1, 1));
    most0 = fmaxf(most0, __shfl_xor_sync(0xffffffffu, most0, 2));
    most1 = fmaxf(most1, __shfl_xor_sync(0xffffffffu, most1, 2));
    float sum0 = 0.0f, sum1 = 0.0f, more0 = 0.0f, more1 = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      sum0 += mixture_exp(acc[4 * j] - most0);
      more0 += mixture_exp(acc[4 * j + 1] - most0);
      sum1 += mixture_exp(acc[4 * j + 2] - most1);
      more1 += mixture_exp(acc[4 * j + 3] - most1);
    }
    sum0 += more0;
    sum1 += more1;
    sum0 += __shfl_xor_sync(0xffffffffu, sum0, 1);
    sum1 += __shfl_xor_sync(0xffffffffu, sum1, 1);
    sum0 += __shfl_xor_sync(0xffffffffu, sum0, 2);
    sum1 += __shfl_xor_sync(0xffffffffu, sum1, 2);
    if (t == 0) {
      const int m = tile * 64 + (warp & 3) * 16 + g;
      if (m < M) mine[m] = make_float2(most0, sum0);
      if (m + 8 < M) mine[m + 8] = make_float2(most1, sum1);
    }
  }
}

// Joins the groups of 128 components.
__global__ void gaussian_mixture_join(const float* __restrict__ parts, float* __restrict__ out, int M, int K, int D) {
  if (D != 64) return;
  const int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= M) return;
  const int groups = (K + 127) / 128;
  const float2* of = reinterpret_cast<const float2*>(parts) + m;
  float most = -3.0e38f;
  for (int i = 0; i < groups; ++i) most = fmaxf(most, of[(size_t)i * M].x);
  float sum = 0.0f;
  for (int i = 0; i < groups; ++i) {
    const float2 v = of[(size_t)i * M];
    sum += v.y * expf(v.x - most);
  }
  out[m] = most + logf(sum);
}
