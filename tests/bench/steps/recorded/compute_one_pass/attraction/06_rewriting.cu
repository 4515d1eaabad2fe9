// Acceleration of each of N bodies (x, y, z, mass) by all of them. A block takes a pair of tiles
// of 1024 bodies, computes each distance once and uses it for both bodies; its sums go to slots
// of their own, which a second launch adds in a fixed order.

//@ scratch part: f32[ceil_div(N, 1024) * ceil_div(N, 1024) * 3072]
//@ launch attraction<<<ceil_div(N, 1024) * (ceil_div(N, 1024) + 1) / 2, 128, 47104>>>(body, part, softening, N)
//@ launch combine<<<ceil_div(N, 1024) * 12, 256>>>(part, out, N)

__device__ __forceinline__ float inverse_root(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__global__ void __launch_bounds__(128, 4)
attraction(const float* __restrict__ body, float* __restrict__ part, float softening, int N) {
  // 32 groups of 32 bodies, each group stored twice in a row: float4[32 * 64], 32 KiB;
  // behind it the sums of the bodies of tile b: float[3][1024], 12 KiB.
  // (The launch asks for 46 KiB, so that four blocks share an SM.)
  extern __shared__ float4 tile[];
  float* other = reinterpret_cast<float*>(tile + 2048);

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;

  // the pair of tiles: a and a + off (modulo their number)
  const int tiles = (N + 1023) / 1024;
  const int off = (int)blockIdx.x / tiles;
  const int a = (int)blockIdx.x - off * tiles;
  int b = a + off;
  if (b >= tiles) b -= tiles;

  const float4* bodies = reinterpret_cast<const float4*>(body);

#pragma unroll
  for (int r = 0; r < 8; ++r) {
    int local = r * 128 + tid;
    int j = b * 1024 + local;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (j < N) v = bodies[j];
    int to = (local >> 5) * 64 + (local & 31);
    tile[to] = v;
    tile[to + 32] = v;
  }

  // each warp has 256 bodies of tile a, each lane 8 of them
  float x[8], y[8], z[8], m[8], ax[8], ay[8], az[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    int i = a * 1024 + warp * 256 + k * 32 + lane;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (i < N) v = bodies[i];
    x[k] = v.x;
    y[k] = v.y;
    z[k] = v.z;
    m[k] = v.w;
    ax[k] = 0.0f;
    ay[k] = 0.0f;
    az[k] = 0.0f;
  }
  __syncthreads();

  const int source = (lane + 1) & 31;

  // In each phase of 8 groups the four warps work on different quarters of tile b; a barrier
  // ends the phase, so the sums of a body of b are added up by the warps in a fixed order.
#pragma unroll 1
  for (int it = 0; it < 32; ++it) {
    const int group = (it + warp * 8) & 31;
    const float4* from = tile + group * 64 + lane;
    float* sums = other + group * 32 + lane;
    float bx = 0.0f, by = 0.0f, bz = 0.0f;
    if (it >= 8) {
      bx = sums[0];
      by = sums[1024];
      bz = sums[2048];
    }
    float4 q = from[0];
#pragma unroll 2
    for (int s = 0; s < 32; ++s) {
      float4 following = from[s + 1];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        float dx = q.x - x[k];
        float dy = q.y - y[k];
        float dz = q.z - z[k];
        float square = fmaf(dx, dx, softening);
        square = fmaf(dy, dy, square);
        square = fmaf(dz, dz, square);
        float r = inverse_root(square);
        float r3 = (r * r) * r;
        float pull = q.w * r3;
        float back = m[k] * r3;
        ax[k] = fmaf(pull, dx, ax[k]);
        ay[k] = fmaf(pull, dy, ay[k]);
        az[k] = fmaf(pull, dz, az[k]);
        bx = fmaf(-back, dx, bx);
        by = fmaf(-back, dy, by);
        bz = fmaf(-back, dz, bz);
      }
      // the accumulators of the j bodies move on with them, and are home after 32 steps
      bx = __shfl_sync(0xffffffffu, bx, source);
      by = __shfl_sync(0xffffffffu, by, source);
      bz = __shfl_sync(0xffffffffu, bz, source);
      q = following;
    }
    sums[0] = bx;
    sums[1024] = by;
    sums[2048] = bz;
    if ((it & 7) == 7) __syncthreads();
  }

  // slot (u, t): what the bodies of tile u do to those of tile t, as float[3][1024]
  float* mine = part + ((size_t)b * tiles + a) * 3072 + warp * 256 + lane;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    mine[k * 32] = ax[k];
    mine[1024 + k * 32] = ay[k];
    mine[2048 + k * 32] = az[k];
  }
  if (off != 0) {
    float* theirs = part + ((size_t)a * tiles + b) * 3072;
#pragma unroll 8
    for (int r = 0; r < 24; ++r) {
      int c = r * 128 + tid;
      theirs[c] = other[c];
    }
  }
}

__global__ void __launch_bounds__(256)
combine(const float* __restrict__ part, float* __restrict__ out, int N) {
  const int tiles = (N + 1023) / 1024;
  const int t = (int)blockIdx.x / 12;
  const int c = ((int)blockIdx.x - t * 12) * 256 + (int)threadIdx.x;
  const int i = t * 1024 + (c & 1023);
  if (i < N) {
    const float* from = part + (size_t)t * 3072 + c;
    const size_t step = (size_t)tiles * 3072;
    float sum = 0.0f;
#pragma unroll 16
    for (int u = 0; u < tiles; ++u) {
      sum += from[u * step];
    }
    out[(size_t)i * 3 + (c >> 10)] = sum;
  }
}
