// Each row times the matrix of the expert that it was given to: rows sorted by expert, then tiles of 128 rows x 128 columns.

//@ scratch rows: i32[E, M]
//@ scratch meta: i32[E + 1]
//@ scratch meet: i32[264]
//@ scratch part: f32[264, 16384]
//@ launch expert_rows<<<E, 1024>>>(expert, rows, meta, meet, M)
//@ launch expert_product<<<(ceil_div(M, 128) + E) * ceil_div(N, 128) + 264, 256, 107520>>>(x, W, out, rows, meta, meet, part, M, N, K)

// Block e lists the rows of expert e, in order.
__global__ void __launch_bounds__(1024) expert_rows(const int* __restrict__ expert, int* rows, int* meta, int* meet, int M) {
  __shared__ int sums[32];
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int e = blockIdx.x;
  const int per = (M + 1023) / 1024;
  const int begin = min(M, t * per);
  const int end = min(M, begin + per);
  int count = 0;
  for (int m = begin; m < end; ++m) count += expert[m] == e ? 1 : 0;
  int upto = count;
  for (int d = 1; d < 32; d *= 2) {
    int v = __shfl_up_sync(0xffffffffu, upto, d);
    if (lane >= d) upto += v;
  }
  if (lane == 31) sums[warp] = upto;
  __syncthreads();
  if (warp == 0) {
    int s = sums[lane];
    for (int d = 1; d < 32; d *= 2) {
      int v = __shfl_up_sync(0xffffffffu, s, d);
      if (lane >= d) s += v;
    }
    sums[lane] = s;
  }
  __syncthreads();
  int at = upto - count + (warp > 0 ? sums[warp - 1] : 0);
  int* list = rows + (size_t)e * M;
  for (int m = begin; m < end; ++m) {
    if (expert[m] == e) list[at++] = m;
  }
  if (t == 0) {
    meta[1 + e] = sums[31];
    if (e == 0) meta[0] = gridDim.x;
  }
  if (e == 0 && t < 264) meet[t] = 0;
}

__device__ __forceinline__ void expert_copy16(unsigned to, const float* from, bool valid) {
  int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void expert_copy4(unsigned to, const float* from, bool valid) {
  int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// The value as a sum of two of 11 bits (the low bits of the second are ignored by the multiplication).
__device__ __forceinline__ void expert_split(float v, unsigned& big, unsigned& small) {
  big = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  small = __float_as_uint(v - __uint_as_float(big));
}

__device__ __forceinline__ void expert_mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], float c0, float c1, float c2, float c3) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
}

// Brings 128 rows x 32 of x (rows of 36 floats) and 32 x 128 of W (rows of 136 floats); zeros where there is nothing.
__device__ __forceinline__ void expert_load(const float* __restrict__ x, const float* __restrict__ We, const int* listed, unsigned to,
                                            int chunk, int n0, int N, int K, bool vectors) {
  const int t = threadIdx.x;
  {
    const int c = (t & 7) * 4;
    const int k = chunk * 32 + c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = (t >> 3) + 32 * i;
      const int r = listed[row];
      const unsigned dst = to + (row * 36 + c) * 4;
      const float* src = x + (size_t)max(r, 0) * K;
      if (vectors) {
        bool valid = r >= 0 && k < K;
        expert_copy16(dst, valid ? src + k : x, valid);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          bool valid = r >= 0 && k + j < K;
          expert_copy4(dst + 4 * j, valid ? src + k + j : x, valid);
        }
      }
    }
  }
  {
    const int c = (t & 31) * 4;
    const int n = n0 + c;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = (t >> 5) + 8 * i;
      const int k = chunk * 32 + row;
      const unsigned dst = to + 18432 + (row * 136 + c) * 4;
      const float* src = We + (size_t)k * N + n;
      if (vectors) {
        bool valid = k < K && n < N;
        expert_copy16(dst, valid ? src : We, valid);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          bool valid = k < K && n + j < N;
          expert_copy4(dst + 4 * j, valid ? src + j : We, valid);
        }
      }
    }
  }
}

