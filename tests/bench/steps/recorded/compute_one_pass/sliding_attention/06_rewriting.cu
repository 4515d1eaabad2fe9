// Attention of each position to itself and to the W - 1 positions before it: 128 queries a block, 32 a warp.

//@ launch sliding_attention<<<(ceil_div(T, 128), H), 128, 89088>>>(q, k, v, out, H, T, D, W)

#define PITCH 72
#define Q_BYTES 36864
#define K_BYTES 9216
#define STAGE_BYTES 17408
#define STAGES 3
#define LOG2E 1.4426950408889634f

__device__ __forceinline__ void copy16(unsigned to, const float* from, bool valid) {
  int size = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
}

__device__ __forceinline__ void copy4(unsigned to, const float* from, bool valid) {
  int size = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
}

__device__ __forceinline__ float power_of_two(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__device__ __forceinline__ void split(float v, unsigned& high, unsigned& low) {
  high = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(v - __uint_as_float(high));
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One element of the result in plain floats.
__device__ __noinline__ float plain(const float* q, const float* k, const float* v, int row, int d, int D, int W) {
  const int first = row - W + 1 < 0 ? 0 : row - W + 1;
  const float scale = rsqrtf((float)D);
  float most = -3.0e38f;
  for (int s = first; s <= row; ++s) {
    float dot = 0.0f;
    for (int c = 0; c < D; ++c) dot += q[(size_t)row * D + c] * k[(size_t)s * D + c];
    most = fmaxf(most, dot * scale);
  }
  float sum = 0.0f;
  float result = 0.0f;
  for (int s = first; s <= row; ++s) {
    float dot = 0.0f;
    for (int c = 0; c < D; ++c) dot += q[(size_t)row * D + c] * k[(size_t)s * D + c];
    float weight = expf(dot * scale - most);
    sum += weight;
    result += weight * v[(size_t)s * D + d];
  }
  return result / sum;
}

__global__ void __launch_bounds__(128, 2)
sliding_attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* out,
                  int H, int T, int D, int W) {
  extern __shared__ float4 shared4[];
  const int tid = threadIdx.x;
  const int head = blockIdx.y;
  const int q0 = blockIdx.x * 128;
  const size_t at_head = (size_t)head * T * D;
  const float* qh = q + at_head;
  const float* kh = k + at_head;
  const float* vh = v + at_head;
  float* oh = out + at_head;

  if (D > 64) {
    const int rows = min(128, T - q0);
    if (tid < rows) {
      const int row = q0 + tid;
      const int first = row - W + 1 < 0 ? 0 : row - W + 1;
      const float scale = rsqrtf((float)D);
      const float* qr = qh + (size_t)row * D;
      float* to = oh + (size_t)row * D;
      float most = -3.0e38f;
      for (int s = first; s <= row; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += qr[d] * kh[(size_t)s * D + d];
        most = fmaxf(most, dot * scale);
      }
      float sum = 0.0f;
      for (int d = 0; d < D; ++d) to[d] = 0.0f;
      for (int s = first; s <= row; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += qr[d] * kh[(size_t)s * D + d];
        float weight = expf(dot * scale - most);
        sum += weight;
        for (int d = 0; d < D; ++d) to[d] += weight * vh[(size_t)s * D + d];
      }
      for (int d = 0; d < D; ++d) to[d] /= sum;
    }
    return;
  }

  const char* shared_bytes = reinterpret_cast<const char*>(shared4);
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared4);
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int g = lane >> 2;
  const int t = lane & 3;
  const bool whole = (D & 3) == 0;

  auto bring16 = [&](unsigned to, const float* from, const float* safe, bool row_valid, int d) {
    if (whole) {
      const bool valid = row_valid && d < D;
      copy16(to, valid ? from : safe, valid);
    } else {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const bool valid = row_valid && d + c < D;
        copy4(to + 4 * c, valid ? from + c : safe, valid);
      }
    }
  };

  auto bring = [&](int tile, int stage) {
    const unsigned k_at = shared_at + Q_BYTES + (unsigned)stage * STAGE_BYTES;
    const unsigned v_at = k_at + K_BYTES;
    const int u = tid & 15;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = (tid >> 4) + 8 * i;
      const int key = tile * 32 + r;
      const bool valid = key < T;
      const size_t from = (size_t)key * D + 4 * u;
      bring16(k_at + (unsigned)(r * PITCH + 4 * u) * 4u, kh + from, kh, valid, 4 * u);
      bring16(v_at + (unsigned)(r * 16 + (u ^ (((r >> 1) & 3) << 1))) * 16u, vh + from, vh, valid, 4 * u);
    }
  };

  // The key tiles that the block needs, and those that this warp needs.
  const int low = max(0, q0 - W + 1) >> 5;
  const int high = min(q0 + 127, T - 1) >> 5;
  const int r0 = q0 + warp * 32;
  const int warp_low = max(0, r0 - W + 1) >> 5;
  const int warp_high = r0 < T ? (min(r0 + 31, T - 1) >> 5) : -1;

