// Logarithm of the density of a mixture of K normal distributions with diagonal precisions. With c a common centre,
// offset - 0.5 * sum ((x - mean) * root)^2 = constant + sum (x - c)^2 * (-0.5 root^2) + sum (x - c) * (root^2 (mean - c)),
// where these terms are small enough for it; the other points are marked, and computed directly at the end.

//@ launch gaussian_mixture<<<132, 256, 132096>>>(x, mean, root, offset, out, M, K, D)
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

__device__ __forceinline__ void mixture_turn_wait(int id) { asm volatile("bar.sync %0, 256;\n" ::"r"(id) : "memory"); }

__device__ __forceinline__ void mixture_turn_pass(int id) { asm volatile("bar.arrive %0, 256;\n" ::"r"(id) : "memory"); }

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

// One point by the original formula, a warp for it, its threads along the dimensions.
__device__ __forceinline__ void mixture_direct(const float* __restrict__ x, const float* __restrict__ mean,
                                               const float* __restrict__ root, const float* __restrict__ offset,
                                               float* out, int m, int K, int D, int lane) {
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
  }
  float top = most;
#pragma unroll
  for (int o = 16; o > 0; o /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
  sum *= expf(most - top);
#pragma unroll
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (lane == 0) out[m] = top + logf(sum);
}

