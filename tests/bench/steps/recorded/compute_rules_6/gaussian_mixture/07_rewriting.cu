// Logarithm of the density of a mixture of K normal distributions with diagonal precisions. With c a common centre,
// offset - 0.5 * sum ((x - mean) * root)^2 = constant + sum (x - c)^2 * (-0.5 root^2) + sum (x - c) * (root^2 (mean - c)),
// where these terms are small enough for it; the other points are marked, and computed directly at the end.

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

#define MIX4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define MIX16(i) MIX4(i), MIX4((i) + 4), MIX4((i) + 8), MIX4((i) + 12)

__device__ __forceinline__ void mixture_wgmma(float (&d)[128], const unsigned (&a)[4], uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %133, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, "
      "%72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, "
      "%88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, "
      "%104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, "
      "%120, %121, %122, %123, %124, %125, %126, %127}, "
      "{%128, %129, %130, %131}, %132, p, 1, 1, 0;\n"
      "}\n"
      : MIX16(0), MIX16(16), MIX16(32), MIX16(48), MIX16(64), MIX16(80), MIX16(96), MIX16(112)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}

// A thread's own parts of two rows of a tile, to its own places in shared memory.
__device__ __forceinline__ void mixture_fetch(unsigned to, const float* __restrict__ x, int row, int t, int M) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int m = min(row + 8 * h, M - 1);
    const float* from = x + (size_t)m * 64 + t * 4;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to + (unsigned)((h * 4 + q) * 2048)),
                   "l"(from + q * 16)
                   : "memory");
    }
  }
}

