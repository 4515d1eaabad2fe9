// Each row times the matrix of the expert that it was given to.
// Launch 1 lists the rows of each expert; launch 2 multiplies, a block for 128 columns and up to 136 rows of one expert.

//@ scratch perm: i32[M]
//@ scratch start: i32[E + 1]
//@ launch group_rows<<<E, 1024>>>(expert, perm, start, M)
//@ launch expert_product<<<(ceil_div(N, 128), ceil_div(M, 136) + E), 256, 122880>>>(x, expert, W, out, perm, start, M, N, K)

#include <cstdint>

#define EP_ROWS 136
#define EP_XTILE 17408          // bytes of 136 rows of 32 floats
#define EP_WPITCH 136           // floats
#define EP_WTILE 17408          // bytes of 32 rows of 136 floats

// Block e lists the rows of expert e behind those of the experts before it.
__global__ void __launch_bounds__(1024)
group_rows(const int* __restrict__ expert, int* __restrict__ perm, int* __restrict__ start, int M) {
  __shared__ int sameOfWarp[32];
  __shared__ int lessOfWarp[32];
  const int e = blockIdx.x;
  const int t = threadIdx.x;
  const int lane = t & 31, warp = t >> 5;
  const int per = (M + 1023) / 1024;
  const int lo = min(t * per, M);
  const int hi = min(lo + per, M);
  int same = 0, less = 0;
  for (int i = lo; i < hi; ++i) {
    const int v = expert[i];
    same += (v == e) ? 1 : 0;
    less += (v < e) ? 1 : 0;
  }
  int scan = same;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const int up = __shfl_up_sync(0xffffffffu, scan, d);
    if (lane >= d) scan += up;
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) less += __shfl_xor_sync(0xffffffffu, less, d);
  if (lane == 31) sameOfWarp[warp] = scan;
  if (lane == 0) lessOfWarp[warp] = less;
  __syncthreads();
  int before = 0, first = 0;
#pragma unroll
  for (int w = 0; w < 32; ++w) {
    if (w < warp) before += sameOfWarp[w];
    first += lessOfWarp[w];
  }
  if (t == 0) {
    start[e] = first;
    if (e == (int)gridDim.x - 1) start[e + 1] = M;
  }
  int position = first + before + scan - same;
  for (int i = lo; i < hi; ++i) {
    if (expert[i] == e) perm[position++] = i;
  }
}

__device__ __forceinline__ void ep_copy16(uint32_t dst, const float* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}

// high: nearest tf32; low: nearest tf32 of the rest
__device__ __forceinline__ void ep_split(float v, uint32_t& high, uint32_t& low) {
  high = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  const float rest = v - __uint_as_float(high);
  low = (__float_as_uint(rest) + 0x1000u) & 0xffffe000u;
}

// 128-byte swizzle, K-major, groups of 8 rows are 1024 bytes apart
__device__ __forceinline__ uint64_t ep_descriptor(uint32_t address) {
  uint64_t d = (uint64_t)((address & 0x3FFFFu) >> 4);
  d |= (uint64_t)1 << 16;
  d |= (uint64_t)64 << 32;
  d |= (uint64_t)1 << 62;
  return d;
}

__device__ __forceinline__ void ep_mma(float (&d)[68], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                       uint64_t desc, int add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %73, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n136k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67}, "
      "{%68, %69, %70, %71}, "
      "%72, p, 1, 1;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(desc), "r"(add)
      : "memory");
}