__global__ void __launch_bounds__(256, 1) gaussian_mixture(const float* __restrict__ x, const float* __restrict__ mean,
                                                           const float* __restrict__ root,
                                                           const float* __restrict__ offset, float* out, int M, int K,
                                                           int D) {
  extern __shared__ __align__(1024) unsigned char mixture_shared[];
  __shared__ __align__(16) float centre[64];
  __shared__ __align__(16) float scale[64];
  __shared__ __align__(16) float constant[256];
  __shared__ __align__(16) float gather[1024];
  __shared__ float worst[8];

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = __shfl_sync(0xffffffffu, tid >> 5, 0);

  if (D != 64 || K > 256) {
    for (int m = blockIdx.x * 8 + warp; m < M; m += gridDim.x * 8)
      mixture_direct(x, mean, root, offset, out, m, K, D, lane);
    return;
  }

  const int group = warp >> 2;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int tiles = (M + 63) / 64;
  const int stride = gridDim.x * 2;
  const int row_in_tile = (warp & 3) * 16 + g;

  int tile = blockIdx.x + group * gridDim.x;
  float4 raw[2][4];

  const unsigned raw_base = (unsigned)__cvta_generic_to_shared(mixture_shared);
  const unsigned base = (raw_base + 1023u) & ~1023u;
  unsigned char* weights = mixture_shared + (base - raw_base);

  // The parameters are read once: a thread holds four dimensions of every sixteenth component.
  {
    const int dq = tid & 15;
    const int kg = tid >> 4;
    float4 r4[16], u4[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int n = kg + 16 * i;
      u4[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      r4[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (n < K) {
        u4[i] = reinterpret_cast<const float4*>(mean)[n * 16 + dq];
        r4[i] = reinterpret_cast<const float4*>(root)[n * 16 + dq];
      }
    }
    const float own_offset = kg + 16 * dq < K ? offset[kg + 16 * dq] : 0.0f;

    // The points of the first tile, meanwhile.
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int m = min(tile * 64 + row_in_tile + 8 * h, M - 1);
      const float4* from = reinterpret_cast<const float4*>(x + (size_t)m * 64) + t;
#pragma unroll
      for (int q = 0; q < 4; ++q) raw[h][q] = from[q * 4];
    }

    // A common centre, so that a common shift of all points and means costs no accuracy, and a power of two
    // for each dimension, near its largest root, that brings points and weights into the range of f16.
    float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 w = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      s.x += u4[i].x;
      s.y += u4[i].y;
      s.z += u4[i].z;
      s.w += u4[i].w;
      w.x = fmaxf(w.x, fabsf(r4[i].x));
      w.y = fmaxf(w.y, fabsf(r4[i].y));
      w.z = fmaxf(w.z, fabsf(r4[i].z));
      w.w = fmaxf(w.w, fabsf(r4[i].w));
    }
    s.x += __shfl_xor_sync(0xffffffffu, s.x, 16);
    s.y += __shfl_xor_sync(0xffffffffu, s.y, 16);
    s.z += __shfl_xor_sync(0xffffffffu, s.z, 16);
    s.w += __shfl_xor_sync(0xffffffffu, s.w, 16);
    w.x = fmaxf(w.x, __shfl_xor_sync(0xffffffffu, w.x, 16));
    w.y = fmaxf(w.y, __shfl_xor_sync(0xffffffffu, w.y, 16));
    w.z = fmaxf(w.z, __shfl_xor_sync(0xffffffffu, w.z, 16));
    w.w = fmaxf(w.w, __shfl_xor_sync(0xffffffffu, w.w, 16));
    if (lane < 16) {
      *reinterpret_cast<float4*>(gather + warp * 64 + 4 * dq) = s;
      *reinterpret_cast<float4*>(gather + 512 + warp * 64 + 4 * dq) = w;
    }
    __syncthreads();
    if (tid < 64) {
      float c = 0.0f, top = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        c += gather[i * 64 + tid];
        top = fmaxf(top, gather[512 + i * 64 + tid]);
      }
      c /= (float)K;
      unsigned bits = __float_as_uint(top) & 0x7f800000u;
      if (bits < (87u << 23)) bits = 87u << 23;
      if (bits > (167u << 23)) bits = 167u << 23;
      if (top > 1.0e12f) c = __uint_as_float(0x7fffffffu);   // marks all points
      centre[tid] = c;
      scale[tid] = __uint_as_float(bits);
    }
    __syncthreads();

    // The weights of 256 components: blocks of 256 rows x 64 f16 (swizzled by 128 bytes): big parts of the linear and
    // of the square weights, then their small parts. The order of dimensions is the one in which the threads hold them.
    const float4 c4 = *reinterpret_cast<const float4*>(centre + 4 * dq);
    const float4 p4 = *reinterpret_cast<const float4*>(scale + 4 * dq);
    const float inv0 = __uint_as_float(0x7f000000u - __float_as_uint(p4.x));
    const float inv1 = __uint_as_float(0x7f000000u - __float_as_uint(p4.y));
    const float inv2 = __uint_as_float(0x7f000000u - __float_as_uint(p4.z));
    const float inv3 = __uint_as_float(0x7f000000u - __float_as_uint(p4.w));
    const int chunk = 2 * (dq >> 2);
    const int within = 4 * (dq & 3);
    float highest = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int n = kg + 16 * i;
      const float z0 = r4[i].x * (u4[i].x - c4.x);
      const float z1 = r4[i].y * (u4[i].y - c4.y);
      const float z2 = r4[i].z * (u4[i].z - c4.z);
      const float z3 = r4[i].w * (u4[i].w - c4.w);
      const float rho0 = r4[i].x * inv0;
      const float rho1 = r4[i].y * inv1;
      const float rho2 = r4[i].z * inv2;
      const float rho3 = r4[i].w * inv3;
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
      if (dq == i) constant[n] = n < K ? own_offset - 0.5f * squares : -CUDART_INF_F;
      highest = fmaxf(highest, squares);
    }
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 16));
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
  const float4* centre4 = reinterpret_cast<const float4*>(centre);
  const float4* scale4 = reinterpret_cast<const float4*>(scale);
  const float2* constant2 = reinterpret_cast<const float2*>(constant);
  const float log2e = 1.4426950408889634f;
  const float ln2 = 0.6931471805599453f;

  float acc[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) acc[i] = 0.0f;

  // What is left to do of the tile before: the four threads of a row come together.
  bool trouble = false;
  int done_m = 0;
  float done_top0 = 0.0f, done_top1 = 0.0f, done_sum0 = 0.0f, done_sum1 = 0.0f, done_norm0 = 0.0f, done_norm1 = 0.0f;
  auto finish = [&]() {
    float top0 = fmaxf(done_top0, __shfl_xor_sync(0xffffffffu, done_top0, 1));
    float top1 = fmaxf(done_top1, __shfl_xor_sync(0xffffffffu, done_top1, 1));
    top0 = fmaxf(top0, __shfl_xor_sync(0xffffffffu, top0, 2));
    top1 = fmaxf(top1, __shfl_xor_sync(0xffffffffu, top1, 2));
    float s0 = done_sum0 * mixture_exp2(done_top0 - top0);
    float s1 = done_sum1 * mixture_exp2(done_top1 - top1);
    float n0 = done_norm0, n1 = done_norm1;
#pragma unroll
    for (int s = 1; s <= 2; s *= 2) {
      s0 += __shfl_xor_sync(0xffffffffu, s0, s);
      s1 += __shfl_xor_sync(0xffffffffu, s1, s);
      n0 += __shfl_xor_sync(0xffffffffu, n0, s);
      n1 += __shfl_xor_sync(0xffffffffu, n1, s);
    }
    if (t == 0) {
      const float mark = __uint_as_float(0x7fffffffu);
      const bool fine0 = n0 <= limit && s0 > 0.25f;
      const bool fine1 = n1 <= limit && s1 > 0.25f;
      const float value0 = (top0 + log2f(s0)) * ln2;
      const float value1 = (top1 + log2f(s1)) * ln2;
      if (done_m < M) {
        out[done_m] = fine0 ? value0 : mark;
        trouble = trouble || !fine0;
      }
      if (done_m + 8 < M) {
        out[done_m + 8] = fine1 ? value1 : mark;
        trouble = trouble || !fine1;
      }
    }
  };

  // The two warpgroups take turns at the tensor cores; both go through the same number of rounds.
  const int own_turn = 1 + group;
  const int other_turn = 2 - group;
  if (group == 1 && (int)blockIdx.x < tiles) mixture_turn_pass(other_turn);