__global__ void __launch_bounds__(256, 1) gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean,
                                                           const float* __restrict__ root,
                                                           const float* __restrict__ offset, float* out, int M, int K,
                                                           int D) {
  extern __shared__ __align__(1024) unsigned char mixture_shared[];
  __shared__ __align__(16) float centre[64];
  __shared__ __align__(16) float shift[64];
  __shared__ __align__(16) float scale[64];
  __shared__ __align__(16) float constant[256];
  __shared__ float worst[8];

  const bool whole = D != 64 || K > 256;   // all points directly
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int group = warp >> 2;
  bool marked = false;

  if (!whole) {
    const int g = lane >> 2;
    const int t = lane & 3;
    const int tiles = (M + 63) / 64;
    const int rounds = (int)blockIdx.x < tiles ? (tiles - 1 - (int)blockIdx.x) / (int)gridDim.x + 1 : 0;
    const int pairs = (rounds + 1) / 2;
    const int row = (warp & 3) * 16 + g;

    const unsigned raw_base = (unsigned)__cvta_generic_to_shared(mixture_shared);
    const unsigned base = (raw_base + 1023u) & ~1023u;
    unsigned char* weights = mixture_shared + (base - raw_base);
    const int own_at = 131072 + group * 16384 + (tid & 127) * 16;

    // The points of the first tile, while the weights are made.
    if (group < rounds) mixture_fetch(base + own_at, x, ((int)blockIdx.x + group * (int)gridDim.x) * 64 + row, t, M);

    {
      const int l = lane & 15;
      const int part = warp * 2 + (lane >> 4);
      const float own_offset = tid < K ? offset[tid] : 0.0f;
      float4 r[16], u[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int n = part + 16 * i;
        r[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        u[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (n < K) {
          r[i] = *reinterpret_cast<const float4*>(root + n * 64 + 4 * l);
          u[i] = *reinterpret_cast<const float4*>(mean + n * 64 + 4 * l);
        }
      }

      // A common centre, so that a common shift of all points and means costs no accuracy, and a power of two
      // for each dimension, near its largest root, that brings points and weights into the range of f16.
      float* gather = reinterpret_cast<float*>(weights);
      float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      float4 high = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        s.x += u[i].x;
        s.y += u[i].y;
        s.z += u[i].z;
        s.w += u[i].w;
        high.x = fmaxf(high.x, fabsf(r[i].x));
        high.y = fmaxf(high.y, fabsf(r[i].y));
        high.z = fmaxf(high.z, fabsf(r[i].z));
        high.w = fmaxf(high.w, fabsf(r[i].w));
      }
      *reinterpret_cast<float4*>(gather + part * 64 + 4 * l) = s;
      *reinterpret_cast<float4*>(gather + 1024 + part * 64 + 4 * l) = high;
      __syncthreads();
      if (tid < 64) {
        float c = 0.0f, top = 0.0f;
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          c += gather[i * 64 + tid];
          top = fmaxf(top, gather[1024 + i * 64 + tid]);
        }
        c = c / (float)K;
        unsigned bits = __float_as_uint(top) & 0x7f800000u;
        if (bits < (87u << 23)) bits = 87u << 23;
        if (bits > (167u << 23)) bits = 167u << 23;
        if (top > 1.0e12f) c = __uint_as_float(0x7fffffffu);   // marks all points
        centre[tid] = c;
        scale[tid] = __uint_as_float(bits);
        shift[tid] = -(c * __uint_as_float(bits));
      }
      __syncthreads();

      // The weights of 256 components: blocks of 256 rows x 64 f16 (swizzled by 128 bytes): big parts of the linear
      // and of the square weights, then their small parts. The order of dimensions is the one in which the threads
      // hold them.
      const float4 c = *reinterpret_cast<const float4*>(centre + 4 * l);
      const float4 p = *reinterpret_cast<const float4*>(scale + 4 * l);
      const float inv0 = __uint_as_float(0x7f000000u - __float_as_uint(p.x));
      const float inv1 = __uint_as_float(0x7f000000u - __float_as_uint(p.y));
      const float inv2 = __uint_as_float(0x7f000000u - __float_as_uint(p.z));
      const float inv3 = __uint_as_float(0x7f000000u - __float_as_uint(p.w));
      const int chunk = 2 * (l >> 2);
      const int within = 4 * (l & 3);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int n = part + 16 * i;
        float4 v = u[i];
        if (n < K) {
          v.x -= c.x;
          v.y -= c.y;
          v.z -= c.z;
          v.w -= c.w;
        }
        const float z0 = r[i].x * v.x, z1 = r[i].y * v.y, z2 = r[i].z * v.z, z3 = r[i].w * v.w;
        const float rho0 = r[i].x * inv0, rho1 = r[i].y * inv1, rho2 = r[i].z * inv2, rho3 = r[i].w * inv3;
        const int at0 = n * 128 + ((chunk ^ (n & 7)) << 4) + within;
        const int at1 = n * 128 + (((chunk + 1) ^ (n & 7)) << 4) + within;
        unsigned big, small;
        mixture_split(rho0 * z0, rho1 * z1, big, small);
        *reinterpret_cast<unsigned*>(weights + at0) = big;
        *reinterpret_cast<unsigned*>(weights + 65536 + at0) = small;
        mixture_split(rho2 * z2, rho3 * z3, big, small);
        *reinterpret_cast<unsigned*>(weights + at1) = big;
        *reinterpret_cast<unsigned*>(weights + 65536 + at1) = small;
        mixture_split(-0.5f * rho0 * rho0, -0.5f * rho1 * rho1, big, small);
        *reinterpret_cast<unsigned*>(weights + 32768 + at0) = big;
        *reinterpret_cast<unsigned*>(weights + 98304 + at0) = small;
        mixture_split(-0.5f * rho2 * rho2, -0.5f * rho3 * rho3, big, small);
        *reinterpret_cast<unsigned*>(weights + 32768 + at1) = big;
        *reinterpret_cast<unsigned*>(weights + 98304 + at1) = small;
        float squares = fmaf(z0, z0, z1 * z1) + fmaf(z2, z2, z3 * z3);
#pragma unroll
        for (int o = 8; o > 0; o /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, o);
        if (l == 0) constant[n] = squares;
      }
      asm volatile("fence.proxy.async;\n" ::: "memory");
      __syncthreads();
      const float squares = constant[tid];
      constant[tid] = tid < K ? own_offset - 0.5f * squares : -CUDART_INF_F;
      float highest = fmaxf(0.0f, squares);
#pragma unroll
      for (int o = 16; o > 0; o /= 2) highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, o));
      if (lane == 0) worst[warp] = highest;
      __syncthreads();
    }

    // What the scaled squares of a point may sum to.
    float limit = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) limit = fmaxf(limit, worst[i]);
    limit = 4096.0f - limit;

    const uint64_t desc =
        (uint64_t)((base & 0x3FFFFu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) | ((uint64_t)1 << 62);
    const float4* shift4 = reinterpret_cast<const float4*>(shift);
    const float4* scale4 = reinterpret_cast<const float4*>(scale);
    const float2* constant2 = reinterpret_cast<const float2*>(constant);
    const float log2e = 1.4426950408889634f;

    float acc[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) acc[i] = 0.0f;

    // The warpgroups take turns at the tensor cores: barrier 1 gives the turn to the first, barrier 2 to the second.
    const int my_turn = 1 + group;
    const int other_turn = 2 - group;
    if (group == 1 && pairs > 0) asm volatile("bar.arrive %0, 256;\n" ::"r"(other_turn) : "memory");

#pragma unroll 1
    for (int pair = 0; pair < pairs; ++pair) {
      const int round = 2 * pair + group;
      if (round >= rounds) {   // only the last turn of the second warpgroup
        asm volatile("bar.sync %0, 256;\n" ::"r"(my_turn) : "memory");
        break;
      }
      const int first = ((int)blockIdx.x + round * (int)gridDim.x) * 64 + row;

      unsigned big[8][4], small[8][4];
      float norm0 = 0.0f, norm1 = 0.0f;
      asm volatile("cp.async.wait_all;\n" ::: "memory");
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float4 c = shift4[q * 4 + t];
        const float4 p = scale4[q * 4 + t];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float4 v = *reinterpret_cast<const float4*>(weights + own_at + (h * 4 + q) * 2048);
          const float w0 = fmaf(v.x, p.x, c.x);
          const float w1 = fmaf(v.y, p.y, c.y);
          const float w2 = fmaf(v.z, p.z, c.z);
          const float w3 = fmaf(v.w, p.w, c.w);
          const float s0 = w0 * w0;
          const float s1 = w1 * w1;
          const float s2 = w2 * w2;
          const float s3 = w3 * w3;
          const float more = (s0 + s1) + (s2 + s3);
          if (h == 0)
            norm0 += more;
          else
            norm1 += more;
          mixture_split(w0, w1, big[q][h], small[q][h]);
          mixture_split(w2, w3, big[q][h + 2], small[q][h + 2]);
          mixture_split(s0, s1, big[4 + q][h], small[4 + q][h]);
          mixture_split(s2, s3, big[4 + q][h + 2], small[4 + q][h + 2]);
        }
      }
