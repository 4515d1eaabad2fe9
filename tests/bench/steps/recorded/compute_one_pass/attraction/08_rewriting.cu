// Acceleration of each of N bodies (x, y, z, mass) by all of them.
// Every pair of tiles (256 bodies i, 32 bodies j, j not before i) is visited by one warp,
// which computes each pair once and counts it for both of its bodies. The partial sums
// go to places of their own in scratch, and a second launch adds them in a fixed order.

//@ scratch ipart: f32[2112 + ceil_div(N, 256), 768]
//@ scratch jpart: f32[ceil_div(N, 256) * 3, round_up(N, 32)]

constexpr int R = 8;               // bodies i of one lane; a row of tiles is 32 * R bodies
constexpr int SLOTS = 132 * 16;    // warps of the launch

__device__ __forceinline__ float rsqrt_fast(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float4 load_body(const float* __restrict__ body, int i, int N) {
  if (i < N) return __ldg(reinterpret_cast<const float4*>(body) + i);
  return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// units of work before a row, where a row has B - R * row of them
__device__ __forceinline__ long long row_begin(int row, int B) {
  return (long long)row * B - (long long)(R / 2) * row * (row - 1);
}

//@ launch attraction<<<132, 512>>>(body, ipart, jpart, softening, N)
__global__ void __launch_bounds__(512, 1)
attraction(const float* __restrict__ body, float* __restrict__ ipart, float* __restrict__ jpart,
           float softening, int N) {
  __shared__ float4 tile[16][64];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  float4* sw = tile[warp];

  const int B = (N + 31) / 32;       // tiles of j
  const int A = (B + R - 1) / R;     // rows of i
  const long long T = row_begin(A, B);              // units of work
  const long long W = T < SLOTS ? T : (long long)SLOTS;  // warps that have work
  const size_t padded = (size_t)B * 32;

  // the warps of one scheduler take neighbouring ranges
  const int slot = blockIdx.x * 16 + (warp & 3) * 4 + (warp >> 2);
  if (slot >= W) return;
  const long long u0 = T * slot / W;
  const long long u1 = T * (slot + 1) / W;

  // the last row that begins at u0 or before
  int row = 0;
  {
    int high = A;
    while (high - row > 1) {
      const int mid = (row + high) >> 1;
      if (row_begin(mid, B) <= u0) row = mid;
      else high = mid;
    }
  }
  int jt = R * row + (int)(u0 - row_begin(row, B));
  int left = (int)(u1 - u0);
  const int from = (lane + 1) & 31;

  while (left > 0) {
    float xi[R], yi[R], zi[R], mi[R], axi[R], ayi[R], azi[R];
    const int i0 = row * (32 * R) + lane;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float4 p = load_body(body, i0 + r * 32, N);
      xi[r] = p.x;
      yi[r] = p.y;
      zi[r] = p.z;
      mi[r] = p.w;
      axi[r] = 0.0f;
      ayi[r] = 0.0f;
      azi[r] = 0.0f;
    }

    const int end = min(B, jt + left);
    left -= end - jt;
    float4 coming = load_body(body, jt * 32 + lane, N);

    for (; jt < end; ++jt) {
      __syncwarp();
      sw[lane] = coming;
      sw[lane + 32] = coming;
      __syncwarp();
      coming = load_body(body, (jt + 1) * 32 + lane, N);

      float axj = 0.0f, ayj = 0.0f, azj = 0.0f;
      float4 b = sw[lane];
#pragma unroll 4
      for (int s = 0; s < 32; ++s) {
        const float4 nb = sw[lane + s + 1];  // at most 63
#pragma unroll
        for (int r = 0; r < R; ++r) {
          const float dx = b.x - xi[r];
          const float dy = b.y - yi[r];
          const float dz = b.z - zi[r];
          const float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening)));
          const float inv = rsqrt_fast(square);
          const float cube = inv * inv * inv;
          const float pi = b.w * cube;    // pull on i
          const float pj = mi[r] * cube;  // pull on j
          axi[r] = fmaf(pi, dx, axi[r]);
          ayi[r] = fmaf(pi, dy, ayi[r]);
          azi[r] = fmaf(pi, dz, azi[r]);
          axj = fmaf(-pj, dx, axj);
          ayj = fmaf(-pj, dy, ayj);
          azj = fmaf(-pj, dz, azj);
        }
        // the sums of j move on to the lane that takes j next
        axj = __shfl_sync(0xffffffffu, axj, from);
        ayj = __shfl_sync(0xffffffffu, ayj, from);
        azj = __shfl_sync(0xffffffffu, azj, from);
        b = nb;
      }

      // within the row's own bodies every ordered pair is visited, so only i counts there
      if (jt >= R * row + R) {
        float* to = jpart + (size_t)row * 3 * padded + (size_t)jt * 32 + lane;
        to[0] = axj;
        to[padded] = ayj;
        to[2 * padded] = azj;
      }
    }

    // slot + row grows from each piece of a row to the next, so no two pieces share a place
    float* to = ipart + (size_t)(slot + row) * (3 * 32 * R) + lane;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      to[r * 32] = axi[r];
      to[32 * R + r * 32] = ayi[r];
      to[2 * 32 * R + r * 32] = azi[r];
    }
    ++row;
    jt = R * row;
  }
}

// One block for each tile of 32 bodies adds all partial sums of these.
//@ launch combine<<<ceil_div(N, 32), 256>>>(ipart, jpart, out, N)
__global__ void __launch_bounds__(256)
combine(const float* __restrict__ ipart, const float* __restrict__ jpart,
        float* __restrict__ out, int N) {
  __shared__ float part[8][96];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int jt = gridDim.x - 1 - blockIdx.x;  // the tiles with most to add come first

  const int B = (N + 31) / 32;
  const int A = (B + R - 1) / R;
  const long long T = row_begin(A, B);
  const long long W = T < SLOTS ? T : (long long)SLOTS;
  const size_t padded = (size_t)B * 32;
  const int row = jt / R;

  float ax = 0.0f, ay = 0.0f, az = 0.0f;

  // as bodies j, from all rows before their own
  const float* jp = jpart + (size_t)jt * 32 + lane;
#pragma unroll 4
  for (int r = warp; r < row; r += 8) {
    const float* p = jp + (size_t)r * 3 * padded;
    ax += p[0];
    ay += p[padded];
    az += p[2 * padded];
  }

  // as bodies i, from all warps that had a piece of their row
  const long long begin = row_begin(row, B);
  const long long end = begin + (B - R * row);
  const int s0 = (int)(((begin + 1) * W - 1) / T);
  const int s1 = (int)((end * W - 1) / T);
  const float* ip = ipart + (jt - row * R) * 32 + lane;
#pragma unroll 4
  for (int s = s0 + warp; s <= s1; s += 8) {
    const float* p = ip + (size_t)(s + row) * (3 * 32 * R);
    ax += p[0];
    ay += p[32 * R];
    az += p[2 * 32 * R];
  }

  part[warp][lane * 3] = ax;
  part[warp][lane * 3 + 1] = ay;
  part[warp][lane * 3 + 2] = az;
  __syncthreads();

  const int t = threadIdx.x;
  if (t < 96) {
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) sum += part[w][t];
    const long long to = (long long)jt * 96 + t;
    if (to < (long long)N * 3) out[to] = sum;
  }
}