__global__ void __launch_bounds__(256, 2) expert_product(const float* __restrict__ x, const float* __restrict__ W, float* __restrict__ out,
                                                         const int* __restrict__ rows, const int* __restrict__ meta, int* meet, float* part,
                                                         int M, int N, int K) {
  extern __shared__ float4 expert_shared[];
  __shared__ int listed[128];
  __shared__ int last;

  // Which tile, and which part of its k.
  const int E = meta[0];
  int tiles_m = 0;
  for (int i = 0; i < E; ++i) tiles_m += (meta[1 + i] + 127) >> 7;
  const int tiles_n = (N + 127) / 128;
  const int tiles = tiles_m * tiles_n;
  const int chunks = (K + 31) / 32;
  const int full = tiles / 264 * 264;
  const int rest = tiles - full;
  int pieces = 1, piece = 0, place = 0;
  int tile = blockIdx.x;
  if (tile >= full) {
    if (rest == 0) return;
    pieces = max(1, min(min(264 / rest, 8), chunks));
    place = tile - full;
    if (place >= rest * pieces) return;
    piece = place / rest;
    tile = full + place % rest;
  }
  const int n0 = (tile % tiles_n) * 128;
  int e = 0;
  int within = tile / tiles_n;
  for (;;) {
    int here = (meta[1 + e] + 127) >> 7;
    if (within < here) break;
    within -= here;
    ++e;
  }
  const int valid_rows = min(128, meta[1 + e] - within * 128);

  if (threadIdx.x < 128) {
    int r = -1;
    if ((int)threadIdx.x < valid_rows) r = rows[(size_t)e * M + within * 128 + threadIdx.x];
    listed[threadIdx.x] = r;
  }
  __syncthreads();

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int g = lane >> 2;
  const int q = lane & 3;
  const int wm = warp >> 2;
  const int wn = warp & 3;
  const bool busy = wm * 64 < valid_rows;
  const bool vectors = K % 4 == 0 && N % 4 == 0;
  const float* We = W + (size_t)e * K * N;
  const unsigned base = (unsigned)__cvta_generic_to_shared(expert_shared);
  const float* floats = reinterpret_cast<const float*>(expert_shared);

  const int first = (int)((long long)chunks * piece / pieces);
  const int end = (int)((long long)chunks * (piece + 1) / pieces);

  float acc[4][4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int k = 0; k < 4; ++k) acc[i][j][k] = 0.0f;
    }
  }

  if (first < end) expert_load(x, We, listed, base, first, n0, N, K, vectors);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  if (first + 1 < end) expert_load(x, We, listed, base + 35840, first + 1, n0, N, K, vectors);
  asm volatile("cp.async.commit_group;\n" ::: "memory");

  int stage = 0;
#pragma unroll 1
  for (int chunk = first; chunk < end; ++chunk) {
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    __syncthreads();
    if (chunk + 2 < end) {
      const int into = stage == 0 ? 2 : stage - 1;
      expert_load(x, We, listed, base + into * 35840, chunk + 2, n0, N, K, vectors);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    if (busy) {
      const float* pa = floats + stage * 8960 + (wm * 64 + g) * 36 + q;
      const float* pb = floats + stage * 8960 + 4608 + q * 136 + wn * 32 + g;
#pragma unroll 2
      for (int s = 0; s < 4; ++s) {
        unsigned bb[4][2], bs[4][2];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          expert_split(pb[s * 8 * 136 + j * 8], bb[j][0], bs[j][0]);
          expert_split(pb[(s * 8 + 4) * 136 + j * 8], bb[j][1], bs[j][1]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          unsigned ab[4], as[4];
          expert_split(pa[i * 16 * 36 + s * 8], ab[0], as[0]);
          expert_split(pa[(i * 16 + 8) * 36 + s * 8], ab[1], as[1]);
          expert_split(pa[i * 16 * 36 + s * 8 + 4], ab[2], as[2]);
          expert_split(pa[(i * 16 + 8) * 36 + s * 8 + 4], ab[3], as[3]);
          float c[4][4];
#pragma unroll
          for (int j = 0; j < 4; ++j) expert_mma(c[j], as, bb[j], 0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
          for (int j = 0; j < 4; ++j) expert_mma(c[j], ab, bs[j], c[j][0], c[j][1], c[j][2], c[j][3]);
#pragma unroll
          for (int j = 0; j < 4; ++j) expert_mma(c[j], ab, bb[j], c[j][0], c[j][1], c[j][2], c[j][3]);
#pragma unroll
          for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int k = 0; k < 4; ++k) acc[i][j][k] += c[j][k];
          }
        }
      }
    }
    stage = stage == 2 ? 0 : stage + 1;
  }

  if (pieces > 1) {
    // The block that comes last adds up all pieces of the tile.
    float4* mine = reinterpret_cast<float4*>(part) + (size_t)place * 4096 + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        mine[(i * 4 + j) * 256] = make_float4(acc[i][j][0], acc[i][j][1], acc[i][j][2], acc[i][j][3]);
      }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(meet + (tile - full), 1) == pieces - 1 ? 1 : 0;
    __syncthreads();
    if (!last) return;
    __threadfence();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) acc[i][j][k] = 0.0f;
      }
    }
#pragma unroll 1
    for (int p = 0; p < pieces; ++p) {
      const float4* theirs = reinterpret_cast<const float4*>(part) + (size_t)(p * rest + (tile - full)) * 4096 + threadIdx.x;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          float4 v = __ldcg(theirs + (i * 4 + j) * 256);
          acc[i][j][0] += v.x;
          acc[i][j][1] += v.y;
          acc[i][j][2] += v.z;
          acc[i][j][3] += v.w;
        }
      }
    }
  }

  if (!busy) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = listed[wm * 64 + i * 16 + h * 8 + g];
      if (r >= 0) {
        float* to = out + (size_t)r * N;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int n = n0 + wn * 32 + j * 8 + q * 2;
          if (N % 2 == 0) {
            if (n < N) *reinterpret_cast<float2*>(to + n) = make_float2(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);
          } else {
            if (n < N) to[n] = acc[i][j][h * 2];
            if (n + 1 < N) to[n + 1] = acc[i][j][h * 2 + 1];
          }
        }
      }
    }
  }
}
