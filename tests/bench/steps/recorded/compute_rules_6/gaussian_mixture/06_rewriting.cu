// Logarithm of the density of a mixture of K normal distributions with diagonal precisions. With c a common centre,
// offset - 0.5 * sum ((x - mean) * root)^2 = constant + sum (x - c)^2 * (-0.5 root^2) + sum (x - c) * (root^2 (mean - c)),
// where these terms are small enough for it; the other points are computed directly by the warp that meets them.

//@ launch gaussian_mixture<<<132, 256, 164864>>>(x, mean, root, offset, out, M, K, D)
#include <cstdint>
#include <cuda_fp16.h>
#include <math_constants.h>

// Two values as f16 pairs, big parts and what they leave.
__device__ __forceinline__ void mixture_split(float a, float b, unsigned& big, unsigned& small) {
  __half2 high = __floats2half2_rn(a, b);
  const float2 back = __half22float2(high);
  __half2 low = __floats2half2_rn(a - back.x, b - back.y);
  big = *reinterpret_cast<unsigned*>(&high);
  small = *reinterpret_cast<unsigned*>(&low);
}

__device__ __forceinline__ float mixture_exp2(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__device__ __forceinline__ void mixture_wgmma(float (&d)[64], const unsigned (&a)[4], uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}

// All products of a tile with 128 components.
__device__ __forceinline__ void mixture_products(float (&acc)[64], const unsigned (&big)[8][4], const unsigned (&small)[8][4],
                                                 uint64_t of) {
#pragma unroll
  for (int s = 0; s < 8; ++s) mixture_wgmma(acc, small[s], of + (s >> 2) * 2048 + (s & 3) * 2, s > 0 ? 1 : 0);
#pragma unroll
  for (int s = 0; s < 8; ++s) mixture_wgmma(acc, big[s], of + 4096 + (s >> 2) * 2048 + (s & 3) * 2, 1);
#pragma unroll
  for (int s = 0; s < 8; ++s) mixture_wgmma(acc, big[s], of + (s >> 2) * 2048 + (s & 3) * 2, 1);
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

// Adds 128 components to the running sums of the two rows of a thread.
__device__ __forceinline__ void mixture_add(float (&acc)[64], const float2* constant2, float& most0, float& most1, float& sum0,
                                            float& sum1) {
  const float log2e = 1.4426950408889634f;
  float top0 = most0, top1 = most1;
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    const float2 c = constant2[j * 4];
    acc[4 * j] += c.x;
    acc[4 * j + 1] += c.y;
    acc[4 * j + 2] += c.x;
    acc[4 * j + 3] += c.y;
    top0 = fmaxf(top0, fmaxf(acc[4 * j], acc[4 * j + 1]));
    top1 = fmaxf(top1, fmaxf(acc[4 * j + 2], acc[4 * j + 3]));
  }
  sum0 *= mixture_exp2((most0 - top0) * log2e);
  sum1 *= mixture_exp2((most1 - top1) * log2e);
  most0 = top0;
  most1 = top1;
  const float low0 = -top0 * log2e, low1 = -top1 * log2e;
  float more0 = 0.0f, more1 = 0.0f;
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    sum0 += mixture_exp2(fmaf(acc[4 * j], log2e, low0));
    more0 += mixture_exp2(fmaf(acc[4 * j + 1], log2e, low0));
    sum1 += mixture_exp2(fmaf(acc[4 * j + 2], log2e, low1));
    more1 += mixture_exp2(fmaf(acc[4 * j + 3], log2e, low1));
  }
  sum0 += more0;
  sum1 += more1;
}

