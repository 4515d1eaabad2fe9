// Acceleration of each of N bodies (x, y, z, mass) by all of them; each pair of bodies is evaluated once.

//@ launch clear_out<<<ceil_div(3 * N, 256), 256>>>(out, N)
//@ launch attraction<<<132, 512>>>(body, out, softening, N)
__global__ void clear_out(float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 3 * N) out[i] = 0.0f;
}

__device__ __forceinline__ float fast_rsqrt(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__global__ void __launch_bounds__(512, 1) attraction(const float* __restrict__ body, float* out, float softening, int N) {
  constexpr int K = 8;            // bodies of a lane
  constexpr int TILE = 32 * K;    // bodies of a warp
  __shared__ float4 stage[16][64];

  const float4* __restrict__ bodies = reinterpret_cast<const float4*>(body);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int next_lane = (lane + 1) & 31;

  // Tiles (row, row + off mod nb): off 0 .. (nb - 1) / 2 for every row, and
  // off nb / 2 for the first half of the rows where nb is even.
  const int nb = (N + TILE - 1) / TILE;
  const int per_row = ((nb + 1) / 2) * K;           // units (32 partners each) of a row
  const int regular = nb * per_row;
  const int extra = (nb % 2 == 0) ? (nb / 2) * K : 0;
  const int units = regular + extra;

  const int warps = gridDim.x * 16;
  const int me = blockIdx.x * 16 + warp;
  const int first = (int)((long long)units * me / warps);
  const int last = (int)((long long)units * (me + 1) / warps);
  if (first >= last) return;

  float px[K], py[K], pz[K], pm[K];
  float ax[K], ay[K], az[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    px[k] = py[k] = pz[k] = pm[k] = 0.0f;
    ax[k] = ay[k] = az[k] = 0.0f;
  }

  int row = -1;
  bool halved = false;

  for (int u = first; u < last; ++u) {
    int r, off, g;
    if (u < regular) {
      r = u / per_row;
      const int rest = u - r * per_row;
      off = rest / K;
      g = rest % K;
    } else {
      const int v = u - regular;
      r = v / K;
      off = nb / 2;
      g = v % K;
    }

    if (r != row) {
      if (row >= 0) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
          const int i = row * TILE + k * 32 + lane;
          if (i < N) {
            atomicAdd(out + (long long)i * 3, ax[k]);
            atomicAdd(out + (long long)i * 3 + 1, ay[k]);
            atomicAdd(out + (long long)i * 3 + 2, az[k]);
          }
        }
      }
      row = r;
      halved = false;
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const int i = row * TILE + k * 32 + lane;
        float4 p = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i < N) p = bodies[i];
        px[k] = p.x;
        py[k] = p.y;
        pz[k] = p.z;
        pm[k] = p.w;
        ax[k] = 0.0f;
        ay[k] = 0.0f;
        az[k] = 0.0f;
      }
    }

    // A tile with itself meets each pair twice: half the masses.
    const bool self = off == 0;
    if (self != halved) {
      const float factor = self ? 0.5f : 2.0f;
#pragma unroll
      for (int k = 0; k < K; ++k) pm[k] *= factor;
      halved = self;
    }

    int column = row + off;
    if (column >= nb) column -= nb;
    const int j_base = column * TILE + g * 32;
    if (j_base >= N) continue;
    const int j = j_base + lane;

    float4 other = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (j < N) other = bodies[j];
    if (self) other.w *= 0.5f;
    __syncwarp();
    stage[warp][lane] = other;
    stage[warp][lane + 32] = other;
    __syncwarp();

    const float4* mine = &stage[warp][lane];
    float bx = 0.0f, by = 0.0f, bz = 0.0f;
#pragma unroll 2
    for (int s = 0; s < 32; ++s) {
      const float4 q = mine[s];
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const float dx = q.x - px[k];
        const float dy = q.y - py[k];
        const float dz = q.z - pz[k];
        const float square = fmaf(dz, dz, fmaf(dy, dy, fmaf(dx, dx, softening)));
        const float inv = fast_rsqrt(square);
        const float inv3 = inv * inv * inv;
        const float to_me = q.w * inv3;
        const float to_other = pm[k] * inv3;
        ax[k] = fmaf(to_me, dx, ax[k]);
        ay[k] = fmaf(to_me, dy, ay[k]);
        az[k] = fmaf(to_me, dz, az[k]);
        bx = fmaf(-to_other, dx, bx);
        by = fmaf(-to_other, dy, by);
        bz = fmaf(-to_other, dz, bz);
      }
      bx = __shfl_sync(0xffffffffu, bx, next_lane);
      by = __shfl_sync(0xffffffffu, by, next_lane);
      bz = __shfl_sync(0xffffffffu, bz, next_lane);
    }

    if (j < N) {
      atomicAdd(out + (long long)j * 3, bx);
      atomicAdd(out + (long long)j * 3 + 1, by);
      atomicAdd(out + (long long)j * 3 + 2, bz);
    }
  }

  if (row >= 0) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const int i = row * TILE + k * 32 + lane;
      if (i < N) {
        atomicAdd(out + (long long)i * 3, ax[k]);
        atomicAdd(out + (long long)i * 3 + 1, ay[k]);
        atomicAdd(out + (long long)i * 3 + 2, az[k]);
      }
    }
  }
}