#pragma unroll
      for (int s = 1; s <= 2; s *= 2) {
        norm0 += __shfl_xor_sync(0xffffffffu, norm0, s);
        norm1 += __shfl_xor_sync(0xffffffffu, norm1, s);
      }
#pragma unroll
      for (int s = 0; s < 8; ++s) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          asm volatile("" : "+r"(big[s][j])::"memory");
          asm volatile("" : "+r"(small[s][j])::"memory");
        }
      }

      // The points of the next tile, meanwhile.
      if (round + 2 < rounds) mixture_fetch(base + own_at, x, first + 2 * (int)gridDim.x * 64, t, M);

      asm volatile("bar.sync %0, 256;\n" ::"r"(my_turn) : "memory");
#pragma unroll
      for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(acc[i])::"memory");
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
      for (int s = 0; s < 8; ++s) mixture_wgmma(acc, small[s], desc + (s >> 2) * 2048 + (s & 3) * 2, s > 0 ? 1 : 0);
#pragma unroll
      for (int s = 0; s < 8; ++s) mixture_wgmma(acc, big[s], desc + 4096 + (s >> 2) * 2048 + (s & 3) * 2, 1);
#pragma unroll
      for (int s = 0; s < 5; ++s) mixture_wgmma(acc, big[s], desc + (s >> 2) * 2048 + (s & 3) * 2, 1);
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#pragma unroll
      for (int s = 5; s < 8; ++s) mixture_wgmma(acc, big[s], desc + (s >> 2) * 2048 + (s & 3) * 2, 1);
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");

      // With the last three products still to come, the other warpgroup may begin.
      asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
      if (group == 0 || pair + 1 < pairs) asm volatile("bar.arrive %0, 256;\n" ::"r"(other_turn) : "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
      for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(acc[i])::"memory");

      float top0 = -3.0e38f, top1 = -3.0e38f;