// One point by the original formula, by a warp, its threads along the dimensions.
__device__ __forceinline__ float mixture_direct(const float* __restrict__ x, const float* __restrict__ mean,
                                                const float* __restrict__ root, const float* __restrict__ offset, int m,
                                                int K, int D, int lane) {
  const float* point = x + (size_t)m * D;
  float most = -3.0e38f, sum = 0.0f;
#pragma unroll 1
  for (int k0 = 0; k0 < K; k0 += 32) {
    const int count = K - k0 < 32 ? K - k0 : 32;
    float distance = 0.0f;
#pragma unroll 4
    for (int j = 0; j < count; ++j) {
      const float* of_mean = mean + (size_t)(k0 + j) * D;
      const float* of_root = root + (size_t)(k0 + j) * D;
      float s = 0.0f;
#pragma unroll 1
      for (int d = lane; d < D; d += 32) {
        const float z = (point[d] - of_mean[d]) * of_root[d];
        s = fmaf(z, z, s);
      }
      __syncwarp();
#pragma unroll
      for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
      if (lane == j) distance = s;
    }
    if (lane < count) {
      const float value = offset[k0 + lane] - 0.5f * distance;
      const float next = fmaxf(most, value);
      sum = sum * expf(most - next) + expf(value - next);
      most = next;
    }
    __syncwarp();
  }
  float top = most;
#pragma unroll
  for (int o = 16; o > 0; o /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
  sum *= expf(most - top);
#pragma unroll
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  return top + logf(sum);
}

// Starts the copy of a tile of points into shared memory.
__device__ __forceinline__ void mixture_fetch(const float* x, int tile, int M, unsigned to, unsigned barrier) {
  const int rows = M - tile * 64 < 64 ? M - tile * 64 : 64;
  const unsigned bytes = (unsigned)rows * 256u;
  const float* from = x + (size_t)tile * 4096;
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

__device__ __forceinline__ void mixture_await(unsigned barrier, unsigned parity) {
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

__global__ void __launch_bounds__(256, 1) gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean,
                                                           const float* __restrict__ root,
                                                           const float* __restrict__ offset, float* __restrict__ out,
                                                           int M, int K, int D) {
  extern __shared__ __align__(1024) unsigned char mixture_shared[];
  __shared__ __align__(16) float centre[64];
  __shared__ __align__(16) float scale[64];
  __shared__ __align__(16) float constant[256];
  __shared__ __align__(16) float gather[1024];
  __shared__ float worst[8];
  __shared__ __align__(8) unsigned long long arrived[2];

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;

  if (D != 64 || K > 256) {
    for (int m = blockIdx.x * 8 + warp; m < M; m += gridDim.x * 8) {
      const float value = mixture_direct(x, mean, root, offset, m, K, D, lane);
      if (lane == 0) out[m] = value;
    }
    return;
  }

  const int group = warp >> 2;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int tiles = (M + 63) / 64;
  const int stride = gridDim.x * 2;

  const unsigned raw_base = (unsigned)__cvta_generic_to_shared(mixture_shared);
  const unsigned base = (raw_base + 1023u) & ~1023u;
  unsigned char* weights = mixture_shared + (base - raw_base);
  const unsigned barriers = (unsigned)__cvta_generic_to_shared(arrived);

  // The points of the first tiles, while the weights are made.
  if (tid == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(barriers) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(barriers + 8) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    asm volatile("fence.proxy.async;\n" ::: "memory");
    for (int w = 0; w < 2; ++w) {
      const int first = blockIdx.x + w * gridDim.x;
      if (first < tiles) mixture_fetch(x, first, M, base + 131072u + w * 16384u, barriers + w * 8);
    }
  }
  __syncwarp();

  // The weights of 256 components: blocks of 256 rows x 64 f16 (swizzled by 128 bytes): big parts of the linear and
  // of the square weights, then their small parts. A warp makes every eighth row, two dimensions in each thread.
  {
    float2 r[32], u[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int n = warp + 8 * i;
      r[i] = make_float2(0.0f, 0.0f);
      u[i] = make_float2(0.0f, 0.0f);
      if (n < K) {
        r[i] = *reinterpret_cast<const float2*>(root + n * 64 + 2 * lane);
        u[i] = *reinterpret_cast<const float2*>(mean + n * 64 + 2 * lane);
      }
    }
    const int own = warp + 8 * lane;
    const float o = own < K ? offset[own] : 0.0f;

    // A common centre, so that a common shift of all points and means costs no accuracy, and a power of two
    // for each dimension, near its largest root, that brings points and weights into the range of f16.
    float sx = 0.0f, sy = 0.0f, hx = 0.0f, hy = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      sx += u[i].x;
      sy += u[i].y;
      hx = fmaxf(hx, fabsf(r[i].x));
      hy = fmaxf(hy, fabsf(r[i].y));
    }
    *reinterpret_cast<float2*>(gather + warp * 64 + 2 * lane) = make_float2(sx, sy);
    *reinterpret_cast<float2*>(gather + 512 + warp * 64 + 2 * lane) = make_float2(hx, hy);
    __syncthreads();
    if (tid < 64) {
      float s = 0.0f, top = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        s += gather[i * 64 + tid];
        top = fmaxf(top, gather[512 + i * 64 + tid]);
      }
      float c = s / (float)K;
      unsigned bits = __float_as_uint(top) & 0x7f800000u;
      if (bits < (87u << 23)) bits = 87u << 23;
      if (bits > (167u << 23)) bits = 167u << 23;
      if (top > 1.0e12f) c = __uint_as_float(0x7fffffffu);   // marks all points
      centre[tid] = c;
      scale[tid] = __uint_as_float(bits);
    }
    __syncthreads();

    const float c0 = centre[2 * lane], c1 = centre[2 * lane + 1];
    const float inv0 = __uint_as_float(0x7f000000u - __float_as_uint(scale[2 * lane]));
    const float inv1 = __uint_as_float(0x7f000000u - __float_as_uint(scale[2 * lane + 1]));
    // The order of dimensions is the one in which the threads hold them.
    const int chunk = 2 * (lane >> 3) + (lane & 1);
    const int within = 4 * ((lane >> 1) & 3);
    unsigned char* row = weights + warp * 128 + ((chunk ^ (warp & 7)) << 4) + within;
    float squares[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const float z0 = r[i].x * (u[i].x - c0), z1 = r[i].y * (u[i].y - c1);
      const float rho0 = r[i].x * inv0, rho1 = r[i].y * inv1;
      const int at = i * 1024;
      unsigned big, small;
      mixture_split(rho0 * z0, rho1 * z1, big, small);
      *reinterpret_cast<unsigned*>(row + at) = big;
      *reinterpret_cast<unsigned*>(row + 65536 + at) = small;
      mixture_split(-0.5f * rho0 * rho0, -0.5f * rho1 * rho1, big, small);
      *reinterpret_cast<unsigned*>(row + 32768 + at) = big;
      *reinterpret_cast<unsigned*>(row + 98304 + at) = small;
      squares[i] = fmaf(z0, z0, z1 * z1);
    }
    // Sums over the threads: thread i ends with the sum of row i.
#pragma unroll
    for (int s = 16; s > 0; s /= 2) {
      const bool upper = (lane & s) != 0;
#pragma unroll
      for (int j = 0; j < s; ++j) {
        const float keep = upper ? squares[j + s] : squares[j];
        const float send = upper ? squares[j] : squares[j + s];
        squares[j] = keep + __shfl_xor_sync(0xffffffffu, send, s);
      }
    }
    constant[own] = own < K ? o - 0.5f * squares[0] : -CUDART_INF_F;
    float highest = own < K ? fmaxf(squares[0], 0.0f) : 0.0f;
#pragma unroll
    for (int s = 16; s > 0; s /= 2) highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, s));
    if (lane == 0) worst[warp] = highest;
  }
  asm volatile("fence.proxy.async;\n" ::: "memory");
  __syncthreads();

  // What the scaled squares of a point may sum to.
  float limit = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) limit = fmaxf(limit, worst[i]);
  limit = 4096.0f - limit;

  const uint64_t desc = (uint64_t)((base & 0x3FFFFu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
  const float4* centre4 = reinterpret_cast<const float4*>(centre) + t;
  const float4* scale4 = reinterpret_cast<const float4*>(scale) + t;
  const float2* constant2 = reinterpret_cast<const float2*>(constant) + t;
  const unsigned barrier = barriers + group * 8;
  const unsigned buffer = base + 131072u + group * 16384u;
  const float4* points =
      reinterpret_cast<const float4*>(weights + 131072 + group * 16384) + ((warp & 3) * 16 + g) * 16 + t;

  float acc0[64], acc1[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    acc0[i] = 0.0f;
    acc1[i] = 0.0f;
  }

  // The groups take turns with the tensor cores; the first one begins.
  const int turn = 1 + group;
  const int other = 2 - group;
  if (group == 1 && (int)blockIdx.x < tiles) asm volatile("bar.arrive %0, 256;\n" ::"r"(other) : "memory");

  unsigned parity = 0;
#pragma unroll 1
  for (int tile = blockIdx.x + group * gridDim.x; tile < tiles; tile += stride) {
    mixture_await(barrier, parity);
    parity ^= 1u;

    unsigned big[8][4], small[8][4];
    float norm0 = 0.0f, norm1 = 0.0f;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float4 c = centre4[q * 4];
      const float4 p = scale4[q * 4];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float4 v = points[h * 128 + q * 4];
        const float w0 = (v.x - c.x) * p.x;
        const float w1 = (v.y - c.y) * p.y;
        const float w2 = (v.z - c.z) * p.z;
        const float w3 = (v.w - c.w) * p.w;
        const float s0 = w0 * w0;
        const float s1 = w1 * w1;
        const float s2 = w2 * w2;
        const float s3 = w3 * w3;
        if (h == 0)
          norm0 += (s0 + s1) + (s2 + s3);
        else
          norm1 += (s0 + s1) + (s2 + s3);
        mixture_split(w0, w1, big[q][h], small[q][h]);
        mixture_split(w2, w3, big[q][h + 2], small[q][h + 2]);
        mixture_split(s0, s1, big[4 + q][h], small[4 + q][h]);
        mixture_split(s2, s3, big[4 + q][h + 2], small[4 + q][h + 2]);
      }
    }

    // All threads of the group have read their points: the next ones may come.
    asm volatile("bar.sync %0, 128;\n" ::"r"(3 + group) : "memory");
    if ((tid & 127) == 0 && tile + stride < tiles) mixture_fetch(x, tile + stride, M, buffer, barrier);
    __syncwarp();

    asm volatile("bar.sync %0, 256;\n" ::"r"(turn) : "memory");

#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc0[i])::"memory");
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc1[i])::"memory");
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
    mixture_products(acc0, big, small, desc);
    mixture_products(acc1, big, small, desc + 1024);

    float most0 = -1.0e38f, most1 = -1.0e38f;
    float sum0 = 0.0f, sum1 = 0.0f;

    asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc0[i])::"memory");
    // The other group has the next tile of this block, if there is one.
    if (tile + (int)gridDim.x < tiles) asm volatile("bar.arrive %0, 256;\n" ::"r"(other) : "memory");
    mixture_add(acc0, constant2, most0, most1, sum0, sum1);

    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc1[i])::"memory");
    mixture_add(acc1, constant2 + 64, most0, most1, sum0, sum1);

    // The four threads of a row come together.
    float top0 = fmaxf(most0, __shfl_xor_sync(0xffffffffu, most0, 1));
    float top1 = fmaxf(most1, __shfl_xor_sync(0xffffffffu, most1, 1));
    top0 = fmaxf(top0, __shfl_xor_sync(0xffffffffu, top0, 2));
    top1 = fmaxf(top1, __shfl_xor_sync(0xffffffffu, top1, 2));
    sum0 *= mixture_exp2((most0 - top0) * 1.4426950408889634f);
    sum1 *= mixture_exp2((most1 - top1) * 1.4426950408889634f);
