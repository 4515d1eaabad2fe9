// Each row times the matrix of the expert that it was given to: rows grouped by expert, tiles of 128 x 256 results.

//@ scratch order: i32[M]
//@ scratch meta: i32[E + 2]
//@ scratch partial: f32[132 * 32768]
//@ scratch flags: i32[132] zero
//@ launch group_rows<<<E, 1024>>>(expert, order, meta, M)
//@ launch expert_product<<<132, 256, 212992>>>(x, W, order, meta, partial, flags, out, M, N, K)

#define TM 128
#define TN 256
#define TK 32
#define A_PITCH 40
#define A_BYTES 20480
#define STAGE_BYTES 53248
#define STAGES 4

// order: the rows sorted by expert; meta: number of experts, then where each one's rows begin, then M.
__global__ void __launch_bounds__(1024) group_rows(const int* expert, int* order, int* meta, int M) {
  __shared__ int equal_in[32];
  __shared__ int less_in[32];
  const int e = blockIdx.x;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int per = ((M + 31) / 32 + 31) / 32 * 32;
  const int from = warp * per;
  const int to = min(M, from + per);
  int equal = 0, less = 0;
#pragma unroll 4
  for (int i = from; i < to; i += 32) {
    int v = (i + lane < to) ? __ldg(expert + i + lane) : 0x7fffffff;
    equal += __popc(__ballot_sync(0xffffffffu, v == e));
    less += __popc(__ballot_sync(0xffffffffu, v < e));
  }
  if (lane == 0) {
    equal_in[warp] = equal;
    less_in[warp] = less;
  }
  __syncthreads();
  int before = lane < warp ? equal_in[lane] : 0;
  int begin = less_in[lane];
#pragma unroll
  for (int s = 16; s > 0; s /= 2) {
    before += __shfl_xor_sync(0xffffffffu, before, s);
    begin += __shfl_xor_sync(0xffffffffu, begin, s);
  }
  int at = begin + before;
#pragma unroll 4
  for (int i = from; i < to; i += 32) {
    int v = (i + lane < to) ? __ldg(expert + i + lane) : 0x7fffffff;
    unsigned mine = __ballot_sync(0xffffffffu, v == e);
    if (v == e) order[at + __popc(mine & ((1u << lane) - 1u))] = i + lane;
    at += __popc(mine);
  }
  if (threadIdx.x == 0) {
    meta[1 + e] = begin;
    if (e == 0) meta[0] = gridDim.x;
    if (e == (int)gridDim.x - 1) meta[1 + gridDim.x] = M;
  }
}

__device__ __forceinline__ void copy16(unsigned to, const float* from, bool valid) {
  int size = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
}

__device__ __forceinline__ void copy4(unsigned to, const float* from, bool valid) {
  int size = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
}

