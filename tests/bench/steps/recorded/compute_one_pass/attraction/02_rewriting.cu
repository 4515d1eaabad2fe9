// Acceleration of each of N bodies (x, y, z, mass) by all of them, each pair of tiles of 256 bodies done once.
// Partial sums go to places of their own and are added in a fixed order by a second launch.

//@ scratch side_i: f32[660 + ceil_div(N, 256), 768]
//@ scratch side_j: f32[ceil_div(ceil_div(N, 256) + 1, 2), ceil_div(N, 256), 768]
//@ launch attraction<<<660, 128>>>(body, side_i, side_j, softening, N)
//@ launch attraction_sum<<<(8, ceil_div(N, 256), 1), 192>>>(side_i, side_j, out, N)

// A tile has 8 chunks of 32 bodies; its 768 sums lie as [chunk][component][body of the chunk].
// Row a holds the pairs of tiles (a, a + d) for d = 0, 1, ...; each pair is two units of 128 bodies j.
// With an even number of tiles only the first half of the rows has the last distance.

__device__ __forceinline__ float attraction_rsqrt(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__global__ void __launch_bounds__(128, 5) attraction(const float* __restrict__ body, float* __restrict__ side_i,
                                                     float* __restrict__ side_j, float softening, int N) {
  __shared__ float4 tile[4][64];    // each warp's chunk of 32 bodies twice, so that a rotated read needs no wrap
  __shared__ float part[4][768];    // sums of the bodies i, one row for each warp

  const int tiles = (N + 255) / 256;
  const int half = tiles / 2;
  const int longer = (tiles & 1) ? tiles : half;    // so many rows have half + 1 pairs, the others half
  const long long units = (long long)tiles * (tiles + 1);
  const int workers = units < 660 ? (int)units : 660;
  const int worker = blockIdx.x;
  if (worker >= workers) return;

  int u = (int)((long long)worker * units / workers);
  const int end = (int)((long long)(worker + 1) * units / workers);

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const float4* __restrict__ body4 = reinterpret_cast<const float4*>(body);

  int a;
  {
    const int v = u >> 1;
    const int split = longer * (half + 1);
    if (v < split) {
      a = v / (half + 1);
    } else {
      a = longer + (v - split) / half;
    }
  }

  const int from = (lane + 1) & 31;
  const float4* p = &tile[warp][lane];

  while (u < end) {
    float x[8], y[8], z[8], m[8];
    float ax[8], ay[8], az[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int i = a * 256 + k * 32 + lane;
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

    const int row = a * half + (a < longer ? a : longer);
    const int next = (a + 1) * half + (a + 1 < longer ? a + 1 : longer);
    const int stop = end < 2 * next ? end : 2 * next;

#pragma unroll 1
    for (; u < stop; ++u) {
      const int d = (u >> 1) - row;
      int b = a + d;
      if (b >= tiles) b -= tiles;
      const int chunk = (u & 1) * 4 + warp;

      {
        const int j = b * 256 + chunk * 32 + lane;
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (j < N) v = body4[j];
        __syncwarp();
        tile[warp][lane] = v;
        tile[warp][lane + 32] = v;
        __syncwarp();
      }

      float jx = 0.0f, jy = 0.0f, jz = 0.0f;
#pragma unroll 2
      for (int s = 0; s < 32; ++s) {
        // This lane now meets body (lane + s) % 32 of the chunk, and holds its sums.
        const float4 q = p[s];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          const float dx = q.x - x[k];
          const float dy = q.y - y[k];
          const float dz = q.z - z[k];
          const float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening)));
          const float r = attraction_rsqrt(square);
          const float cube = r * r * r;
          const float pull = q.w * cube;
          const float back = m[k] * cube;
          ax[k] = fmaf(pull, dx, ax[k]);
          ay[k] = fmaf(pull, dy, ay[k]);
          az[k] = fmaf(pull, dz, az[k]);
          jx = fmaf(back, dx, jx);
          jy = fmaf(back, dy, jy);
          jz = fmaf(back, dz, jz);
        }
        jx = __shfl_sync(0xffffffffu, jx, from);
        jy = __shfl_sync(0xffffffffu, jy, from);
        jz = __shfl_sync(0xffffffffu, jz, from);
      }

      // After 32 turns each lane holds the sums of its own body again.
      if (d != 0) {
        float* o = side_j + ((size_t)d * tiles + b) * 768 + chunk * 96 + lane;
        o[0] = -jx;
        o[32] = -jy;
        o[64] = -jz;
      }
    }

    // The end of this block's part of the row: add the warps' sums and write them once.
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      part[warp][k * 96 + lane] = ax[k];
      part[warp][k * 96 + 32 + lane] = ay[k];
      part[warp][k * 96 + 64 + lane] = az[k];
    }
    __syncthreads();
    {
      // Going on to another row or to another block raises worker + a, so each part has a place of its own.
      float* o = side_i + (size_t)(worker + a) * 768;
      for (int t = threadIdx.x; t < 768; t += 128) {
        o[t] = (part[0][t] + part[1][t]) + (part[2][t] + part[3][t]);
      }
    }
    __syncthreads();
    ++a;
  }
}

__global__ void __launch_bounds__(192) attraction_sum(const float* __restrict__ side_i, const float* __restrict__ side_j,
                                                      float* __restrict__ out, int N) {
  __shared__ float4 sums[8][24];

  const int tiles = (N + 255) / 256;
  const int half = tiles / 2;
  const int longer = (tiles & 1) ? tiles : half;
  const long long units = (long long)tiles * (tiles + 1);
  const int workers = units < 660 ? (int)units : 660;

  const int chunk = blockIdx.x;
  const int t = blockIdx.y;
  const int q = threadIdx.x % 24;
  const int g = threadIdx.x / 24;

  // The first and the last block that worked on row t.
  const long long first_unit = 2 * ((long long)t * half + (t < longer ? t : longer));
  const long long end_unit = 2 * ((long long)(t + 1) * half + (t + 1 < longer ? t + 1 : longer));
  const int first = (int)(((first_unit + 1) * workers - 1) / units);
  const int last = (int)((end_unit * workers - 1) / units);

  // The distances at which tile t was the tile j.
  const int distances = ((tiles & 1) == 0 && t < half) ? half - 1 : half;

  const float4* __restrict__ i4 = reinterpret_cast<const float4*>(side_i) + chunk * 24 + q;
  const float4* __restrict__ j4 = reinterpret_cast<const float4*>(side_j) + chunk * 24 + q;

  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
  for (int d = 1 + g; d <= distances; d += 8) {
    const float4 v = j4[((size_t)d * tiles + t) * 192];
    sum.x += v.x;
    sum.y += v.y;
    sum.z += v.z;
    sum.w += v.w;
  }
  for (int s = first + g; s <= last; s += 8) {
    const float4 v = i4[(size_t)(s + t) * 192];
    sum.x += v.x;
    sum.y += v.y;
    sum.z += v.z;
    sum.w += v.w;
  }
  sums[g][q] = sum;
  __syncthreads();

  if (threadIdx.x < 96) {
    const float* f = reinterpret_cast<const float*>(sums);
    const int e = (threadIdx.x % 3) * 32 + threadIdx.x / 3;
    float v = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) v += f[k * 96 + e];
    const int o = (t * 256 + chunk * 32) * 3 + (int)threadIdx.x;
    if (o < N * 3) out[o] = v;
  }
}
