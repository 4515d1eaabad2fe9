// Acceleration of each of N bodies (x, y, z, mass) by all of them.
// Every pair of tiles (256 bodies i, 32 bodies j, j not before i) is visited by one warp,
// which computes each pair once and adds it to both of its bodies.

//@ launch clear_out<<<ceil_div(N * 3, 256), 256>>>(out, N)
__global__ void clear_out(float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N * 3) out[i] = 0.0f;
}

__device__ __forceinline__ float rsqrt_fast(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float4 load_body(const float* __restrict__ body, int i, int N) {
  if (i < N) return __ldg(reinterpret_cast<const float4*>(body) + i);
  return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

//@ launch attraction<<<132, 512>>>(body, out, softening, N)
__global__ void __launch_bounds__(512, 1)
attraction(const float* __restrict__ body, float* __restrict__ out, float softening, int N) {
  constexpr int R = 8;  // bodies i of one lane; a row of tiles is 32 * R bodies
  __shared__ float4 tile[16][64];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  float4* sw = tile[warp];

  const int B = (N + 31) / 32;       // tiles of j
  const int A = (B + R - 1) / R;     // rows of i
  const long long T = (long long)A * B - (long long)(R / 2) * A * (A - 1);  // units of work

  // the warps of one scheduler take neighbouring ranges
  const int slot = blockIdx.x * 16 + (warp & 3) * 4 + (warp >> 2);
  const int W = gridDim.x * 16;
  const long long u0 = T * slot / W;
  const long long u1 = T * (slot + 1) / W;
  if (u0 >= u1) return;

  int row = 0;
  long long begin = 0;
  while (u0 >= begin + (B - R * row)) {
    begin += B - R * row;
    ++row;
  }
  int jt = R * row + (int)(u0 - begin);
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
#pragma unroll 2
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
      const int j = jt * 32 + lane;
      if (jt >= R * row + R && j < N) {
        atomicAdd(out + j * 3, axj);
        atomicAdd(out + j * 3 + 1, ayj);
        atomicAdd(out + j * 3 + 2, azj);
      }
    }

#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int i = i0 + r * 32;
      if (i < N) {
        atomicAdd(out + i * 3, axi[r]);
        atomicAdd(out + i * 3 + 1, ayi[r]);
        atomicAdd(out + i * 3 + 2, azi[r]);
      }
    }
    ++row;
    jt = R * row;
  }
}