__device__ __forceinline__ void split(float v, unsigned& high, unsigned& low) {
  high = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(v - __uint_as_float(high));
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Tile number to expert, first place in order, rows of the tile, first column.
__device__ __forceinline__ void decode(int tile, const int* meta, int across, int& e, int& first, int& rows,
                                       int& n0) {
  int count = 0;
  int begin = 0;
  e = 0;
  while (true) {
    begin = meta[1 + e];
    count = meta[2 + e] - begin;
    int tiles = (count + TM - 1) / TM * across;
    if (tile < tiles) break;
    tile -= tiles;
    ++e;
  }
  int down = tile / across;
  first = begin + down * TM;
  rows = min(TM, count - down * TM);
  n0 = (tile - down * across) * TN;
}

__global__ void __launch_bounds__(256, 1)
expert_product(const float* __restrict__ x, const float* __restrict__ W, const int* __restrict__ order,
               const int* __restrict__ meta, float* partial, int* flags, float* out, int M, int N, int K) {
  extern __shared__ float4 shared4[];
  const char* shared_bytes = reinterpret_cast<const char*>(shared4);
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared4);

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wm = warp >> 2;
  const int wn = warp & 3;
  const int g = lane >> 2;
  const int t = lane & 3;

  const int across = (N + TN - 1) / TN;
  const int slices = (K + TK - 1) / TK;
  int tiles = 0;
  {
    const int experts = meta[0];
    for (int e = 0; e < experts; ++e) tiles += (meta[2 + e] - meta[1 + e] + TM - 1) / TM * across;
  }
  const int workers = min((int)gridDim.x, tiles);
  const int self = blockIdx.x;
  if (self >= workers) return;
  const long long units = (long long)tiles * slices;
  const int u0 = (int)(units * self / workers);
  const int u1 = (int)(units * (self + 1) / workers);

  const bool whole_a = (K & 3) == 0;
  const bool whole_b = (N & 3) == 0;

  // The side that loads.
  int load_expert = 0, load_n0 = 0;
  int load_row[4];
  auto aim = [&](int tile) {
    int first, rows;
    decode(tile, meta, across, load_expert, first, rows, load_n0);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int r = (tid >> 3) + 32 * i;
      load_row[i] = r < rows ? order[first + r] : -1;
    }
  };
  auto bring = [&](int slice, int stage) {
    const int k0 = slice * TK;
    const unsigned a_at = shared_at + (unsigned)stage * STAGE_BYTES;
    const unsigned b_at = a_at + A_BYTES;
    {
      const int k = k0 + 4 * (tid & 7);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = load_row[i];
        const unsigned to = a_at + (unsigned)((tid >> 3) + 32 * i) * (A_PITCH * 4) + (unsigned)(tid & 7) * 16u;
        const float* from = x + (size_t)max(row, 0) * K + k;
        if (whole_a) {
          const bool valid = row >= 0 && k < K;
          copy16(to, valid ? from : x, valid);
        } else {
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            const bool valid = row >= 0 && k + q < K;
            copy4(to + 4 * q, valid ? from + q : x, valid);
          }
        }
      }
    }
    {
      const int n = load_n0 + 4 * (tid & 63);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int kr = (tid >> 6) + 4 * i;
        const int k = k0 + kr;
        const unsigned to = b_at + (unsigned)(kr * 64 + ((tid & 63) ^ (((kr >> 1) & 3) << 1))) * 16u;
        const float* from = W + ((size_t)load_expert * K + k) * N + n;
        if (whole_b) {
          const bool valid = k < K && n < N;
          copy16(to, valid ? from : W, valid);
        } else {
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            const bool valid = k < K && n + q < N;
            copy4(to + 4 * q, valid ? from + q : W, valid);
          }
        }
      }
    }
  };

  int tile = u0 / slices;
  int slice = u0 - tile * slices;
  int began = slice;

  int load_unit = u0;
  int load_tile = tile;
  int load_slice = slice;
  int load_stage = 0;
  aim(load_tile);
