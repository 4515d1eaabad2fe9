// Acceleration of each of N bodies (x, y, z, mass) by all of them; each pair of bodies is evaluated once,
// partial sums meet in a fixed order.

//@ scratch columns: f32[ceil_div(N, 256) / 2 + 1, 3, ceil_div(N, 256) * 256]
//@ scratch rows: f32[2112 + ceil_div(N, 256), 3, 256]
//@ launch attraction<<<132, 512>>>(body, columns, rows, softening, N)
//@ launch combine<<<(ceil_div(N, 256), 3, 1), 256>>>(columns, rows, out, N)

constexpr int K = 8;             // bodies of a lane
constexpr int TILE = 32 * K;     // bodies of a warp
constexpr int WARPS = 132 * 16;  // warps of the launch of attraction

__device__ __forceinline__ float fast_rsqrt(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

// Tiles (row, row + off mod nb): off 0 .. (nb - 1) / 2 for every row, and
// off nb / 2 for the first half of the rows where nb is even.
// A unit is 32 partners of a tile; the units of a row are contiguous.

__global__ void __launch_bounds__(512, 1) attraction(const float* __restrict__ body, float* __restrict__ columns,
                                                     float* __restrict__ rows, float softening, int N) {
  __shared__ float4 stage[16][64];

  const float4* __restrict__ bodies = reinterpret_cast<const float4*>(body);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int next_lane = (lane + 1) & 31;

  const int nb = (N + TILE - 1) / TILE;
  const int h = (nb + 1) / 2;
  const int longer = (nb % 2 == 0) ? nb / 2 : 0;   // rows with h + 1 tiles
  const int units = K * (nb * h + longer);
  const int active = min(WARPS, units);
  const long long padded = (long long)nb * TILE;

  const int me = blockIdx.x * 16 + warp;
  if (me >= active) return;
  const int first = (int)((long long)units * me / active);
  const int last = (int)((long long)units * (me + 1) / active);

  // Place of the first unit.
  int r, off, g;
  {
    const int t = first / K;
    g = first - t * K;
    const int border = longer * (h + 1);
    if (t < border) {
      r = t / (h + 1);
      off = t - r * (h + 1);
    } else {
      const int v = t - border;
      r = v / h;
      off = v - r * h;
      r += longer;
    }
  }

  float px[K], py[K], pz[K], pm[K];
  float ax[K], ay[K], az[K];
#pragma unroll
  for (int k = 0; k < K; ++k) {
    px[k] = py[k] = pz[k] = pm[k] = 0.0f;
    ax[k] = ay[k] = az[k] = 0.0f;
  }

  int row = -1;

  int column = r + off;
  if (column >= nb) column -= nb;
  int j_next = column * TILE + g * 32 + lane;
  float4 ahead = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (j_next < N) ahead = bodies[j_next];

  for (int u = first; u < last; ++u) {
    const int cur_row = r;
    const int cur_off = off;
    const int j = j_next;
    const float4 other = ahead;

    // Go on to the next unit and load its partners ahead.
    ++g;
    if (g == K) {
      g = 0;
      ++off;
      if (off == h + (r < longer ? 1 : 0)) {
        off = 0;
        ++r;
      }
    }
    column = r + off;
    if (column >= nb) column -= nb;
    j_next = column * TILE + g * 32 + lane;
    ahead = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (u + 1 < last && j_next < N) ahead = bodies[j_next];

    if (cur_row != row) {
      if (row >= 0) {
        float* place = rows + (long long)(me + row) * (3 * TILE) + lane;
#pragma unroll
        for (int k = 0; k < K; ++k) {
          place[k * 32] = ax[k];
          place[TILE + k * 32] = ay[k];
          place[2 * TILE + k * 32] = az[k];
        }
      }
      row = cur_row;
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

    if (j - lane >= N) continue;   // the same for the whole warp

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
        bx = fmaf(to_other, dx, bx);
        by = fmaf(to_other, dy, by);
        bz = fmaf(to_other, dz, bz);
      }
      bx = __shfl_sync(0xffffffffu, bx, next_lane);
      by = __shfl_sync(0xffffffffu, by, next_lane);
      bz = __shfl_sync(0xffffffffu, bz, next_lane);
    }

    // A tile with itself meets each pair from both sides: its partner sums are not needed.
    if (cur_off != 0 && j < N) {
      float* place = columns + (long long)(cur_off - 1) * 3 * padded + j;
      place[0] = bx;
      place[padded] = by;
      place[2 * padded] = bz;
    }
  }

  if (row >= 0) {
    float* place = rows + (long long)(me + row) * (3 * TILE) + lane;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      place[k * 32] = ax[k];
      place[TILE + k * 32] = ay[k];
      place[2 * TILE + k * 32] = az[k];
    }
  }
}

__global__ void __launch_bounds__(256) combine(const float* __restrict__ columns, const float* __restrict__ rows,
                                               float* __restrict__ out, int N) {
  const int tile = blockIdx.x;
  const int axis = blockIdx.y;
  const int i = tile * TILE + threadIdx.x;
  if (i >= N) return;

  const int nb = (N + TILE - 1) / TILE;
  const int h = (nb + 1) / 2;
  const int longer = (nb % 2 == 0) ? nb / 2 : 0;
  const int units = K * (nb * h + longer);
  const int active = min(WARPS, units);
  const long long padded = (long long)nb * TILE;

  // Warps that hold units of this row.
  const long long begin = (long long)K * ((long long)tile * h + min(tile, longer));
  const long long end = (long long)K * ((long long)(tile + 1) * h + min(tile + 1, longer));
  const int from = (int)(((begin + 1) * active - 1) / units);
  const int to = (int)((end * active - 1) / units);

  float pulled = 0.0f;
  {
    const float* place = rows + ((long long)(from + tile) * 3 + axis) * TILE + threadIdx.x;
    const int count = to - from + 1;
#pragma unroll 8
    for (int m = 0; m < count; ++m) pulled += place[(long long)m * (3 * TILE)];
  }

  float pushed = 0.0f;
  {
    // Tiles off 1 .. (nb - 1) / 2, and nb / 2 where nb is even and this tile was the partner there.
    int count = (nb - 1) / 2;
    if (nb % 2 == 0 && tile >= nb / 2) ++count;
    const float* place = columns + (long long)axis * padded + i;
#pragma unroll 16
    for (int o = 0; o < count; ++o) pushed += place[(long long)o * 3 * padded];
  }

  out[(long long)i * 3 + axis] = pulled - pushed;
}