#pragma unroll 4
  for (int i = 0; i < 16; ++i) {
    const int r = (tid >> 4) + 8 * i;
    const int u = tid & 15;
    bring16(shared_at + (unsigned)(r * PITCH + 4 * u) * 4u, qh + (size_t)(q0 + r) * D + 4 * u, qh, q0 + r < T,
            4 * u);
  }
  bring(low, 0);
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (low + 1 <= high) bring(low + 1, 1);
  asm volatile("cp.async.commit_group;" ::: "memory");

  const float scale = rsqrtf((float)D) * LOG2E;

  float o[2][8][4];
  float most[2][2], sum[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) o[m][n][c] = 0.0f;
    most[m][0] = most[m][1] = -3.0e38f;
    sum[m][0] = sum[m][1] = 0.0f;
  }

  const float* qs = reinterpret_cast<const float*>(shared_bytes) + (warp * 32 + g) * PITCH + 2 * t;

  int stage = 0;
#pragma unroll 1
  for (int tile = low; tile <= high; ++tile) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    if (tile + 2 <= high) bring(tile + 2, stage == 0 ? 2 : stage - 1);
    asm volatile("cp.async.commit_group;" ::: "memory");

    if (tile >= warp_low && tile <= warp_high) {
      const char* here = shared_bytes + Q_BYTES + stage * STAGE_BYTES;
      const float* ks = reinterpret_cast<const float*>(here) + g * PITCH + 2 * t;
      const float4* vs = reinterpret_cast<const float4*>(here + K_BYTES) + 2 * t * 16 + (g ^ (2 * t));

      float s[2][4][4];
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int c = 0; c < 4; ++c) s[m][n][c] = 0.0f;

#pragma unroll 4
      for (int kk = 0; kk < 8; ++kk) {
        unsigned ah[2][4], al[2][4], bh[4][2], bl[4][2];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          const float2 a = *reinterpret_cast<const float2*>(qs + m * 16 * PITCH + kk * 8);
          const float2 b = *reinterpret_cast<const float2*>(qs + (m * 16 + 8) * PITCH + kk * 8);
          split(a.x, ah[m][0], al[m][0]);
          split(b.x, ah[m][1], al[m][1]);
          split(a.y, ah[m][2], al[m][2]);
          split(b.y, ah[m][3], al[m][3]);
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float2 b = *reinterpret_cast<const float2*>(ks + n * 8 * PITCH + kk * 8);
          split(b.x, bh[n][0], bl[n][0]);
          split(b.y, bh[n][1], bl[n][1]);
        }
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int n = 0; n < 4; ++n) multiply(s[m][n], al[m], bh[n]);
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int n = 0; n < 4; ++n) multiply(s[m][n], ah[m], bl[n]);
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int n = 0; n < 4; ++n) multiply(s[m][n], ah[m], bh[n]);
      }

      const int key0 = tile * 32;
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int c = 0; c < 4; ++c) s[m][n][c] *= scale;
      if (key0 + 31 > r0 || key0 < r0 + 32 - W) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              const int key = key0 + 8 * n + 2 * t + (c & 1);
              const int row = r0 + m * 16 + (c >> 1) * 8 + g;
              if (key > row || key <= row - W) s[m][n][c] = __uint_as_float(0xff800000u);
            }
      }

      float keep[2][2];
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float top = most[m][h];
#pragma unroll
          for (int n = 0; n < 4; ++n) top = fmaxf(top, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
          top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
          top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
          keep[m][h] = power_of_two(most[m][h] - top);
          most[m][h] = top;
          float added = 0.0f;
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            s[m][n][2 * h] = power_of_two(s[m][n][2 * h] - top);
            s[m][n][2 * h + 1] = power_of_two(s[m][n][2 * h + 1] - top);
            added += s[m][n][2 * h] + s[m][n][2 * h + 1];
          }
          sum[m][h] = fmaf(sum[m][h], keep[m][h], added);
        }

      float p[2][8][4];
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int c = 0; c < 4; ++c) p[m][n][c] = 0.0f;