#pragma unroll
      for (int j = 0; j < 32; ++j) {
        const float2 c = constant2[j * 4 + t];
        acc[4 * j] += c.x;
        acc[4 * j + 1] += c.y;
        acc[4 * j + 2] += c.x;
        acc[4 * j + 3] += c.y;
        top0 = fmaxf(top0, fmaxf(acc[4 * j], acc[4 * j + 1]));
        top1 = fmaxf(top1, fmaxf(acc[4 * j + 2], acc[4 * j + 3]));
      }
      // The four threads of a row share its maximum.
#pragma unroll
      for (int s = 1; s <= 2; s *= 2) {
        top0 = fmaxf(top0, __shfl_xor_sync(0xffffffffu, top0, s));
        top1 = fmaxf(top1, __shfl_xor_sync(0xffffffffu, top1, s));
      }
      const float low0 = -(top0 * log2e);
      const float low1 = -(top1 * log2e);
      float sum0 = 0.0f, sum1 = 0.0f, more0 = 0.0f, more1 = 0.0f;
#pragma unroll
      for (int j = 0; j < 32; ++j) {
        sum0 += mixture_exp2(fmaf(acc[4 * j], log2e, low0));
        more0 += mixture_exp2(fmaf(acc[4 * j + 1], log2e, low0));
        sum1 += mixture_exp2(fmaf(acc[4 * j + 2], log2e, low1));
        more1 += mixture_exp2(fmaf(acc[4 * j + 3], log2e, low1));
      }
      sum0 += more0;
      sum1 += more1;
#pragma unroll
      for (int s = 1; s <= 2; s *= 2) {
        sum0 += __shfl_xor_sync(0xffffffffu, sum0, s);
        sum1 += __shfl_xor_sync(0xffffffffu, sum1, s);
      }
      if (t == 0) {
        const float mark = __uint_as_float(0x7fffffffu);
        const float one = norm0 <= limit && fabsf(top0) < 1.0e30f ? top0 + logf(sum0) : mark;
        const float two = norm1 <= limit && fabsf(top1) < 1.0e30f ? top1 + logf(sum1) : mark;
        if (first < M) {
          out[first] = one;
          marked = marked || one != one;
        }
        if (first + 8 < M) {
          out[first + 8] = two;
          marked = marked || two != two;
        }
      }
      __syncwarp();
    }
  }

  // The warp's own marked points, or all of them for other sizes: one after the other, the threads along the dimensions.
  if (whole || __any_sync(0xffffffffu, marked)) {
    __syncwarp();
    for (int unit = ((int)blockIdx.x + group * (int)gridDim.x) * 4 + (warp & 3); unit * 16 < M;
         unit += (int)gridDim.x * 8) {
      const int first = unit * 16;
      bool need = false;
      if (lane < 16 && first + lane < M) {
        if (whole) {
          need = true;
        } else {
          const float there = *reinterpret_cast<volatile float*>(out + first + lane);
          need = (__float_as_uint(there) & 0x7fffffffu) > 0x7f800000u;
        }
      }
      unsigned todo = __ballot_sync(0xffffffffu, need);
      while (todo != 0) {
        const int m = first + __ffs(todo) - 1;
        todo &= todo - 1;
        const float* point = x + (size_t)m * D;
        float most = -3.0e38f, sum = 0.0f;
        for (int k0 = 0; k0 < K; k0 += 32) {
          const int count = K - k0 < 32 ? K - k0 : 32;
          float distance = 0.0f;
#pragma unroll 4
          for (int j = 0; j < count; ++j) {
            const float* of_mean = mean + (size_t)(k0 + j) * D;
            const float* of_root = root + (size_t)(k0 + j) * D;
            float s = 0.0f;
            for (int d = lane; d < D; d += 32) {
              const float z = (point[d] - of_mean[d]) * of_root[d];
              s = fmaf(z, z, s);
            }
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
        if (lane == 0) out[m] = top + logf(sum);
        __syncwarp();
      }
    }
  }
}
