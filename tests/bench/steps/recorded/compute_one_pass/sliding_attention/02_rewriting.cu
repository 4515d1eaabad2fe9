// Attention of each position to itself and to the W - 1 positions before it, in tiles of 128 queries and 64 keys.

//@ launch sliding_attention<<<(ceil_div(T, 128), H), 128, 105472>>>(q, k, v, out, H, T, D, W)
__device__ __forceinline__ void copy16(unsigned to, const float* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ float exp_of_two(float a) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}

// Scores of 8 rows (4 apart) with the keys J0 * 8 to J1 * 8 (8 apart).
template <int J0, int J1>
__device__ __forceinline__ void scores(const float* qs, const float* ks, float (&s)[8][8]) {
#pragma unroll 2
  for (int d = 0; d < 64; d += 4) {
    float4 qv[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) qv[i] = *reinterpret_cast<const float4*>(qs + 4 * i * 68 + d);
#pragma unroll
    for (int j = J0; j < J1; ++j) {
      const float4 kv = *reinterpret_cast<const float4*>(ks + 8 * j * 68 + d);
#pragma unroll
      for (int i = 0; i < 8; ++i) s[i][j] = fmaf(qv[i].x, kv.x, s[i][j]);
#pragma unroll
      for (int i = 0; i < 8; ++i) s[i][j] = fmaf(qv[i].y, kv.y, s[i][j]);
#pragma unroll
      for (int i = 0; i < 8; ++i) s[i][j] = fmaf(qv[i].z, kv.z, s[i][j]);
#pragma unroll
      for (int i = 0; i < 8; ++i) s[i][j] = fmaf(qv[i].w, kv.w, s[i][j]);
    }
  }
}

__global__ void __launch_bounds__(128, 2) sliding_attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out,
                                  int H, int T, int D, int W) {
  constexpr int DD = 64;       // width of the fast path
  constexpr int BM = 128;      // queries of a block
  constexpr int BN = 64;       // keys of a tile
  constexpr int S = DD + 4;    // padded row of q and k
  constexpr int PS = BN + 8;   // padded row of the weights

  const int tid = threadIdx.x;
  const int head = blockIdx.y;
  const int t0 = blockIdx.x * BM;

  if (D != DD) {
    const int t = t0 + tid;
    if (t < T) {
      const long long i = (long long)head * T + t;
      const int first = t - W + 1 < 0 ? 0 : t - W + 1;
      const float scale = rsqrtf((float)D);
      float most = -3.0e38f;
      for (int s = first; s <= t; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[((long long)head * T + s) * D + d];
        most = fmaxf(most, dot * scale);
      }
      float sum = 0.0f;
      for (int d = 0; d < D; ++d) out[i * D + d] = 0.0f;
      for (int s = first; s <= t; ++s) {
        float dot = 0.0f;
        for (int d = 0; d < D; ++d) dot += q[i * D + d] * k[((long long)head * T + s) * D + d];
        const float weight = expf(dot * scale - most);
        sum += weight;
        for (int d = 0; d < D; ++d) out[i * D + d] += weight * v[((long long)head * T + s) * D + d];
      }
      for (int d = 0; d < D; ++d) out[i * D + d] /= sum;
    }
    return;
  }

  extern __shared__ __align__(16) float memory[];
  float* q_tile = memory;                  // [BM][S]
  float* k_tile = q_tile + BM * S;         // [BN][S]
  float* v_tile = k_tile + BN * S;         // [BN][DD]
  float* weights = v_tile + BN * DD;       // [BM][PS]
  const unsigned q_at = (unsigned)__cvta_generic_to_shared(q_tile);
  const unsigned k_at = (unsigned)__cvta_generic_to_shared(k_tile);
  const unsigned v_at = (unsigned)__cvta_generic_to_shared(v_tile);

  const float* qh = q + (long long)head * T * DD;
  const float* kh = k + (long long)head * T * DD;
  const float* vh = v + (long long)head * T * DD;

  const int part = (tid & 15) * 4;
  const int row0 = tid >> 4;

  auto load_k = [&](int kt) {
    const unsigned to = k_at + 4u * (row0 * S + part);
#pragma unroll
    for (int i = 0; i < BN / 8; ++i) {
      const int s = kt + row0 + 8 * i;
      const bool ok = s < T;
      copy16(to + 4u * (8 * i * S), ok ? kh + (long long)s * DD + part : k, ok ? 16 : 0);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };
  auto load_v = [&](int kt) {
    const unsigned to = v_at + 4u * (row0 * DD + part);
#pragma unroll
    for (int i = 0; i < BN / 8; ++i) {
      const int s = kt + row0 + 8 * i;
      const bool ok = s < T;
      copy16(to + 4u * (8 * i * DD), ok ? vh + (long long)s * DD + part : v, ok ? 16 : 0);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  };

  // Keys of the block.
  const int low = max(0, t0 - W + 1);
  const int high = min(t0 + BM - 1, T - 1);
  const int kt_first = low & ~(BN - 1);

  {
    const unsigned to = q_at + 4u * (row0 * S + part);
#pragma unroll
    for (int i = 0; i < BM / 8; ++i) {
      const int t = t0 + row0 + 8 * i;
      const bool ok = t < T;
      copy16(to + 4u * (8 * i * S), ok ? qh + (long long)t * DD + part : q, ok ? 16 : 0);
    }
  }
  load_k(kt_first);

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int ng = lane & 7;
  const int mg = lane >> 3;
  const int r0 = t0 + warp * 32;               // first query of the warp
  const float* qs = q_tile + (warp * 32 + mg) * S;
  const float* ks = k_tile + ng * S;
  const float* vs = v_tile + ng * 4;
  float* ws = weights + (warp * 32 + mg) * PS;

  const float factor = rsqrtf((float)D) * 1.4426950408889634f;

  float o[8][8];
  float most[8], sum[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    most[i] = -3.0e38f;
    sum[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; ++j) o[i][j] = 0.0f;
  }

  for (int kt = kt_first; kt <= high; kt += BN) {
    const int oldest = r0 - W + 1;             // first key of the warp's first query
    const bool active = r0 < T && kt <= r0 + 31 && kt + BN - 1 >= oldest;

    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();                           // keys are there, the last values are used up
    load_v(kt);

    if (active) {
      float s[8][8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) s[i][j] = 0.0f;
      }
      const bool lower = kt + 31 >= oldest;
      const bool upper = kt + 32 <= r0 + 31;
      if (lower && upper) {
        scores<0, 8>(qs, ks, s);
      } else if (lower) {
        scores<0, 4>(qs, ks, s);
      } else {
        scores<4, 8>(qs, ks, s);
      }

      if (!(kt + BN - 1 <= r0 && kt >= r0 + 31 - W + 1)) {
        const float nothing = __int_as_float(0xff800000);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const int t = r0 + mg + 4 * i;
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            const int key = kt + ng + 8 * j;
            if (key > t || key < t - W + 1) s[i][j] = nothing;
          }
        }
      }

#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float top = s[i][0];
#pragma unroll
        for (int j = 1; j < 8; ++j) top = fmaxf(top, s[i][j]);
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 4));
        top = fmaxf(top, most[i]);
        const float shrink = exp_of_two((most[i] - top) * factor);
        most[i] = top;
        const float shift = -top * factor;
        float part_sum = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const float weight = exp_of_two(fmaf(s[i][j], factor, shift));
          part_sum += weight;
          ws[4 * i * PS + ng + 8 * j] = weight;
        }
        sum[i] = fmaf(sum[i], shrink, part_sum);