__global__ void __launch_bounds__(256, 1)
expert_product(const float* __restrict__ x, const int* __restrict__ expert, const float* __restrict__ W,
               float* __restrict__ out, const int* __restrict__ perm, const int* __restrict__ start, int M, int N,
               int K) {
  extern __shared__ __align__(1024) unsigned char ep_raw[];
  __shared__ int sStart[257];
  __shared__ int sPerm[EP_ROWS];

  const int tid = threadIdx.x;

  if (K % 32 != 0 || N % 128 != 0) {
    // any shape
    const size_t total = (size_t)M * N;
    const size_t step = (size_t)gridDim.x * gridDim.y * 256;
    for (size_t index = ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * 256 + tid; index < total; index += step) {
      const int m = (int)(index / N);
      const int n = (int)(index % N);
      const size_t e = expert[m];
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += x[(size_t)m * K + k] * W[(e * K + k) * N + n];
      out[index] = sum;
    }
    return;
  }

  // ---- which expert and which of its rows: whole tiles first, then the incomplete ones
  const int E = (int)gridDim.y - (M + EP_ROWS - 1) / EP_ROWS;
  const int* table = start;
  if (E < 257) {
    for (int i = tid; i <= E && i < 257; i += 256) sStart[i] = start[i];
    __syncthreads();
    if (E < 257) table = sStart;
  }
  int e = -1, first = 0, rows = 0;
  {
    int y = blockIdx.y;
    for (int i = 0; i < E; ++i) {
      const int begin = table[i];
      const int whole = (table[i + 1] - begin) / EP_ROWS;
      if (y < whole) {
        e = i;
        first = begin + y * EP_ROWS;
        rows = EP_ROWS;
        break;
      }
      y -= whole;
    }
    if (e < 0) {
      for (int i = 0; i < E; ++i) {
        const int begin = table[i];
        const int count = table[i + 1] - begin;
        const int rest = count % EP_ROWS;
        if (rest > 0) {
          if (y == 0) {
            e = i;
            first = begin + count - rest;
            rows = rest;
            break;
          }
          --y;
        }
      }
    }
  }
  if (e < 0) return;

  if (tid < EP_ROWS) sPerm[tid] = perm[first + (tid < rows ? tid : 0)];
  __syncthreads();

  const uint32_t raw = (uint32_t)__cvta_generic_to_shared(ep_raw);
  const uint32_t base = (raw + 1023u) & ~1023u;
  unsigned char* tiles = ep_raw + (base - raw);
  const uint32_t wbase = base + 4u * EP_XTILE;
  const unsigned char* wtiles = tiles + 4 * EP_XTILE;

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int g = lane >> 2;
  const int t = lane & 3;
  const int n0 = blockIdx.x * 128;
  const int chunks = K / 32;

  // ---- what this thread brings: 5 (the last only for some) times 4 floats of x, 4 times 4 floats of W
  const int xrow = tid >> 3;
  const int xq = tid & 7;
  const float* xsrc[5];
#pragma unroll
  for (int i = 0; i < 5; ++i) {
    const int row = xrow + 32 * i;
    xsrc[i] = x + (size_t)sPerm[row < EP_ROWS ? row : 0] * K + xq * 4;
  }
  const bool fifth = tid < 64;
  const int xdst = xrow * 128 + ((xq ^ (xrow & 7)) * 16);

  const float* wsrc = W + ((size_t)e * K + (tid >> 5)) * N + n0 + lane * 4;
  const uint32_t wdst = wbase + (uint32_t)((tid >> 5) * (EP_WPITCH * 4) + lane * 16);

  auto bring_w = [&](int c) {
    const float* s = wsrc + (size_t)c * 32 * N;
    const uint32_t to = wdst + (uint32_t)(c % 3) * EP_WTILE;
#pragma unroll
    for (int i = 0; i < 4; ++i) ep_copy16(to + (uint32_t)(i * 8 * EP_WPITCH * 4), s + (size_t)(i * 8) * N);
  };

  float4 xr[5];
  auto load_x = [&](int c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) xr[i] = __ldg(reinterpret_cast<const float4*>(xsrc[i] + c * 32));
    if (fifth) xr[4] = __ldg(reinterpret_cast<const float4*>(xsrc[4] + c * 32));
  };
  auto store_x = [&](int c) {
    unsigned char* high = tiles + (c & 1) * (2 * EP_XTILE) + xdst;
    unsigned char* low = high + EP_XTILE;
#pragma unroll
    for (int i = 0; i < 5; ++i) {
      if (i < 4 || fifth) {
        uint4 h, l;
        ep_split(xr[i].x, h.x, l.x);
        ep_split(xr[i].y, h.y, l.y);
        ep_split(xr[i].z, h.z, l.z);
        ep_split(xr[i].w, h.w, l.w);
        *reinterpret_cast<uint4*>(high + i * 4096) = h;
        *reinterpret_cast<uint4*>(low + i * 4096) = l;
      }
    }
  };

  float sum[68], part[68];
#pragma unroll
  for (int i = 0; i < 68; ++i) {
    sum[i] = 0.0f;
    part[i] = 0.0f;
  }
  xr[4] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

  bring_w(0);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  load_x(0);
  if (chunks > 1) bring_w(1);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  store_x(0);
  if (chunks > 1) load_x(1);

  // column of W that this thread holds for the tensor cores: warp * 16 + g and 8 more
  const int wcolumn = warp * 16 + g;

#pragma unroll 1
  for (int c = 0; c < chunks; ++c) {
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    __syncthreads();

    if (c + 2 < chunks) bring_w(c + 2);
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    const float* ws = reinterpret_cast<const float*>(wtiles + (c % 3) * EP_WTILE) + t * EP_WPITCH + wcolumn;
    uint32_t ah[4][4], al[4][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      ep_split(ws[(k * 8) * EP_WPITCH], ah[k][0], al[k][0]);
      ep_split(ws[(k * 8) * EP_WPITCH + 8], ah[k][1], al[k][1]);
      ep_split(ws[(k * 8 + 4) * EP_WPITCH], ah[k][2], al[k][2]);
      ep_split(ws[(k * 8 + 4) * EP_WPITCH + 8], ah[k][3], al[k][3]);
    }

    const uint32_t xhigh = base + (uint32_t)(c & 1) * (2u * EP_XTILE);
    const uint64_t dhigh = ep_descriptor(xhigh);
    const uint64_t dlow = ep_descriptor(xhigh + EP_XTILE);

#pragma unroll
    for (int i = 0; i < 68; ++i) asm volatile("" : "+f"(part[i])::"memory");
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      ep_mma(part, al[k][0], al[k][1], al[k][2], al[k][3], dhigh + (uint64_t)(2 * k), k == 0 ? 0 : 1);
      ep_mma(part, ah[k][0], ah[k][1], ah[k][2], ah[k][3], dlow + (uint64_t)(2 * k), 1);
      ep_mma(part, ah[k][0], ah[k][1], ah[k][2], ah[k][3], dhigh + (uint64_t)(2 * k), 1);
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");

    if (c + 1 < chunks) store_x(c + 1);
    if (c + 2 < chunks) load_x(c + 2);

    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < 68; ++i) asm volatile("" : "+f"(part[i])::"memory");
#pragma unroll
    for (int i = 0; i < 68; ++i) sum[i] += part[i];
  }

  // ---- results: row of the tile 8 j + 2 t (+ 1), column warp * 16 + g (+ 8)
  float* to = out + n0 + wcolumn;
#pragma unroll
  for (int j = 0; j < 17; ++j) {
    const int r = j * 8 + 2 * t;
    if (r < rows) {
      float* p = to + (size_t)sPerm[r] * N;
      p[0] = sum[j * 4];
      p[8] = sum[j * 4 + 2];
    }
    if (r + 1 < rows) {
      float* p = to + (size_t)sPerm[r + 1] * N;
      p[0] = sum[j * 4 + 1];
      p[8] = sum[j * 4 + 3];
    }
  }
}
