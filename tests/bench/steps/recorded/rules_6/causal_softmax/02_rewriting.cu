// Softmax of the scores at and before the diagonal, zeros behind it.
// T = 1536: a warp takes a long row (T-1-i) and a short row (i) together. In chunks of 128 elements the long row has
// nA = 7..12 chunks with data and the short row 13 - nA, so that 13 float4 in each lane hold both. For c in 7..11 exactly
// one of "chunk c of the long row" and "chunk 12-c of the short row" has data, and the other one is all zeros.
// Other T: a warp takes two rows, one after the other.

//@ launch causal_softmax<<<ceil_div(H * T, 4), 64>>>(x, out, H, T)

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// keeps the components 0..left, puts fill in the others
__device__ __forceinline__ float4 keep(float4 v, int left, float fill) {
  v.x = left >= 0 ? v.x : fill;
  v.y = left >= 1 ? v.y : fill;
  v.z = left >= 2 ? v.z : fill;
  v.w = left >= 3 ? v.w : fill;
  return v;
}

__global__ void __launch_bounds__(64, 12)
causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  const int lane = threadIdx.x & 31;
  const unsigned warp = blockIdx.x * 2u + (threadIdx.x >> 5);
  const float lowest = __int_as_float((int)0xff800000u);  // -infinity

  const bool aligned = ((((size_t)x) | ((size_t)out)) & 15) == 0;
  if (T == 1536 && aligned) {
    constexpr int N = 1536;
    constexpr int HALF = N / 2;
    const unsigned head = warp / HALF;
    if (head >= (unsigned)H) return;
    const int iB = (int)(warp - head * HALF);  // 0..767
    const int iA = N - 1 - iB;                 // 768..1535
    const int nA = (iA >> 7) + 1;              // 7..12
    const size_t rowA = ((size_t)head * N + iA) * N;
    const size_t rowB = ((size_t)head * N + iB) * N;
    const float* a = x + rowA;
    const float* b = x + rowB;
    const int l4 = lane * 4;

    float4 v[13];

    // All loads at once. Lanes behind the diagonal read the row's last needed vector again: no further traffic, no branch.
#pragma unroll
    for (int c = 0; c < 13; ++c) {
      if (c < 6) {
        v[c] = __ldg(reinterpret_cast<const float4*>(a + (c * 128 + l4)));
      } else {
        const bool inA = c < 7 || (c < 12 && c < nA);
        const float* p = inA ? a : b;
        const int last = (inA ? iA : iB) & ~3;
        const int off = min((inA ? c * 128 : (12 - c) * 128) + l4, last);
        v[c] = __ldg(reinterpret_cast<const float4*>(p + off));
      }
    }

    float* oa = out + rowA + l4;
    float* ob = out + rowB + l4;

    // Zeros of the chunks wholly behind the diagonal, while the loads are under way.
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int c = 6; c < 12; ++c) {
      __stcs(reinterpret_cast<float4*>(ob + c * 128), zero);
    }
#pragma unroll
    for (int c = 7; c < 12; ++c) {
      float* q = c < nA ? ob + (12 - c) * 128 : oa + c * 128;
      __stcs(reinterpret_cast<float4*>(q), zero);
    }

    const int ra = iA - l4;
    const int rb = iB - l4;

    float mA = lowest, mB = lowest;
#pragma unroll
    for (int c = 0; c < 13; ++c) {
      const bool inA = c < 7 || (c < 12 && c < nA);
      if (c >= 6) {
        const int left = inA ? ra - c * 128 : rb - (12 - c) * 128;
        v[c] = keep(v[c], left, lowest);
      }
      const float m = fmaxf(fmaxf(v[c].x, v[c].y), fmaxf(v[c].z, v[c].w));
      mA = inA ? fmaxf(mA, m) : mA;
      mB = inA ? mB : fmaxf(mB, m);
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
      const float ta = __shfl_xor_sync(0xffffffffu, mA, d);
      const float tb = __shfl_xor_sync(0xffffffffu, mB, d);
      mA = fmaxf(mA, ta);
      mB = fmaxf(mB, tb);
    }

    float sA = 0.0f, sB = 0.0f;
#pragma unroll
    for (int c = 0; c < 13; ++c) {
      const bool inA = c < 7 || (c < 12 && c < nA);
      const float m = inA ? mA : mB;
      v[c].x = expf(v[c].x - m);
      v[c].y = expf(v[c].y - m);
      v[c].z = expf(v[c].z - m);
      v[c].w = expf(v[c].w - m);
      const float s = (v[c].x + v[c].y) + (v[c].z + v[c].w);
      sA = inA ? sA + s : sA;
      sB = inA ? sB : sB + s;
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
      const float ta = __shfl_xor_sync(0xffffffffu, sA, d);
      const float tb = __shfl_xor_sync(0xffffffffu, sB, d);
      sA += ta;
      sB += tb;
    }
    const float fA = 1.0f / sA;
    const float fB = 1.0f / sB;

#pragma unroll
    for (int c = 0; c < 13; ++c) {
      const bool inA = c < 7 || (c < 12 && c < nA);
      const float f = inA ? fA : fB;
      float4 r;
      r.x = v[c].x * f;
      r.y = v[c].y * f;
      r.z = v[c].z * f;
      r.w = v[c].w * f;
      if (c >= 6) {
        const int left = inA ? ra - c * 128 : rb - (12 - c) * 128;
        r = keep(r, left, 0.0f);
      }
      float* q = inA ? oa + c * 128 : ob + (12 - c) * 128;
      __stcs(reinterpret_cast<float4*>(q), r);
    }
    return;
  }

  // Any size.
  const long long rows = (long long)H * T;
  for (int k = 0; k < 2; ++k) {
    const long long row = (long long)warp * 2 + k;
    if (row >= rows) return;
    const int i = (int)(row % T);
    const float* p = x + row * T;
    float* q = out + row * T;
    float m = lowest;
    for (int j = lane; j <= i; j += 32) m = fmaxf(m, p[j]);
    m = warp_max(m);
    float s = 0.0f;
    for (int j = lane; j <= i; j += 32) s += expf(p[j] - m);
    s = warp_sum(s);
    for (int j = lane; j < T; j += 32) {
      q[j] = j <= i ? expf(p[j] - m) / s : 0.0f;
    }
  }
}
