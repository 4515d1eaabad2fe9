// Acceleration of each of N bodies (x, y, z, mass) by all of them; each pair of bodies from two
// different groups is evaluated once for both. Partial sums go to slots and are added in a fixed order.

//@ scratch partial: f32[ceil_div(N, 1024) * ceil_div(N, 1024) * 3072]
//@ launch attraction<<<ceil_div(ceil_div(N, 1024) * ceil_div(N, 1024) + ceil_div(N, 1024), 2), 128>>>(body, partial, softening, N)
//@ launch combine<<<ceil_div(N * 3, 128), 128>>>(partial, out, N)

constexpr int OWN = 8;                    // bodies each lane keeps in registers
constexpr int WARPS = 4;                  // warps of a block
constexpr int THREADS = WARPS * 32;
constexpr int GROUP = THREADS * OWN;      // bodies of a group: 1024
constexpr int TILES = GROUP / 32;         // tiles of 32 partners in a group
constexpr int QUARTER = TILES / WARPS;    // tiles a warp handles between two barriers

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
#pragma unroll 4
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
      // The sums travel against the lanes, so that each stays with its body.
      bx = __shfl_sync(0xffffffffu, bx, next);
      by = __shfl_sync(0xffffffffu, by, next);
      bz = __shfl_sync(0xffffffffu, bz, next);
    }
  }
}

__global__ void __launch_bounds__(128, 4)
attraction(const float* body, float* partial, float softening, int N) {
  __shared__ float4 rings[GROUP * 2];     // each tile of 32 partners twice in a row
  __shared__ float4 sums[GROUP];          // what the partners get from this block
  const float4* bodies = reinterpret_cast<const float4*>(body);
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int next = (lane + 1) & 31;

  // From the number of the block to its two groups, g <= h.
  const int groups = (N + GROUP - 1) / GROUP;
  int g = 0;
  int rest = blockIdx.x;
  while (rest >= groups - g) {
    rest -= groups - g;
    ++g;
  }
  const int h = g + rest;

  for (int e = tid; e < GROUP; e += THREADS) {
    const float4 b = load_body(bodies, h * GROUP + e, N);
    const int place = (e >> 5) * 64 + (e & 31);
    rings[place] = b;
    rings[place + 32] = b;
  }

  float x[OWN], y[OWN], z[OWN], m[OWN], ax[OWN], ay[OWN], az[OWN];
  const int first = g * GROUP + warp * (32 * OWN) + lane;
#pragma unroll
  for (int k = 0; k < OWN; ++k) {
    const float4 own = load_body(bodies, first + k * 32, N);
    x[k] = own.x;
    y[k] = own.y;
    z[k] = own.z;
    m[k] = own.w;
    ax[k] = 0.0f;
    ay[k] = 0.0f;
    az[k] = 0.0f;
  }
  __syncthreads();

  const long long stride = (long long)groups * GROUP * 3;

  if (g == h) {
    // A group with itself: every ordered pair, only the own side is summed.
    float bx = 0.0f, by = 0.0f, bz = 0.0f;
#pragma unroll 1
    for (int tile = 0; tile < TILES; ++tile) {
      meet<false>(rings + tile * 64 + lane, next, softening, x, y, z, m, ax, ay, az, bx, by, bz);
    }
  } else {
    // Between two barriers each warp has a quarter of the partners to itself.
#pragma unroll 1
    for (int phase = 0; phase < WARPS; ++phase) {
      const int begin = ((phase + warp) & (WARPS - 1)) * QUARTER;
#pragma unroll 1
      for (int tile = begin; tile < begin + QUARTER; ++tile) {
        float bx = 0.0f, by = 0.0f, bz = 0.0f;
        meet<true>(rings + tile * 64 + lane, next, softening, x, y, z, m, ax, ay, az, bx, by, bz);
        const int place = tile * 32 + lane;
        if (phase > 0) {
          const float4 before = sums[place];
          bx += before.x;
          by += before.y;
          bz += before.z;
        }
        sums[place] = make_float4(bx, by, bz, 0.0f);
      }
      __syncthreads();
    }

    float* target = partial + (long long)g * stride + (long long)h * GROUP * 3;
    for (int e = tid; e < GROUP; e += THREADS) {
      const float4 sum = sums[e];
      target[e * 3] = sum.x;
      target[e * 3 + 1] = sum.y;
      target[e * 3 + 2] = sum.z;
    }
  }

  float* target = partial + (long long)h * stride + (long long)first * 3;
#pragma unroll
  for (int k = 0; k < OWN; ++k) {
    target[k * 96] = ax[k];
    target[k * 96 + 1] = ay[k];
    target[k * 96 + 2] = az[k];
  }
}

__global__ void __launch_bounds__(128)
combine(const float* partial, float* out, int N) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= N * 3) return;
  const int groups = (N + GROUP - 1) / GROUP;
  const long long stride = (long long)groups * GROUP * 3;
  const float* source = partial + e;
  float sum = 0.0f;
#pragma unroll 16
  for (int s = 0; s < groups; ++s) sum += source[s * stride];
  out[e] = sum;
}