#pragma unroll 1
  for (int s = 0; s < STAGES - 1; ++s) {
    if (load_unit < u1) {
      if (load_slice == slices) {
        load_slice = 0;
        ++load_tile;
        aim(load_tile);
      }
      bring(load_slice, load_stage);
      ++load_slice;
      ++load_unit;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    ++load_stage;
  }

  int e, first, rows, n0;
  decode(tile, meta, across, e, first, rows, n0);

  float acc[4][8][4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int c = 0; c < 4; ++c) acc[i][j][c] = 0.0f;

  int stage = 0;
#pragma unroll 1
  for (int u = u0; u < u1; ++u) {
    asm volatile("cp.async.wait_group 2;" ::: "memory");
    __syncthreads();
    if (load_unit < u1) {
      if (load_slice == slices) {
        load_slice = 0;
        ++load_tile;
        aim(load_tile);
      }
      bring(load_slice, load_stage);
      ++load_slice;
      ++load_unit;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    load_stage = load_stage == STAGES - 1 ? 0 : load_stage + 1;

    const bool active = wm * 64 < rows;
    if (active) {
      const float* as = reinterpret_cast<const float*>(shared_bytes + stage * STAGE_BYTES) +
                        (wm * 64 + g) * A_PITCH + 2 * t;
      const float4* bs = reinterpret_cast<const float4*>(shared_bytes + stage * STAGE_BYTES + A_BYTES) +
                         2 * t * 64 + wn * 16 + (g ^ (2 * t));
#pragma unroll 2
      for (int ks = 0; ks < 4; ++ks) {
        unsigned ah[4][4], al[4][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 p = *reinterpret_cast<const float2*>(as + ks * 8 + i * 16 * A_PITCH);
          const float2 q = *reinterpret_cast<const float2*>(as + ks * 8 + (i * 16 + 8) * A_PITCH);
          split(p.x, ah[i][0], al[i][0]);
          split(q.x, ah[i][1], al[i][1]);
          split(p.y, ah[i][2], al[i][2]);
          split(q.y, ah[i][3], al[i][3]);
        }
#pragma unroll
        for (int jj = 0; jj < 2; ++jj) {
          const float4 v0 = bs[ks * 8 * 64 + jj * 8];
          const float4 v1 = bs[(ks * 8 + 1) * 64 + jj * 8];
          unsigned bh[4][2], bl[4][2];
          split(v0.x, bh[0][0], bl[0][0]);
          split(v0.y, bh[1][0], bl[1][0]);
          split(v0.z, bh[2][0], bl[2][0]);
          split(v0.w, bh[3][0], bl[3][0]);
          split(v1.x, bh[0][1], bl[0][1]);
          split(v1.y, bh[1][1], bl[1][1]);
          split(v1.z, bh[2][1], bl[2][1]);
          split(v1.w, bh[3][1], bl[3][1]);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float sum[4][4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
              for (int c = 0; c < 4; ++c) sum[j][c] = 0.0f;
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply(sum[j], al[i], bh[j][0], bh[j][1]);
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply(sum[j], ah[i], bl[j][0], bl[j][1]);
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply(sum[j], ah[i], bh[j][0], bh[j][1]);
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
              for (int c = 0; c < 4; ++c) acc[i][jj * 4 + j][c] += sum[j][c];
          }
        }
      }
    }
    stage = stage == STAGES - 1 ? 0 : stage + 1;

    ++slice;
    if (slice == slices || u + 1 == u1) {
      if (began > 0) {
        // Another block began this tile and completes it.
        if (active) {
          float4* to = reinterpret_cast<float4*>(partial + (size_t)self * 32768);
#pragma unroll
          for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 8; ++j)
              __stcg(to + (i * 8 + j) * 256 + tid,
                     make_float4(acc[i][j][0], acc[i][j][1], acc[i][j][2], acc[i][j][3]));
        }
        __threadfence();
        __syncthreads();
        if (tid == 0) atomicExch(flags + self, 1);
      } else {
        if (slice < slices) {
          if (tid == 0) {
            volatile int* flag = flags + self + 1;
            while (*flag == 0) {
            }
            __threadfence();
          }
          __syncthreads();
          if (active) {
            const float4* from = reinterpret_cast<const float4*>(partial + (size_t)(self + 1) * 32768);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
              for (int j = 0; j < 8; ++j) {
                const float4 v = __ldcg(from + (i * 8 + j) * 256 + tid);
                acc[i][j][0] += v.x;
                acc[i][j][1] += v.y;
                acc[i][j][2] += v.z;
                acc[i][j][3] += v.w;
              }
          }
        }
        if (active) {
          float check = 0.0f;
#pragma unroll
          for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const int local = wm * 64 + i * 16 + h * 8 + g;
              if (local < rows) {
                float* to = out + (size_t)order[first + local] * N;
#pragma unroll
                for (int jj = 0; jj < 2; ++jj)
#pragma unroll
                  for (int c = 0; c < 2; ++c) {
                    const int n = n0 + wn * 64 + jj * 32 + 8 * t + 4 * c;
                    const float v0 = acc[i][jj * 4 + 0][h * 2 + c];
                    const float v1 = acc[i][jj * 4 + 1][h * 2 + c];
                    const float v2 = acc[i][jj * 4 + 2][h * 2 + c];
                    const float v3 = acc[i][jj * 4 + 3][h * 2 + c];
                    check = fmaf(v0, 0.0f, check);
                    check = fmaf(v1, 0.0f, check);
                    check = fmaf(v2, 0.0f, check);
                    check = fmaf(v3, 0.0f, check);
                    if (whole_b) {
                      if (n < N) *reinterpret_cast<float4*>(to + n) = make_float4(v0, v1, v2, v3);
                    } else {
                      if (n < N) to[n] = v0;
                      if (n + 1 < N) to[n + 1] = v1;
                      if (n + 2 < N) to[n + 2] = v2;
                      if (n + 3 < N) to[n + 3] = v3;
                    }
                  }
              }
            }
          if (!(check == 0.0f)) {
            // Infinite or undefined results: what plain floats give.
#pragma unroll 1
            for (int p = 0; p < 8; ++p) {
              const int local = wm * 64 + p * 8 + g;
              if (local >= rows) continue;
              const int row = order[first + local];
#pragma unroll 1
              for (int c = 0; c < 16; ++c) {
                const int n = n0 + wn * 64 + (c >> 3) * 32 + 8 * t + (c & 7);
                if (n >= N) continue;
                const float had = out[(size_t)row * N + n];
                if (had * 0.0f == 0.0f) continue;
                float sum = 0.0f;
#pragma unroll 1
                for (int k = 0; k < K; ++k)
                  sum = fmaf(x[(size_t)row * K + k], W[((size_t)e * K + k) * N + n], sum);
                out[(size_t)row * N + n] = sum;
              }
            }
          }
        }
      }
      began = 0;
      slice = 0;
      ++tile;
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int c = 0; c < 4; ++c) acc[i][j][c] = 0.0f;
      if (u + 1 < u1) decode(tile, meta, across, e, first, rows, n0);
    }
  }
}
