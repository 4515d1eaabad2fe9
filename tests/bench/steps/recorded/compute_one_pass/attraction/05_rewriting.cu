// Acceleration of each of N bodies (x, y, z, mass) by all of them. A block takes a pair of tiles
// of 256 bodies, computes each distance once and uses it for both bodies.

//@ launch clear_out<<<ceil_div(N * 3, 256), 256>>>(out, N)
//@ launch attraction<<<ceil_div(N, 256) * (ceil_div(N, 256) + 1) / 2, 128>>>(body, out, softening, N)

__global__ void clear_out(float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N * 3) out[i] = 0.0f;
}

__device__ __forceinline__ float inverse_root(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__global__ void __launch_bounds__(128, 4)
attraction(const float* __restrict__ body, float* __restrict__ out, float softening, int N) {
  __shared__ float4 tile[256];
  __shared__ float part[4][768];
  __shared__ float other[768];

  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;

  // the pair of tiles: a and a + off (modulo their number)
  const int tiles = (N + 255) / 256;
  const int off = (int)blockIdx.x / tiles;
  const int a = (int)blockIdx.x - off * tiles;
  int b = a + off;
  if (b >= tiles) b -= tiles;

  const float4* bodies = reinterpret_cast<const float4*>(body);

  // each warp brings the 64 bodies of tile b that it works on
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    int local = warp * 64 + r * 32 + lane;
    int j = b * 256 + local;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (j < N) v = bodies[j];
    tile[local] = v;
  }

  float x[8], y[8], z[8], m[8], ax[8], ay[8], az[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    int i = a * 256 + k * 32 + lane;
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
  __syncwarp();

  const int source = (lane + 1) & 31;
#pragma unroll 1
  for (int g = 0; g < 2; ++g) {
    const float4* group = tile + warp * 64 + g * 32;
    float bx = 0.0f, by = 0.0f, bz = 0.0f;
    float4 q = group[lane];
#pragma unroll 2
    for (int s = 0; s < 32; ++s) {
      float4 following = group[(lane + s + 1) & 31];
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
    int local = warp * 64 + g * 32 + lane;
    other[local * 3] = bx;
    other[local * 3 + 1] = by;
    other[local * 3 + 2] = bz;
  }

#pragma unroll
  for (int k = 0; k < 8; ++k) {
    int local = k * 32 + lane;
    part[warp][local * 3] = ax[k];
    part[warp][local * 3 + 1] = ay[k];
    part[warp][local * 3 + 2] = az[k];
  }
  __syncthreads();

#pragma unroll
  for (int r = 0; r < 6; ++r) {
    int c = r * 128 + tid;
    int to = a * 768 + c;
    if (to < N * 3) {
      float sum = (part[0][c] + part[1][c]) + (part[2][c] + part[3][c]);
      atomicAdd(out + to, sum);
    }
  }
  if (off != 0) {
#pragma unroll
    for (int r = 0; r < 6; ++r) {
      int c = r * 128 + tid;
      int to = b * 768 + c;
      if (to < N * 3) atomicAdd(out + to, other[c]);
    }
  }
}