#pragma unroll 1
  for (int first = blockIdx.x; first < tiles; first += stride) {
    const bool more = first + stride < tiles;
    unsigned big[8][4], small[8][4];
    float norm[2] = {0.0f, 0.0f};
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float4 c = centre4[q * 4 + t];
      const float4 p = scale4[q * 4 + t];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float w0 = (raw[h][q].x - c.x) * p.x;
        const float w1 = (raw[h][q].y - c.y) * p.y;
        const float w2 = (raw[h][q].z - c.z) * p.z;
        const float w3 = (raw[h][q].w - c.w) * p.w;
        const float s0 = w0 * w0;
        const float s1 = w1 * w1;
        const float s2 = w2 * w2;
        const float s3 = w3 * w3;
        norm[h] += (s0 + s1) + (s2 + s3);
        mixture_split(w0, w1, big[q][h], small[q][h]);
        mixture_split(w2, w3, big[q][h + 2], small[q][h + 2]);
        mixture_split(s0, s1, big[4 + q][h], small[4 + q][h]);
        mixture_split(s2, s3, big[4 + q][h + 2], small[4 + q][h + 2]);
      }
    }

    float most0 = -1.0e38f, most1 = -1.0e38f;
    float level0 = 0.0f, level1 = 0.0f;
    float sum0 = 0.0f, sum1 = 0.0f;

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint64_t of = desc + half * 1024;
      mixture_turn_wait(own_turn);
#pragma unroll
      for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc[i])::"memory");
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
      for (int s = 0; s < 8; ++s) mixture_wgmma(acc, small[s], of + (s >> 2) * 2048 + (s & 3) * 2, s > 0 ? 1 : 0);
#pragma unroll
      for (int s = 0; s < 8; ++s) mixture_wgmma(acc, big[s], of + 4096 + (s >> 2) * 2048 + (s & 3) * 2, 1);
#pragma unroll
      for (int s = 0; s < 8; ++s) mixture_wgmma(acc, big[s], of + (s >> 2) * 2048 + (s & 3) * 2, 1);
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
      if (half == 0 || group == 0 || more) mixture_turn_pass(other_turn);

      // The points of the next tile, and the end of the tile before, meanwhile.
      if (half == 0) {
        if (more) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int m = min((tile + stride) * 64 + row_in_tile + 8 * h, M - 1);
            const float4* from = reinterpret_cast<const float4*>(x + (size_t)m * 64) + t;
#pragma unroll
            for (int q = 0; q < 4; ++q) raw[h][q] = from[q * 4];
          }
        }
        if (first != (int)blockIdx.x) finish();
      }

      asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
      for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(acc[i])::"memory");

      float top0 = most0, top1 = most1;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const float2 c = constant2[half * 64 + j * 4 + t];
        acc[4 * j] += c.x;
        acc[4 * j + 1] += c.y;
        acc[4 * j + 2] += c.x;
        acc[4 * j + 3] += c.y;
        top0 = fmaxf(top0, fmaxf(acc[4 * j], acc[4 * j + 1]));
        top1 = fmaxf(top1, fmaxf(acc[4 * j + 2], acc[4 * j + 3]));
      }
      const float next0 = top0 * log2e;
      const float next1 = top1 * log2e;
      if (half == 1) {
        sum0 *= mixture_exp2(level0 - next0);
        sum1 *= mixture_exp2(level1 - next1);
      }
      most0 = top0;
      most1 = top1;
      level0 = next0;
      level1 = next1;
      float more0 = 0.0f, more1 = 0.0f;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        sum0 += mixture_exp2(fmaf(acc[4 * j], log2e, -next0));
        more0 += mixture_exp2(fmaf(acc[4 * j + 1], log2e, -next0));
        sum1 += mixture_exp2(fmaf(acc[4 * j + 2], log2e, -next1));
        more1 += mixture_exp2(fmaf(acc[4 * j + 3], log2e, -next1));
      }
      sum0 += more0;
      sum1 += more1;
    }

    done_m = tile * 64 + row_in_tile;
    done_top0 = level0;
    done_top1 = level1;
    done_sum0 = sum0;
    done_sum1 = sum1;
    done_norm0 = norm[0];
    done_norm1 = norm[1];
    tile += stride;
  }
  if ((int)blockIdx.x < tiles) finish();

  // The marked points of this warp.
  if (__ballot_sync(0xffffffffu, trouble) != 0) {
    __syncwarp();
    for (int again = blockIdx.x + group * gridDim.x; again < tiles; again += stride) {
      const int start = again * 64 + (warp & 3) * 16;
      bool need = false;
      if (lane < 16 && start + lane < M) need = (__float_as_uint(out[start + lane]) & 0x7fffffffu) > 0x7f800000u;
      unsigned todo = __ballot_sync(0xffffffffu, need);
      while (todo != 0) {
        const int m = start + __ffs(todo) - 1;
        todo &= todo - 1;
        mixture_direct(x, mean, root, offset, out, m, K, D, lane);
      }
    }
  }
}
