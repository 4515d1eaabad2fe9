// Acceleration of each of N bodies (x, y, z, mass) by all of them, each pair of tiles of 256 bodies done once.

//@ launch attraction_zero<<<ceil_div(N * 3, 256), 256>>>(out, N)
//@ launch attraction<<<(ceil_div(N, 256), ceil_div(ceil_div(N, 256) + 1, 2), 1), 128>>>(body, out, softening, N)
__global__ void attraction_zero(float* out, int N) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < N * 3) out[t] = 0.0f;
}

__device__ __forceinline__ float attraction_rsqrt(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__global__ void __launch_bounds__(128, 5) attraction(const float* __restrict__ body, float* out, float softening, int N) {
  __shared__ float4 tile[8][64];    // each chunk of 32 bodies twice, so that a rotated read needs no wrap
  __shared__ float part[4][768];    // sums of the bodies i, one row for each warp
  __shared__ float other[768];      // sums of the bodies j

  const int blocks = gridDim.x;
  const int a = blockIdx.x;
  const int d = blockIdx.y;
  // With an even number of tiles the last distance meets each pair of tiles twice: keep one of them.
  if (2 * d == blocks && a >= d) return;
  int b = a + d;
  if (b >= blocks) b -= blocks;

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int ibase = a * 256;
  const int jbase = b * 256;
  const float4* body4 = reinterpret_cast<const float4*>(body);

  // Each warp brings the two chunks that it will use itself.
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    int chunk = warp + 4 * c;
    int j = jbase + chunk * 32 + lane;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (j < N) v = body4[j];
    tile[chunk][lane] = v;
    tile[chunk][lane + 32] = v;
  }

  float x[8], y[8], z[8], m[8];
  float ax[8], ay[8], az[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    int i = ibase + k * 32 + lane;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (i < N) v = body4[i];
    x[k] = v.x;
    y[k] = v.y;
    z[k] = v.z;
    m[k] = v.w;
    ax[k] = 0.0f;
    ay[k] = 0.0f;
    az[k] = 0.0f;
  }
  __syncwarp();

  const int from = (lane + 1) & 31;
#pragma unroll 1
  for (int c = 0; c < 2; ++c) {
    const int chunk = warp + 4 * c;
    const float4* p = &tile[chunk][lane];
    float jx = 0.0f, jy = 0.0f, jz = 0.0f;
#pragma unroll 2
    for (int s = 0; s < 32; ++s) {
      // This lane now meets body (lane + s) % 32 of the chunk, and holds its sums.
      const float4 q = p[s];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        float dx = q.x - x[k];
        float dy = q.y - y[k];
        float dz = q.z - z[k];
        float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening)));
        float r = attraction_rsqrt(square);
        float cube = r * r * r;
        float pull = q.w * cube;
        float back = m[k] * cube;
        ax[k] = fmaf(pull, dx, ax[k]);
        ay[k] = fmaf(pull, dy, ay[k]);
        az[k] = fmaf(pull, dz, az[k]);
        jx = fmaf(-back, dx, jx);
        jy = fmaf(-back, dy, jy);
        jz = fmaf(-back, dz, jz);
      }
      jx = __shfl_sync(0xffffffffu, jx, from);
      jy = __shfl_sync(0xffffffffu, jy, from);
      jz = __shfl_sync(0xffffffffu, jz, from);
    }
    // After 32 turns each lane holds the sums of its own body again.
    const int o = (chunk * 32 + lane) * 3;
    other[o] = jx;
    other[o + 1] = jy;
    other[o + 2] = jz;
  }

#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const int o = (k * 32 + lane) * 3;
    part[warp][o] = ax[k];
    part[warp][o + 1] = ay[k];
    part[warp][o + 2] = az[k];
  }
  __syncthreads();

  const int total = N * 3;
  for (int t = threadIdx.x; t < 768; t += 128) {
    float v = (part[0][t] + part[1][t]) + (part[2][t] + part[3][t]);
    int g = ibase * 3 + t;
    if (g < total) atomicAdd(out + g, v);
    if (d != 0) {
      int h = jbase * 3 + t;
      if (h < total) atomicAdd(out + h, other[t]);
    }
  }
}
