// Four points of z and two rows of y for each thread, marching along x with the planes in registers.

//@ launch heat_step<<<(ceil_div(Z, 384), ceil_div(Y, 8), ceil_div(X, 12)), (96, 4, 1)>>>(u, out, k, X, Y, Z)
#include <cstdint>

constexpr int VECTORS = 96;      // threads along z, four points each
constexpr int ROWS = 8;          // rows of y for each block, two for each thread
constexpr int PLANES = 12;       // planes of x for each block

__device__ __forceinline__ float4 load4(const float* p) {
  return __ldg(reinterpret_cast<const float4*>(p));
}

__device__ __forceinline__ float point(float k, float centre, float xa, float xb, float ya, float yb, float za,
                                       float zb) {
  return centre + k * (xa + xb + ya + yb + za + zb - 6.0f * centre);
}

__device__ __forceinline__ float4 step4(float k, const float4& c, const float4& xa, const float4& xb,
                                        const float4& ya, const float4& yb, float edge, int lane) {
  float left = __shfl_up_sync(0xffffffffu, c.w, 1);
  float right = __shfl_down_sync(0xffffffffu, c.x, 1);
  if (lane == 0) left = edge;
  if (lane == 31) right = edge;
  float4 r;
  r.x = point(k, c.x, xa.x, xb.x, ya.x, yb.x, left, c.y);
  r.y = point(k, c.y, xa.y, xb.y, ya.y, yb.y, c.x, c.z);
  r.z = point(k, c.z, xa.z, xb.z, ya.z, yb.z, c.y, c.w);
  r.w = point(k, c.w, xa.w, xb.w, ya.w, yb.w, c.z, right);
  return r;
}

__global__ void __launch_bounds__(384, 3)
heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  const int begin = blockIdx.z * PLANES;
  const int end = min(begin + PLANES, X);
  const int j0 = blockIdx.y * ROWS + threadIdx.y * 2;

  if (Z % 4 == 0 && ((reinterpret_cast<uintptr_t>(u) | reinterpret_cast<uintptr_t>(out)) & 15) == 0) {
    const int lane = threadIdx.x & 31;
    const int vector = blockIdx.x * VECTORS + threadIdx.x;
    const bool inside = vector < Z / 4;
    const int l = min(vector, Z / 4 - 1) * 4;

    // Places beyond the grid are moved onto it; what is read there is not used.
    const int row_a = min(j0, Y - 1) * Z + l;
    const int row_b = min(j0 + 1, Y - 1) * Z + l;
    const int row_before = min(max(j0 - 1, 0), Y - 1) * Z + l;
    const int row_behind = min(j0 + 2, Y - 1) * Z + l;

    // The outer lanes of a warp read one neighbour along z themselves.
    const bool needs_edge = (lane == 0 && l > 0) || (lane == 31 && l + 4 < Z);
    const int edge_offset = lane == 0 ? -1 : 4;

    const bool store_a = inside && j0 < Y;
    const bool store_b = inside && j0 + 1 < Y;
    const bool fixed_a = j0 == 0 || j0 >= Y - 1;
    const bool fixed_b = j0 + 1 >= Y - 1;
    const bool first = l == 0;
    const bool last = l + 4 == Z;

    const size_t plane = static_cast<size_t>(Y) * Z;
    const int direction = (blockIdx.z & 1) ? -1 : 1;
    int i = direction > 0 ? begin : end - 1;

    const float* before = u + static_cast<size_t>(min(max(i - direction, 0), X - 1)) * plane;
    const float* here = u + static_cast<size_t>(i) * plane;
    float4 prev_a = load4(before + row_a);
    float4 prev_b = load4(before + row_b);
    float4 cur_a = load4(here + row_a);
    float4 cur_b = load4(here + row_b);

#pragma unroll 1
    for (int count = end - begin; count > 0; --count) {
      const int next = min(max(i + direction, 0), X - 1);
      const float* current = u + static_cast<size_t>(i) * plane;
      const float* behind = u + static_cast<size_t>(next) * plane;
      const float4 next_a = load4(behind + row_a);
      const float4 next_b = load4(behind + row_b);
      const float4 halo_before = load4(current + row_before);
      const float4 halo_behind = load4(current + row_behind);
      float edge_a = 0.0f;
      float edge_b = 0.0f;
      if (needs_edge) {
        edge_a = __ldg(current + row_a + edge_offset);
        edge_b = __ldg(current + row_b + edge_offset);
      }

      const bool fixed_plane = i == 0 || i == X - 1;
      float4 result_a = step4(k, cur_a, prev_a, next_a, halo_before, cur_b, edge_a, lane);
      if (fixed_plane || fixed_a) result_a = cur_a;
      if (first) result_a.x = cur_a.x;
      if (last) result_a.w = cur_a.w;
      float4 result_b = step4(k, cur_b, prev_b, next_b, cur_a, halo_behind, edge_b, lane);
      if (fixed_plane || fixed_b) result_b = cur_b;
      if (first) result_b.x = cur_b.x;
      if (last) result_b.w = cur_b.w;

      float* target = out + static_cast<size_t>(i) * plane;
      if (store_a) __stcs(reinterpret_cast<float4*>(target + row_a), result_a);
      if (store_b) __stcs(reinterpret_cast<float4*>(target + row_b), result_b);

      prev_a = cur_a;
      prev_b = cur_b;
      cur_a = next_a;
      cur_b = next_b;
      i += direction;
    }
  } else {
    const size_t plane = static_cast<size_t>(Y) * Z;
    const int z_begin = blockIdx.x * (VECTORS * 4) + threadIdx.x;
    const int z_end = min(static_cast<int>(blockIdx.x + 1) * (VECTORS * 4), Z);
#pragma unroll 1
    for (int i = begin; i < end; ++i) {
#pragma unroll 1
      for (int j = j0; j < min(j0 + 2, Y); ++j) {
#pragma unroll 1
        for (int l = z_begin; l < z_end; l += VECTORS) {
          const size_t at = static_cast<size_t>(i) * plane + static_cast<size_t>(j) * Z + l;
          const float centre = __ldg(u + at);
          if (i == 0 || i == X - 1 || j == 0 || j == Y - 1 || l == 0 || l == Z - 1) {
            out[at] = centre;
          } else {
            out[at] = point(k, centre, __ldg(u + at - plane), __ldg(u + at + plane), __ldg(u + at - Z),
                            __ldg(u + at + Z), __ldg(u + at - 1), __ldg(u + at + 1));
          }
        }
      }
    }
  }
}
