// Acceleration of each of N bodies (x, y, z, mass) by all of them; each pair is evaluated once for both bodies.

//@ launch clear_out<<<ceil_div(N * 3, 512), 512>>>(out, N)
//@ launch attraction<<<132, 512>>>(body, out, softening, N)

constexpr int OWN = 8;                // bodies each lane keeps in registers
constexpr int GROUP = 32 * OWN;       // bodies of a warp
constexpr int WARPS = 16;             // warps of a block

__global__ void clear_out(float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N * 3) out[i] = 0.0f;
}

__device__ __forceinline__ float inverse_root(float value) {
  float result;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

__device__ __forceinline__ float4 load_body(const float4* bodies, int i, int N) {
  // Bodies past the end: far away and without mass, they neither pull nor disturb.
  if (i < N) return __ldg(bodies + i);
  return make_float4(1e18f, 1e18f, 1e18f, 0.0f);
}

template <bool BOTH>
__device__ __forceinline__ void meet(const float4* ring, int next, float softening,
                                     const float (&x)[OWN], const float (&y)[OWN],
                                     const float (&z)[OWN], const float (&m)[OWN],
                                     float (&ax)[OWN], float (&ay)[OWN], float (&az)[OWN],
                                     float& bx, float& by, float& bz) {
#pragma unroll 2
  for (int s = 0; s < 32; ++s) {
    const float4 b = ring[s];
#pragma unroll
    for (int k = 0; k < OWN; ++k) {
      const float dx = b.x - x[k];
      const float dy = b.y - y[k];
      const float dz = b.z - z[k];
      const float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening)));
      const float inv = inverse_root(square);
      const float cube = inv * inv * inv;
      const float pull = b.w * cube;
      ax[k] = fmaf(pull, dx, ax[k]);
      ay[k] = fmaf(pull, dy, ay[k]);
      az[k] = fmaf(pull, dz, az[k]);
      if (BOTH) {
        const float back = m[k] * cube;
        bx = fmaf(-back, dx, bx);
        by = fmaf(-back, dy, by);
        bz = fmaf(-back, dz, bz);
      }
    }
    if (BOTH) {
      bx = __shfl_sync(0xffffffffu, bx, next);
      by = __shfl_sync(0xffffffffu, by, next);
      bz = __shfl_sync(0xffffffffu, bz, next);
    }
  }
}

__global__ void __launch_bounds__(512, 1)
attraction(const float* body, float* out, float softening, int N) {
  __shared__ float4 rings[WARPS][64];
  const float4* bodies = reinterpret_cast<const float4*>(body);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int next = (lane + 1) & 31;
  float4* ring = rings[warp];

  const int groups = (N + GROUP - 1) / GROUP;
  const int tiles = groups * OWN;     // tiles of 32 bodies, padded to whole groups
  const long long rows = (long long)groups * (groups + 1) / 2;
  const long long total = rows * OWN;
  const long long workers = (long long)gridDim.x * WARPS;
  // Warps that share a scheduler get neighbouring ranges, so that schedulers are balanced.
  const long long worker = (long long)blockIdx.x * WARPS + (warp & 3) * (WARPS / 4) + (warp >> 2);
  long long t = total * worker / workers;
  const long long end = total * (worker + 1) / workers;
  if (t >= end) return;

  // From the flat number of a tile to its row (group g) and its tile of partners.
  int g, tile;
  {
    const long long u = t / OWN;
    const long long v = rows - 1 - u;
    long long k = (long long)((sqrt(8.0 * (double)v + 1.0) - 1.0) * 0.5);
    while (k > 0 && k * (k + 1) / 2 > v) --k;
    while ((k + 1) * (k + 2) / 2 <= v) ++k;
    g = (int)(groups - 1 - k);
    const int h = (int)(groups - 1 - (v - k * (k + 1) / 2));
    tile = h * OWN + (int)(t - u * OWN);
  }

  while (t < end) {
    const long long left = end - t;
    const int count = left < (long long)(tiles - tile) ? (int)left : tiles - tile;
    const int last = tile + count;
    t += count;

    float x[OWN], y[OWN], z[OWN], m[OWN], ax[OWN], ay[OWN], az[OWN];
    float4 coming = load_body(bodies, tile * 32 + lane, N);
#pragma unroll
    for (int k = 0; k < OWN; ++k) {
      const float4 own = load_body(bodies, g * GROUP + k * 32 + lane, N);
      x[k] = own.x;
      y[k] = own.y;
      z[k] = own.z;
      m[k] = own.w;
      ax[k] = 0.0f;
      ay[k] = 0.0f;
      az[k] = 0.0f;
    }

    const int own_end = (g + 1) * OWN;
    for (; tile < last; ++tile) {
      __syncwarp();
      ring[lane] = coming;
      ring[lane + 32] = coming;
      __syncwarp();
      if (tile + 1 < last) coming = load_body(bodies, (tile + 1) * 32 + lane, N);

      float bx = 0.0f, by = 0.0f, bz = 0.0f;
      if (tile < own_end) {
        meet<false>(ring + lane, next, softening, x, y, z, m, ax, ay, az, bx, by, bz);
      } else {
        meet<true>(ring + lane, next, softening, x, y, z, m, ax, ay, az, bx, by, bz);
        const int j = tile * 32 + lane;
        if (j < N) {
          float* target = out + (long long)j * 3;
          atomicAdd(target, bx);
          atomicAdd(target + 1, by);
          atomicAdd(target + 2, bz);
        }
      }
    }

#pragma unroll
    for (int k = 0; k < OWN; ++k) {
      const int i = g * GROUP + k * 32 + lane;
      if (i < N) {
        float* target = out + (long long)i * 3;
        atomicAdd(target, ax[k]);
        atomicAdd(target + 1, ay[k]);
        atomicAdd(target + 2, az[k]);
      }
    }

    ++g;
    tile = g * OWN;
  }
}
