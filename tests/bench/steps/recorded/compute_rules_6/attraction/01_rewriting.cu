// Acceleration of each of N bodies (x, y, z, mass) by all of them.
// Tiles of 256 x 256 bodies, only those with column <= row; each pair acts on both of its bodies.

//@ launch clear_out<<<ceil_div(N * 3, 256), 256>>>(out, N)
//@ launch attraction<<<ceil_div(N, 256) * (ceil_div(N, 256) + 1) / 2, 128>>>(body, out, softening, N)

__global__ void clear_out(float* out, int N) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e < N * 3) out[e] = 0.0f;
}

__device__ __forceinline__ float fast_rsqrt(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

__global__ void __launch_bounds__(128, 4)
attraction(const float* __restrict__ body, float* __restrict__ out, float softening, int N) {
  constexpr int TILE = 256;
  constexpr int K = 8;

  __shared__ float4 sBody[4][2][64];
  __shared__ float sI[4][TILE * 3];
  __shared__ float sJ[TILE * 3];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;

  // which tile: row >= col
  const int b = (int)blockIdx.x;
  int row = (int)((sqrtf(8.0f * (float)b + 1.0f) - 1.0f) * 0.5f);
  while (row > 0 && row * (row + 1) / 2 > b) --row;
  while ((row + 1) * (row + 2) / 2 <= b) ++row;
  const int col = b - row * (row + 1) / 2;

  const float4* __restrict__ body4 = reinterpret_cast<const float4*>(body);

  // partner bodies of this warp: 64, in two groups of 32, each stored twice to rotate without wrap
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int j = row * TILE + warp * 64 + h * 32 + lane;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (j < N) v = __ldg(body4 + j);
    sBody[warp][h][lane] = v;
    sBody[warp][h][lane + 32] = v;
  }

  // own bodies: 8 for each lane
  float xi[K], yi[K], zi[K], mi[K];
  float ax[K], ay[K], az[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int i = col * TILE + k * 32 + lane;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (i < N) v = __ldg(body4 + i);
    xi[k] = v.x;
    yi[k] = v.y;
    zi[k] = v.z;
    mi[k] = v.w;
    ax[k] = 0.0f;
    ay[k] = 0.0f;
    az[k] = 0.0f;
  }
  __syncwarp();

  const int next = (lane + 1) & 31;

#pragma unroll 1
  for (int h = 0; h < 2; ++h) {
    const float4* p = &sBody[warp][h][lane];
    float jx = 0.0f, jy = 0.0f, jz = 0.0f;
#pragma unroll 4
    for (int s = 0; s < 32; ++s) {
      const float4 q = p[s];
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const float dx = q.x - xi[k];
        const float dy = q.y - yi[k];
        const float dz = q.z - zi[k];
        const float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening)));
        const float r = fast_rsqrt(square);
        const float r3 = (r * r) * r;
        const float pj = q.w * r3;
        const float pi = mi[k] * r3;
        ax[k] = fmaf(pj, dx, ax[k]);
        ay[k] = fmaf(pj, dy, ay[k]);
        az[k] = fmaf(pj, dz, az[k]);
        jx = fmaf(pi, dx, jx);
        jy = fmaf(pi, dy, jy);
        jz = fmaf(pi, dz, jz);
      }
      jx = __shfl_sync(0xffffffffu, jx, next);
      jy = __shfl_sync(0xffffffffu, jy, next);
      jz = __shfl_sync(0xffffffffu, jz, next);
    }
    const int at = (warp * 64 + h * 32 + lane) * 3;
    sJ[at] = -jx;
    sJ[at + 1] = -jy;
    sJ[at + 2] = -jz;
  }

#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int at = (k * 32 + lane) * 3;
    sI[warp][at] = ax[k];
    sI[warp][at + 1] = ay[k];
    sI[warp][at + 2] = az[k];
  }
  __syncthreads();

  const int total = N * 3;
#pragma unroll
  for (int e = (int)threadIdx.x; e < TILE * 3; e += 128) {
    const float sum = (sI[0][e] + sI[1][e]) + (sI[2][e] + sI[3][e]);
    const int g = col * (TILE * 3) + e;
    if (g < total) atomicAdd(out + g, sum);
  }
  if (row != col) {
#pragma unroll
    for (int e = (int)threadIdx.x; e < TILE * 3; e += 128) {
      const int g = row * (TILE * 3) + e;
      if (g < total) atomicAdd(out + g, sJ[e]);
    }
  }
}