#pragma unroll
        for (int j = 0; j < 8; ++j) o[i][j] *= shrink;
      }
    }

    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();                           // values and weights are there, the keys are used up
    if (kt + BN <= high) load_k(kt + BN);

    if (active) {
      const int from = max(oldest - kt, 0) & ~7;
      const int to = min(BN - 1, r0 + 31 - kt);
#pragma unroll 1
      for (int key = from; key <= to; key += 8) {
#pragma unroll
        for (int half = 0; half < 8; half += 4) {
          float4 w[8];
#pragma unroll
          for (int i = 0; i < 8; ++i) w[i] = *reinterpret_cast<const float4*>(ws + 4 * i * PS + key + half);
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const float4 v0 = *reinterpret_cast<const float4*>(vs + (key + half + c) * DD);
            const float4 v1 = *reinterpret_cast<const float4*>(vs + (key + half + c) * DD + 32);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
              const float a = c == 0 ? w[i].x : c == 1 ? w[i].y : c == 2 ? w[i].z : w[i].w;
              o[i][0] = fmaf(a, v0.x, o[i][0]);
              o[i][1] = fmaf(a, v0.y, o[i][1]);
              o[i][2] = fmaf(a, v0.z, o[i][2]);
              o[i][3] = fmaf(a, v0.w, o[i][3]);
              o[i][4] = fmaf(a, v1.x, o[i][4]);
              o[i][5] = fmaf(a, v1.y, o[i][5]);
              o[i][6] = fmaf(a, v1.z, o[i][6]);
              o[i][7] = fmaf(a, v1.w, o[i][7]);
            }
          }
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float all = sum[i];
    all += __shfl_xor_sync(0xffffffffu, all, 1);
    all += __shfl_xor_sync(0xffffffffu, all, 2);
    all += __shfl_xor_sync(0xffffffffu, all, 4);
    const int t = r0 + mg + 4 * i;
    if (t < T) {
      const float inverse = 1.0f / all;
      float* to = out + ((long long)head * T + t) * DD + ng * 4;
      *reinterpret_cast<float4*>(to) =
          make_float4(o[i][0] * inverse, o[i][1] * inverse, o[i][2] * inverse, o[i][3] * inverse);
      *reinterpret_cast<float4*>(to + 32) =
          make_float4(o[i][4] * inverse, o[i][5] * inverse, o[i][6] * inverse, o[i][7] * inverse);
    }
  }
}
