// Acceleration of each of N bodies (x, y, z, mass) by all of them.
// Each pair is evaluated once and serves both of its bodies.
#include <cuda_pipeline.h>

//@ launch clear_out<<<ceil_div(N * 3, 256), 256>>>(out, N)
//@ launch attraction<<<132, 512>>>(body, out, softening, N)

#define PER_LANE 8
#define TILE 256
#define WARPS 16

__global__ void clear_out(float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 3 * N) out[i] = 0.0f;
}

__device__ __forceinline__ float reciprocal_root(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

// Unit u of the triangle of tile pairs: tile a of the i side, first body j0 of the j side.
__device__ __forceinline__ void decode(int u, int T, int& a, int& j0) {
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
  j0 = b * TILE + (u & 7) * 32;
}

// Adds the sums of 32 neighbouring bodies, one for each lane, to out.
__device__ __forceinline__ void add_out(float* out, float* turn, int lane, int first, int N,
                                        float vx, float vy, float vz) {
  turn[lane * 3] = vx;
  turn[lane * 3 + 1] = vy;
  turn[lane * 3 + 2] = vz;
  __syncwarp();
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    int e = lane + 32 * c;
    int at = first * 3 + e;
    if (at < 3 * N) atomicAdd(out + at, turn[e]);
  }
  __syncwarp();
}

__device__ __forceinline__ void fetch_group(float4* buffer, const float4* body4, int lane, int j0, int N) {
  int j = j0 + lane;
  int from = min(j, N - 1);
  size_t fill = (j < N) ? 0 : 4;  // beyond the end: mass zero
  __pipeline_memcpy_async(buffer + lane, body4 + from, 16, fill);
  __pipeline_memcpy_async(buffer + lane + 32, body4 + from, 16, fill);
}

__global__ void __launch_bounds__(512, 1)
attraction(const float* __restrict__ body, float* out, float softening, int N) {
  __shared__ float4 tiles[WARPS][2][64];
  __shared__ float turns[WARPS][96];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const float4* body4 = reinterpret_cast<const float4*>(body);
  float* turn = turns[warp];

  const int T = (N + TILE - 1) / TILE;
  const int units = T * (T + 1) * 4;
  const int workers = gridDim.x * WARPS;
  const int worker = blockIdx.x * WARPS + (warp & 3) * 4 + (warp >> 2);
  int u = (int)((long long)units * worker / workers);
  const int end = (int)((long long)units * (worker + 1) / workers);
  if (u >= end) return;

  float x[PER_LANE], y[PER_LANE], z[PER_LANE], m[PER_LANE];
  float ax[PER_LANE], ay[PER_LANE], az[PER_LANE];
#pragma unroll
  for (int k = 0; k < PER_LANE; ++k) {
    x[k] = y[k] = z[k] = m[k] = 0.0f;
    ax[k] = ay[k] = az[k] = 0.0f;
  }

  const int follower = (lane + 1) & 31;
  int row = -1;
  int buf = 0;

  {
    int a, j0;
    decode(u, T, a, j0);
    fetch_group(tiles[warp][0], body4, lane, j0, N);
    __pipeline_commit();
  }

  for (; u < end; ++u) {
    if (u + 1 < end) {
      int na, nj0;
      decode(u + 1, T, na, nj0);
      fetch_group(tiles[warp][buf ^ 1], body4, lane, nj0, N);
    }
    __pipeline_commit();

    int a, j0;
    decode(u, T, a, j0);
    if (a != row) {
      if (row >= 0) {
#pragma unroll
        for (int k = 0; k < PER_LANE; ++k)
          add_out(out, turn, lane, row * TILE + k * 32, N, ax[k], ay[k], az[k]);
      }
      row = a;
#pragma unroll
      for (int k = 0; k < PER_LANE; ++k) {
        int i = row * TILE + k * 32 + lane;
        float4 v = __ldg(body4 + min(i, N - 1));
        x[k] = v.x;
        y[k] = v.y;
        z[k] = v.z;
        m[k] = (i < N) ? v.w : 0.0f;
        ax[k] = ay[k] = az[k] = 0.0f;
      }
    }

    __pipeline_wait_prior(1);
    __syncwarp();

    const float4* t = &tiles[warp][buf][lane];
    float4 q = t[0];
    float bx = 0.0f, by = 0.0f, bz = 0.0f;
#pragma unroll 2
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
    if (j0 / TILE != a) add_out(out, turn, lane, j0, N, bx, by, bz);
    __syncwarp();
    buf ^= 1;
  }

#pragma unroll
  for (int k = 0; k < PER_LANE; ++k)
    add_out(out, turn, lane, row * TILE + k * 32, N, ax[k], ay[k], az[k]);
}
