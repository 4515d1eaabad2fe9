// Acceleration of each of N bodies (x, y, z, mass) by all of them.
// Tiles of 1024 x 1024 bodies, only those with column <= row; each pair acts on both of its bodies.
// part[s] holds what tile s of the bodies does to each body; every element has one writer.

//@ scratch part: f32[ceil_div(N, 1024), N, 3]
//@ launch attraction<<<ceil_div(N, 1024) * (ceil_div(N, 1024) + 1) / 2, 128>>>(body, part, softening, N)
//@ launch gather<<<ceil_div(N * 3, 256), 256>>>(part, out, N)

__device__ __forceinline__ float fast_rsqrt(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

__global__ void __launch_bounds__(128, 4)
attraction(const float* __restrict__ body, float* __restrict__ part, float softening, int N) {
  constexpr int TILE = 1024;
  constexpr int K = 8;
  constexpr int GROUPS = TILE / 32;
  constexpr int STRIDE = 68;  // 64 used; the rest keeps it at four blocks on each unit

  __shared__ float4 sBody[GROUPS * STRIDE];
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

  // partner bodies, in groups of 32, each stored twice to rotate without wrap
  for (int t = (int)threadIdx.x; t < TILE; t += 128) {
    const int j = row * TILE + t;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (j < N) v = __ldg(body4 + j);
    const int at = (t >> 5) * STRIDE + (t & 31);
    sBody[at] = v;
    sBody[at + 32] = v;
  }

  // own bodies: 8 for each lane, 256 for each warp
  const int first = col * TILE + warp * 256 + lane;
  float xi[K], yi[K], zi[K], mi[K];
  float ax[K], ay[K], az[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int i = first + k * 32;
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
  __syncthreads();

  const int next = (lane + 1) & 31;

  // in each phase the four warps work on different quarters of the partners
#pragma unroll 1
  for (int phase = 0; phase < 4; ++phase) {
    const int quarter = (warp + phase) & 3;
#pragma unroll 1
    for (int h = 0; h < GROUPS / 4; ++h) {
      const int group = quarter * (GROUPS / 4) + h;
      const float4* p = &sBody[group * STRIDE + lane];
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
      const int at = (group * 32 + lane) * 3;
      if (phase == 0) {
        sJ[at] = -jx;
        sJ[at + 1] = -jy;
        sJ[at + 2] = -jz;
      } else {
        sJ[at] -= jx;
        sJ[at + 1] -= jy;
        sJ[at + 2] -= jz;
      }
    }
    __syncthreads();
  }

  const int total = N * 3;

  // what tile row does to the bodies of tile col
  float* __restrict__ own = part + (size_t)row * (size_t)total;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int i = first + k * 32;
    if (i < N) {
      own[i * 3] = ax[k];
      own[i * 3 + 1] = ay[k];
      own[i * 3 + 2] = az[k];
    }
  }

  // what tile col does to the bodies of tile row
  if (row != col) {
    float* __restrict__ partner = part + (size_t)col * (size_t)total;
    for (int e = (int)threadIdx.x; e < TILE * 3; e += 128) {
      const int g = row * (TILE * 3) + e;
      if (g < total) partner[g] = sJ[e];
    }
  }
}

__global__ void __launch_bounds__(256)
gather(const float* __restrict__ part, float* __restrict__ out, int N) {
  const int total = N * 3;
  const int e = blockIdx.x * 256 + threadIdx.x;
  if (e >= total) return;
  const int tiles = (N + 1023) / 1024;
  const float* p = part + e;
  float sum = 0.0f;
#pragma unroll 16
  for (int t = 0; t < tiles; ++t) sum += p[(size_t)t * (size_t)total];
  out[e] = sum;
}
