// Seven points of a grid in three dimensions; a warp marches two rows of 128 points through a slab of planes.

#include <cstdint>
#include <cstddef>

//@ launch heat_step<<<(ceil_div(Z, 128), ceil_div(Y, 16), ceil_div(X, 8)), (32, 8)>>>(u, out, k, X, Y, Z)

constexpr int PLANES = 8;   // planes of a slab
constexpr int ROWS = 16;    // rows of a block, two a warp

__device__ __forceinline__ float4 read4(const float* p) {
  return __ldg(reinterpret_cast<const float4*>(p));
}

__device__ __forceinline__ float point(float c, float xa, float xb, float ya, float yb, float za, float zb,
                                       float k) {
  return c + k * (xa + xb + ya + yb + za + zb - 6.0f * c);
}

__device__ __forceinline__ float4 points(const float4& c, const float4& xa, const float4& xb,
                                         const float4& ya, const float4& yb, float edge, int lane,
                                         float k) {
  float left = __shfl_up_sync(0xffffffffu, c.w, 1);
  float right = __shfl_down_sync(0xffffffffu, c.x, 1);
  if (lane == 0) left = edge;
  if (lane == 31) right = edge;
  float4 r;
  r.x = point(c.x, xa.x, xb.x, ya.x, yb.x, left, c.y, k);
  r.y = point(c.y, xa.y, xb.y, ya.y, yb.y, c.x, c.z, k);
  r.z = point(c.z, xa.z, xb.z, ya.z, yb.z, c.y, c.w, k);
  r.w = point(c.w, xa.w, xb.w, ya.w, yb.w, c.z, right, k);
  return r;
}

__global__ void __launch_bounds__(256, 4)
heat_step(const float* __restrict__ u, float* __restrict__ out, float k, int X, int Y, int Z) {
  const int lane = threadIdx.x;
  const int j0 = blockIdx.y * ROWS + threadIdx.y * 2;
  const int slab = blockIdx.z;
  const int begin = slab * PLANES;
  const int count = min(PLANES, X - begin);
  const size_t plane = (size_t)Y * Z;

  if (j0 >= Y) return;  // a whole warp

  const uintptr_t address = reinterpret_cast<uintptr_t>(u) | reinterpret_cast<uintptr_t>(out);
  if ((Z & 3) != 0 || (address & 15) != 0) {
    for (int t = 0; t < count; ++t) {
      const int i = begin + t;
      for (int r = 0; r < 2; ++r) {
        const int j = j0 + r;
        if (j >= Y) break;
        for (int e = 0; e < 4; ++e) {
          const int l = blockIdx.x * 128 + e * 32 + lane;
          if (l >= Z) break;
          const size_t at = (size_t)i * plane + (size_t)j * Z + l;
          const float c = u[at];
          float y = c;
          if (i > 0 && i < X - 1 && j > 0 && j < Y - 1 && l > 0 && l < Z - 1) {
            y = point(c, u[at - plane], u[at + plane], u[at - Z], u[at + Z], u[at - 1], u[at + 1], k);
          }
          out[at] = y;
        }
      }
    }
    return;
  }

  const int z = blockIdx.x * 128 + lane * 4;
  const bool inside = z < Z;
  const int zl = min(z, Z - 4);
  const bool has_b = j0 + 1 < Y;
  const int jb = min(j0 + 1, Y - 1);

  // Places within a plane, all of them valid; what a face does not use is read and dropped.
  const int at_a = j0 * Z + zl;
  const int at_b = jb * Z + zl;
  const int at_m = max(j0 - 1, 0) * Z + zl;
  const int at_p = min(j0 + 2, Y - 1) * Z + zl;
  const bool at_end = lane == 0 || lane == 31;
  const int ze = lane == 0 ? max(z - 1, 0) : min(z + 4, Z - 1);
  const int edge_step = ze - zl;

  const bool face_a = j0 == 0 || j0 == Y - 1;
  const bool face_b = jb == Y - 1;
  const bool face_first = z == 0;
  const bool face_last = z + 4 >= Z;

  const int direction = (slab & 1) ? -1 : 1;
  const int first = (slab & 1) ? begin + count - 1 : begin;

  float4 prev_a, prev_b, cur_a, cur_b, next_a, next_b;
  {
    const float* p = u + (size_t)min(max(first - direction, 0), X - 1) * plane;
    prev_a = read4(p + at_a);
    prev_b = read4(p + at_b);
  }
  {
    const float* p = u + (size_t)first * plane;
    cur_a = read4(p + at_a);
    cur_b = read4(p + at_b);
  }
  {
    const float* p = u + (size_t)min(max(first + direction, 0), X - 1) * plane;
    next_a = read4(p + at_a);
    next_b = read4(p + at_b);
  }

#pragma unroll 4
  for (int t = 0; t < count; ++t) {
    const int i = first + direction * t;
    const size_t here = (size_t)i * plane;

    // The plane after the next one, wanted in the next step.
    float4 ahead_a = next_a, ahead_b = next_b;
    if (t + 1 < count) {
      const float* p = u + (size_t)min(max(i + 2 * direction, 0), X - 1) * plane;
      ahead_a = read4(p + at_a);
      ahead_b = read4(p + at_b);
    }

    const float* p = u + here;
    const float4 below = read4(p + at_m);
    const float4 above = read4(p + at_p);
    float edge_a = 0.0f, edge_b = 0.0f;
    if (at_end) {
      edge_a = __ldg(p + at_a + edge_step);
      edge_b = __ldg(p + at_b + edge_step);
    }

    float4 ra = points(cur_a, prev_a, next_a, below, cur_b, edge_a, lane, k);
    float4 rb = points(cur_b, prev_b, next_b, cur_a, above, edge_b, lane, k);

    const bool face = i == 0 || i == X - 1;
    if (face || face_a) ra = cur_a;
    if (face || face_b) rb = cur_b;
    if (face_first) {
      ra.x = cur_a.x;
      rb.x = cur_b.x;
    }
    if (face_last) {
      ra.w = cur_a.w;
      rb.w = cur_b.w;
    }

    if (inside) {
      float* o = out + here;
      __stcs(reinterpret_cast<float4*>(o + at_a), ra);
      if (has_b) __stcs(reinterpret_cast<float4*>(o + at_b), rb);
    }

    prev_a = cur_a;
    prev_b = cur_b;
    cur_a = next_a;
    cur_b = next_b;
    next_a = ahead_a;
    next_b = ahead_b;
  }
}