#pragma unroll
    for (int s = 1; s <= 2; s *= 2) {
      sum0 += __shfl_xor_sync(0xffffffffu, sum0, s);
      sum1 += __shfl_xor_sync(0xffffffffu, sum1, s);
      norm0 += __shfl_xor_sync(0xffffffffu, norm0, s);
      norm1 += __shfl_xor_sync(0xffffffffu, norm1, s);
    }
    const int first = tile * 64 + (warp & 3) * 16;
    const float value0 = top0 + logf(sum0);
    const float value1 = top1 + logf(sum1);
    const bool own0 = t == 0 && first + g < M;
    const bool own1 = t == 0 && first + g + 8 < M;
    const bool good0 = norm0 <= limit && fabsf(value0) <= 3.0e38f;
    const bool good1 = norm1 <= limit && fabsf(value1) <= 3.0e38f;
    if (own0 && good0) out[first + g] = value0;
    if (own1 && good1) out[first + g + 8] = value1;

    // Points that are too far away for this, or that are not finite.
    unsigned todo = __ballot_sync(0xffffffffu, own0 && !good0) | (__ballot_sync(0xffffffffu, own1 && !good1) << 1);
#pragma unroll 1
    while (todo != 0) {
      const int bit = __ffs(todo) - 1;
      todo &= todo - 1;
      const int m = first + (bit >> 2) + 8 * (bit & 1);
      const float value = mixture_direct(x, mean, root, offset, m, K, D, lane);
      if (lane == 0) out[m] = value;
      __syncwarp();
    }
  }
}
