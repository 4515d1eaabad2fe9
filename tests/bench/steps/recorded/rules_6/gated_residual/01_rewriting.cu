// One launch: a block takes 1024 columns of two rows, a thread four neighbouring columns of each.

//@ launch gated_residual<<<ceil_div(M, 2) * ceil_div(N, 1024), 256>>>(x, b, mask, r, out, M, N)

__device__ __forceinline__ float gated_value(float x, float b, float mask, float r) {
  const float biased = __fadd_rn(x, b);
  const float gated = biased / __fadd_rn(1.0f, expf(-biased));
  return __fadd_rn(__fmul_rn(__fmul_rn(gated, mask), 1.25f), r);
}

__device__ __forceinline__ float4 gated_vector(const float4& x, const float4& b, const float4& mask, const float4& r) {
  float4 result;
  result.x = gated_value(x.x, b.x, mask.x, r.x);
  result.y = gated_value(x.y, b.y, mask.y, r.y);
  result.z = gated_value(x.z, b.z, mask.z, r.z);
  result.w = gated_value(x.w, b.w, mask.w, r.w);
  return result;
}

__global__ void __launch_bounds__(256)
gated_residual(const float* __restrict__ x, const float* __restrict__ b, const float* __restrict__ mask,
               const float* __restrict__ r, float* __restrict__ out, int M, int N) {
  const unsigned pieces = ((unsigned)N + 1023u) / 1024u;
  const unsigned pair = blockIdx.x / pieces;
  const int first_column = (int)(blockIdx.x - pair * pieces) * 1024;
  const int row = (int)pair * 2;
  const bool both = row + 1 < M;
  const unsigned long long address = (unsigned long long)x | (unsigned long long)b | (unsigned long long)mask |
                                     (unsigned long long)r | (unsigned long long)out;

  if ((N & 3) == 0 && (address & 15) == 0) {
    const int column = first_column + (int)threadIdx.x * 4;
    if (column >= N) return;
    const long long at0 = (long long)row * N + column;
    const float4 bias = __ldg(reinterpret_cast<const float4*>(b + column));
    if (both) {
      const long long at1 = at0 + N;
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + at0));
      const float4 x1 = __ldcs(reinterpret_cast<const float4*>(x + at1));
      const float4 mask0 = __ldcs(reinterpret_cast<const float4*>(mask + at0));
      const float4 mask1 = __ldcs(reinterpret_cast<const float4*>(mask + at1));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + at0));
      const float4 r1 = __ldcs(reinterpret_cast<const float4*>(r + at1));
      __stcs(reinterpret_cast<float4*>(out + at0), gated_vector(x0, bias, mask0, r0));
      __stcs(reinterpret_cast<float4*>(out + at1), gated_vector(x1, bias, mask1, r1));
    } else {
      const float4 x0 = __ldcs(reinterpret_cast<const float4*>(x + at0));
      const float4 mask0 = __ldcs(reinterpret_cast<const float4*>(mask + at0));
      const float4 r0 = __ldcs(reinterpret_cast<const float4*>(r + at0));
      __stcs(reinterpret_cast<float4*>(out + at0), gated_vector(x0, bias, mask0, r0));
    }
  } else {
    for (int k = 0; k < 4; ++k) {
      const int column = first_column + k * 256 + (int)threadIdx.x;
      if (column < N) {
        const float bias = b[column];
        const long long at0 = (long long)row * N + column;
        out[at0] = gated_value(x[at0], bias, mask[at0], r[at0]);
        if (both) {
          const long long at1 = at0 + N;
          out[at1] = gated_value(x[at1], bias, mask[at1], r[at1]);
        }
      }
    }
  }
}
