// Acceleration of each of N bodies (x, y, z, mass) by all of them.
// Each pair is evaluated once and serves both of its bodies; partial sums have fixed places
// in scratch and are added in a fixed order by a second launch.
#include <cuda_pipeline.h>

//@ scratch partial: f32[ceil_div(N, 256) + 1, 3, ceil_div(N, 256) * 256]
//@ launch attraction<<<132, 512>>>(body, partial, softening, N)
//@ launch gather<<<ceil_div(N, 32), 256>>>(partial, out, N)

#define PER_LANE 8
#define TILE 256
#define WARPS 16
#define BLOCKS 132

__device__ __forceinline__ float reciprocal_root(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

// Units (tile of 256 bodies against a group of 32) in the triangle of T * (T + 1) / 2 tile pairs.
__device__ __forceinline__ int count_units(int T) { return T * (T + 1) * 4; }

// Warps that work: each gets at least 8 units, so that row a has at most T - a + 1 parts.
__device__ __forceinline__ int count_workers(int units) { return min(BLOCKS * WARPS, units / 8); }

// First unit of the row of tile a (row r is followed by row T - 1 - r).
__device__ __forceinline__ int row_start(int a, int T) {
  return 8 * ((a < (T + 1) / 2) ? a * (T + 1) : (T - 1 - a) * (T + 1) + a + 1);
}

// The worker whose range [units * w / workers, units * (w + 1) / workers) holds unit u.
__device__ __forceinline__ int owner(int u, int workers, int units) {
  return (int)(((long long)(u + 1) * workers - 1) / units);
}

__device__ __forceinline__ void fetch_group(float4* buffer, const float4* body4, int lane, int j0, int N) {
  int j = j0 + lane;
  int from = min(j, N - 1);
  size_t fill = (j < N) ? 0 : 4;  // beyond the end: mass zero
  __pipeline_memcpy_async(buffer + lane, body4 + from, 16, fill);
  __pipeline_memcpy_async(buffer + lane + 32, body4 + from, 16, fill);
}

__device__ __forceinline__ void load_row(const float4* body4, int first, int N,
                                         float (&x)[PER_LANE], float (&y)[PER_LANE],
                                         float (&z)[PER_LANE], float (&m)[PER_LANE],
                                         float (&ax)[PER_LANE], float (&ay)[PER_LANE],
                                         float (&az)[PER_LANE]) {
#pragma unroll
  for (int k = 0; k < PER_LANE; ++k) {
    int i = first + k * 32;
    float4 v = __ldg(body4 + min(i, N - 1));
    x[k] = v.x;
    y[k] = v.y;
    z[k] = v.z;
    m[k] = (i < N) ? v.w : 0.0f;
    ax[k] = 0.0f;
    ay[k] = 0.0f;
    az[k] = 0.0f;
  }
}

__global__ void __launch_bounds__(512, 1)
attraction(const float* __restrict__ body, float* __restrict__ partial, float softening, int N) {
  __shared__ float4 tiles[WARPS][2][64];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const float4* body4 = reinterpret_cast<const float4*>(body);

  const int T = (N + TILE - 1) / TILE;
  const int NP = T * TILE;
  const int groups = T * 8;
  const int half = (T + 1) / 2;
  const int units = count_units(T);
  const int workers = count_workers(units);
  const int worker = blockIdx.x * WARPS + (warp & 3) * 4 + (warp >> 2);
  if (worker >= workers) return;
  int u = (int)((long long)units * worker / workers);
  const int end = (int)((long long)units * (worker + 1) / workers);
  if (u >= end) return;

  // Tile a of the i side and group jg of the j side.
  int a, jg;
  {
    int p = u >> 3;
    int r = p / (T + 1);
    int c = p - r * (T + 1);
    int b;
    if (c < T - r) {
      a = r;
      b = r + c;
    } else {
      a = T - 1 - r;
      b = a + c - (T - r);
    }
    jg = b * 8 + (u & 7);
  }
  // Which part of row a this worker has.
  int part = worker - owner(row_start(a, T), workers, units);

  fetch_group(tiles[warp][0], body4, lane, jg * 32, N);
  __pipeline_commit();

  float x[PER_LANE], y[PER_LANE], z[PER_LANE], m[PER_LANE];
  float ax[PER_LANE], ay[PER_LANE], az[PER_LANE];
  load_row(body4, a * TILE + lane, N, x, y, z, m, ax, ay, az);

  const int follower = (lane + 1) & 31;
  int buf = 0;

  for (; u < end; ++u) {
    int na = a;
    int njg = jg + 1;
    if (njg == groups) {
      na = (a < half) ? T - 1 - a : T - a;
      njg = na * 8;
    }
    const bool more = u + 1 < end;
    if (more) fetch_group(tiles[warp][buf ^ 1], body4, lane, njg * 32, N);
    __pipeline_commit();

    __pipeline_wait_prior(1);
    __syncwarp();

    const float4* t = &tiles[warp][buf][lane];
    float4 q = t[0];
    float bx = 0.0f, by = 0.0f, bz = 0.0f;
#pragma unroll 4
    for (int s = 0; s < 32; ++s) {
      float4 n = t[s + 1];
#pragma unroll
      for (int k = 0; k < PER_LANE; ++k) {
        float dx = q.x - x[k];
        float dy = q.y - y[k];
        float dz = q.z - z[k];
        float square = fmaf(dz, dz, fmaf(dy, dy, fmaf(dx, dx, softening)));
        float r = reciprocal_root(square);
        float cube = r * r * r;
        float pull = cube * q.w;
        float back = cube * m[k];
        ax[k] = fmaf(pull, dx, ax[k]);
        ay[k] = fmaf(pull, dy, ay[k]);
        az[k] = fmaf(pull, dz, az[k]);
        bx = fmaf(-back, dx, bx);
        by = fmaf(-back, dy, by);
        bz = fmaf(-back, dz, bz);
      }
      bx = __shfl_sync(0xffffffffu, bx, follower);
      by = __shfl_sync(0xffffffffu, by, follower);
      bz = __shfl_sync(0xffffffffu, bz, follower);
      q = n;
    }

    // Pairs within one tile are met from both sides already.
    if ((jg >> 3) != a) {
      float* to = partial + (size_t)a * 3 * NP + (jg * 32 + lane);
      to[0] = bx;
      to[NP] = by;
      to[2 * (size_t)NP] = bz;
    }

    // The row or the range ends: write the sums of the i side.
    if (na != a || !more) {
      float* to = partial + (size_t)(a + part) * 3 * NP + (a * TILE + lane);
#pragma unroll
      for (int k = 0; k < PER_LANE; ++k) {
        to[k * 32] = ax[k];
        to[(size_t)NP + k * 32] = ay[k];
        to[2 * (size_t)NP + k * 32] = az[k];
      }
      part = 0;
      if (more) load_row(body4, na * TILE + lane, N, x, y, z, m, ax, ay, az);
    }
    __syncwarp();
    buf ^= 1;
    a = na;
    jg = njg;
  }
}

// Adds the partial sums of 32 bodies in a fixed order.
__global__ void __launch_bounds__(256)
gather(const float* __restrict__ partial, float* __restrict__ out, int N) {
  __shared__ float sums[8][96];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int group = gridDim.x - 1 - blockIdx.x;  // those with most places first
  const int b = group >> 3;

  const int T = (N + TILE - 1) / TILE;
  const int NP = T * TILE;
  const int units = count_units(T);
  const int workers = count_workers(units);
  const int start = row_start(b, T);
  const int last = start + (T - b) * 8 - 1;
  // b places from the rows before, then the parts of the own row.
  const int count = b + owner(last, workers, units) - owner(start, workers, units) + 1;

  const size_t plane = (size_t)NP;
  const float* from = partial + (size_t)warp * 3 * plane + (group * 32 + lane);
  float vx = 0.0f, vy = 0.0f, vz = 0.0f;
#pragma unroll 4
  for (int s = warp; s < count; s += 8) {
    vx += from[0];
    vy += from[plane];
    vz += from[2 * plane];
    from += 24 * plane;
  }
  sums[warp][lane * 3] = vx;
  sums[warp][lane * 3 + 1] = vy;
  sums[warp][lane * 3 + 2] = vz;
  __syncthreads();

  const int e = threadIdx.x;
  if (e < 96) {
    float v = sums[0][e];
#pragma unroll
    for (int w = 1; w < 8; ++w) v += sums[w][e];
    int at = group * 96 + e;
    if (at < 3 * N) out[at] = v;
  }
}