#pragma unroll
      for (int kk = 0; kk < 4; ++kk) {
        unsigned ah[2][4], al[2][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          split(s[m][kk][0], ah[m][0], al[m][0]);
          split(s[m][kk][2], ah[m][1], al[m][1]);
          split(s[m][kk][1], ah[m][2], al[m][2]);
          split(s[m][kk][3], ah[m][3], al[m][3]);
        }
#pragma unroll
        for (int jj = 0; jj < 2; ++jj) {
          const float4 v0 = vs[kk * 8 * 16 + jj * 8];
          const float4 v1 = vs[(kk * 8 + 1) * 16 + jj * 8];
          unsigned bh[4][2], bl[4][2];
          split(v0.x, bh[0][0], bl[0][0]);
          split(v0.y, bh[1][0], bl[1][0]);
          split(v0.z, bh[2][0], bl[2][0]);
          split(v0.w, bh[3][0], bl[3][0]);
          split(v1.x, bh[0][1], bl[0][1]);
          split(v1.y, bh[1][1], bl[1][1]);
          split(v1.z, bh[2][1], bl[2][1]);
          split(v1.w, bh[3][1], bl[3][1]);
#pragma unroll
          for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply(p[m][jj * 4 + j], al[m], bh[j]);
#pragma unroll
          for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply(p[m][jj * 4 + j], ah[m], bl[j]);
#pragma unroll
          for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply(p[m][jj * 4 + j], ah[m], bh[j]);
        }
      }

#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int c = 0; c < 4; ++c) o[m][n][c] = fmaf(o[m][n][c], keep[m][c >> 1], p[m][n][c]);
    }
    stage = stage == STAGES - 1 ? 0 : stage + 1;
  }

  float check = 0.0f;
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = sum[m][h];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float part = 1.0f / total;
      const int row = r0 + m * 16 + h * 8 + g;
      if (row < T) {
        float* to = oh + (size_t)row * D;
#pragma unroll
        for (int jj = 0; jj < 2; ++jj)
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            const int d = jj * 32 + 8 * t + 4 * c;
            const float e0 = o[m][jj * 4 + 0][h * 2 + c] * part;
            const float e1 = o[m][jj * 4 + 1][h * 2 + c] * part;
            const float e2 = o[m][jj * 4 + 2][h * 2 + c] * part;
            const float e3 = o[m][jj * 4 + 3][h * 2 + c] * part;
            check = fmaf(e0, 0.0f, check);
            check = fmaf(e1, 0.0f, check);
            check = fmaf(e2, 0.0f, check);
            check = fmaf(e3, 0.0f, check);
            if (whole) {
              if (d < D) *reinterpret_cast<float4*>(to + d) = make_float4(e0, e1, e2, e3);
            } else {
              if (d < D) to[d] = e0;
              if (d + 1 < D) to[d + 1] = e1;
              if (d + 2 < D) to[d + 2] = e2;
              if (d + 3 < D) to[d + 3] = e3;
            }
          }
      }
    }

  if (!(check == 0.0f)) {
    // Infinite or undefined results: what plain floats give.
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const int row = r0 + i * 8 + g;
      if (row >= T) continue;
#pragma unroll 1
      for (int c = 0; c < 16; ++c) {
        const int d = (c >> 3) * 32 + 8 * t + (c & 7);
        if (d >= D) continue;
        const float had = oh[(size_t)row * D + d];
        if (had * 0.0f == 0.0f) continue;
        oh[(size_t)row * D + d] = plain(qh, kh, vh, row, d, D, W);
      }
    }
  }
}
